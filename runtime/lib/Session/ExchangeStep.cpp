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
        call(std::get<ExchangeCall>(step.action)), phases(ExchangeScheduler(memory.plan, call).phases(memory.rank)) {}

  absl::Status bind(std::byte *) override {
    for (const ExchangePhase &phase : phases) {
      ChannelDescription description;
      description.name = name;
      description.source = memory.memory(phase.fromTarget ? call.target : call.source);
      description.target = memory.memory(call.target);
      description.receives = phase.receives;
      description.sends = phase.sends;
      description.local = phase.local;
      description.reduction = phase.reduction;
      description.mover = &mover;
      absl::StatusOr<std::unique_ptr<Channel>> channel = communicator.open(std::move(description));
      if (!channel.ok())
        return channel.status();
      channels.push_back(*std::move(channel));
    }
    return absl::OkStatus();
  }

  absl::Status run() override {
    for (size_t i = 0; i < channels.size(); ++i) {
      const std::unique_ptr<Channel> &channel = channels[i];
      // A later phase sends what the one before has brought.
      if (i > 0)
        if (absl::Status status = channels[i - 1]->join(); !status.ok())
          return status;
      if (absl::Status status = channel->start(); !status.ok())
        return status;
      if (absl::Status status = channel->finish(); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  absl::Status join() override {
    for (const std::unique_ptr<Channel> &channel : channels)
      if (absl::Status status = channel->join(); !status.ok())
        return status;
    return absl::OkStatus();
  }

  absl::Status fence() override {
    for (const std::unique_ptr<Channel> &channel : channels)
      if (absl::Status status = channel->fence(); !status.ok())
        return status;
    return absl::OkStatus();
  }

  std::vector<uint32_t> readByOthers() const override {
    std::vector<uint32_t> buffers;
    for (const ExchangePhase &phase : phases)
      if (!phase.sends.empty())
        buffers.push_back(memory.plan.tensors[phase.fromTarget ? call.target : call.source].buffer);
    return buffers;
  }

private:
  const RankMemory &memory;
  Communicator &communicator;
  Mover &mover;
  std::string name;
  ExchangeCall call;
  std::vector<ExchangePhase> phases;
  std::vector<std::unique_ptr<Channel>> channels;
};

} // namespace

std::unique_ptr<ExchangeExecutor> dovetail::runtime::createExchangeStep(const RankMemory &memory, const StepInfo &step,
                                                                        Communicator &communicator, Mover &mover) {
  // Even a rank without transfers opens its channels: all ranks number them alike.
  return std::make_unique<ExchangeStep>(memory, step, communicator, mover);
}
