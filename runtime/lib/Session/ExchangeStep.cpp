//===- ExchangeStep.cpp - Exchanges of a session --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepExecutor.h"

#include "dovetail/runtime/Schedule.h"

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

ChannelMove describeMove(const RankMemory &memory, const MoveInfo &move, const MoveTransfers &transfers) {
  ChannelMove result;
  result.source = memory.memory(move.source);
  result.target = memory.memory(move.target);
  result.receives = transfers.receives;
  result.sends = transfers.sends;
  result.local = transfers.local;
  result.reduction = transfers.reduction;
  if (transfers.reduction == layout::ReductionKind::Owner) {
    // Next to zeros the bits of the owner's contribution are the largest number, whatever they mean.
    result.reduction = layout::ReductionKind::Max;
    result.source.type = result.target.type = unsignedTypeOf(result.target.type);
  }
  result.format = memory.plan.messageFormat(move);
  return result;
}

std::vector<MoveTransfers> listTransfers(const RankMemory &memory, const ExchangeCall &call) {
  std::vector<MoveTransfers> transfers;
  for (const MoveInfo &move : call.moves)
    transfers.push_back(MoveScheduler(memory.plan, move).transfers(memory.rank));
  return transfers;
}

/// All but the name and the mover. `transfers` are those of each move.
ChannelDescription describeChannel(const RankMemory &memory, const ExchangeCall &call,
                                   const std::vector<MoveTransfers> &transfers) {
  ChannelDescription description;
  for (size_t i = 0; i < call.moves.size(); ++i)
    description.moves.push_back(describeMove(memory, call.moves[i], transfers[i]));
  description.kind = call.kind;
  description.group = MoveScheduler(memory.plan, call.moves[0]).group(call.kind, memory.rank);
  return description;
}

class ExchangeStep : public ExchangeExecutor {
public:
  ExchangeStep(const RankMemory &memory, const StepInfo &step, Communicator &communicator, Mover &mover)
      : memory(memory), communicator(communicator), mover(mover), name(step.name),
        call(std::get<ExchangeCall>(step.action)), transfers(listTransfers(memory, call)) {}

  absl::Status bind(std::byte *) override {
    ChannelDescription description = describeChannel(memory, call, transfers);
    description.name = name;
    description.mover = &mover;
    absl::StatusOr<std::unique_ptr<Channel>> opened = communicator.open(std::move(description));
    if (!opened.ok())
      return opened.status();
    channel = *std::move(opened);
    return absl::OkStatus();
  }

  absl::Status run() override {
    absl::Status status = channel->start();
    return status.ok() ? channel->finish() : status;
  }

  absl::Status join() override { return channel->join(); }
  absl::Status fence() override { return channel->fence(); }

  std::vector<uint32_t> readByOthers() const override {
    std::vector<uint32_t> buffers;
    for (size_t i = 0; i < call.moves.size(); ++i)
      if (!transfers[i].sends.empty())
        buffers.push_back(memory.plan.tensors[call.moves[i].source].buffer);
    return buffers;
  }

private:
  const RankMemory &memory;
  Communicator &communicator;
  Mover &mover;
  std::string name;
  ExchangeCall call;
  std::vector<MoveTransfers> transfers; ///< Of each move.
  std::unique_ptr<Channel> channel;
};

} // namespace

std::unique_ptr<ExchangeExecutor> dovetail::runtime::createExchangeStep(const RankMemory &memory, const StepInfo &step,
                                                                        Communicator &communicator, Mover &mover) {
  // Even a rank without transfers opens its channel: all ranks number them alike.
  return std::make_unique<ExchangeStep>(memory, step, communicator, mover);
}

int64_t dovetail::runtime::messageBytes(const RankMemory &memory, const ExchangeCall &call) {
  return messageBytes(describeChannel(memory, call, listTransfers(memory, call)));
}
