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

class ExchangeStep : public ExchangeExecutor {
public:
  ExchangeStep(const RankMemory &memory, const StepInfo &step, Communicator &communicator, Mover &mover)
      : memory(memory), communicator(communicator), mover(mover), name(step.name),
        call(std::get<ExchangeCall>(step.action)), scheduler(memory.plan, call),
        transfers(scheduler.transfers(memory.rank)) {}

  absl::Status bind(std::byte *) override {
    ChannelDescription description;
    description.name = name;
    description.source = memory.memory(call.source);
    description.target = memory.memory(call.target);
    description.receives = transfers.receives;
    description.sends = transfers.sends;
    description.local = transfers.local;
    description.reduction = transfers.reduction;
    if (transfers.reduction == layout::ReductionKind::Owner) {
      // Next to zeros the bits of the owner's contribution are the largest number, whatever they mean.
      description.reduction = layout::ReductionKind::Max;
      description.source.type = description.target.type = unsignedTypeOf(description.target.type);
    }
    description.format = memory.plan.messageFormat(call);
    description.kind = call.kind;
    description.group = scheduler.group(memory.rank);
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
    if (transfers.sends.empty())
      return {};
    return {memory.plan.tensors[call.source].buffer};
  }

private:
  const RankMemory &memory;
  Communicator &communicator;
  Mover &mover;
  std::string name;
  ExchangeCall call;
  ExchangeScheduler scheduler;
  ExchangeTransfers transfers;
  std::unique_ptr<Channel> channel;
};

} // namespace

std::unique_ptr<ExchangeExecutor> dovetail::runtime::createExchangeStep(const RankMemory &memory, const StepInfo &step,
                                                                        Communicator &communicator, Mover &mover) {
  // Even a rank without transfers opens its channel: all ranks number them alike.
  return std::make_unique<ExchangeStep>(memory, step, communicator, mover);
}
