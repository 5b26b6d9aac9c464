//===- ExchangeStep.cpp - Exchanges of a session, and waits for them ------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepExecutor.h"

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

ChannelMove describeMove(const RankMemory &memory, const MoveInfo &move, MoveTransfers transfers) {
  ChannelMove result;
  result.source = memory.memory(move.source);
  result.target = memory.memory(move.target);
  result.receives = std::move(transfers.receives);
  result.sends = std::move(transfers.sends);
  result.local = std::move(transfers.local);
  result.reduction = transfers.reduction;
  if (transfers.reduction == layout::ReductionKind::Owner) {
    // Next to zeros the bits of the owner's contribution are the largest number, whatever they mean.
    result.reduction = layout::ReductionKind::Max;
    result.source.type = result.target.type = unsignedTypeOf(result.target.type);
  }
  result.format = {move.order};
  return result;
}

/// All but the name and the mover.
ChannelDescription describeChannel(const RankMemory &memory, const ExchangeCall &call,
                                   const std::vector<MoveScheduler> &schedulers) {
  ChannelDescription description;
  description.kind = call.kind;
  for (size_t i = 0; i < call.moves.size(); ++i) {
    const MoveScheduler &scheduler = schedulers[i];
    description.moves.push_back(describeMove(memory, call.moves[i], scheduler.transfers(memory.rank)));
    if (call.kind == layout::ExchangeKind::Messages)
      continue;
    // Of several moves the groups have the same members.
    layout::CollectiveGroup group = scheduler.group(call.kind, memory.rank);
    description.moves.back().parts = group.parts;
    if (description.moves.size() == 1)
      description.group = std::move(group);
  }
  return description;
}

class ExchangeStep : public ExchangeExecutor {
public:
  ExchangeStep(const RankMemory &memory, const StepInfo &step, Communicator &communicator, Mover &mover)
      : memory(memory), step(step), communicator(communicator), mover(mover) {}

  absl::Status bind(std::byte *) override {
    const auto &call = std::get<ExchangeCall>(step.action);
    ChannelDescription description = describeChannel(memory, call, createSchedulers(memory.plan, call));
    description.name = step.title();
    description.mover = &mover;
    for (size_t i = 0; i < call.moves.size(); ++i)
      if (!description.moves[i].sends.empty())
        sources.push_back(memory.plan.tensors[call.moves[i].source].buffer);
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

  std::vector<uint32_t> readByOthers() const override { return sources; }

private:
  const RankMemory &memory;
  const StepInfo &step;
  Communicator &communicator;
  Mover &mover;
  std::vector<uint32_t> sources; ///< Buffers that others read.
  std::unique_ptr<Channel> channel;
};

class WaitStep : public StepExecutor {
public:
  WaitStep(std::vector<ExchangeExecutor *> complete, std::vector<ExchangeExecutor *> read)
      : complete(std::move(complete)), read(std::move(read)) {}

  absl::Status bind(std::byte *) override {
    // Exchanges are bound before.
    std::erase_if(read, [](const ExchangeExecutor *exchange) { return exchange->readByOthers().empty(); });
    return absl::OkStatus();
  }
  absl::Status run() override {
    absl::Status status;
    for (size_t k = 0; k < complete.size() && status.ok(); ++k)
      status = complete[k]->join();
    for (size_t k = 0; k < read.size() && status.ok(); ++k)
      status = read[k]->fence();
    return status;
  }

private:
  std::vector<ExchangeExecutor *> complete, read;
};

} // namespace

std::unique_ptr<StepExecutor> dovetail::runtime::createWaitStep(std::vector<ExchangeExecutor *> complete,
                                                                std::vector<ExchangeExecutor *> read) {
  return std::make_unique<WaitStep>(std::move(complete), std::move(read));
}

std::unique_ptr<ExchangeExecutor> dovetail::runtime::createExchangeStep(const RankMemory &memory, const StepInfo &step,
                                                                        Communicator &communicator, Mover &mover) {
  // Even a rank without transfers opens its channel: all ranks number them alike.
  return std::make_unique<ExchangeStep>(memory, step, communicator, mover);
}

absl::Status dovetail::runtime::exchangeOnce(Communicator &communicator, Mover &mover, const std::string &name,
                                             ChannelMove move) {
  ChannelDescription description;
  description.name = name;
  description.mover = &mover;
  description.moves.push_back(std::move(move));
  absl::StatusOr<std::unique_ptr<Channel>> channel = communicator.open(std::move(description));
  if (!channel.ok())
    return channel.status();
  absl::Status status = communicator.connect();
  if (status.ok())
    status = (*channel)->start();
  if (status.ok())
    status = (*channel)->finish();
  return status.ok() ? (*channel)->join() : status;
}

int64_t dovetail::runtime::messageBytes(const RankMemory &memory, const ExchangeCall &call,
                                        const std::vector<MoveScheduler> &schedulers) {
  return messageBytes(describeChannel(memory, call, schedulers));
}
