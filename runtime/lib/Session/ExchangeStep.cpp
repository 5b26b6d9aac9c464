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
  ExchangeStep(SessionContext &context, const StepInfo &step)
      : context(context), name(step.name), call(std::get<ExchangeCall>(step.action)),
        phases(ExchangeScheduler(context.plan, call).phases(context.rank)) {}

  absl::Status bind(std::byte *) override {
    for (const ExchangePhase &phase : phases) {
      ChannelDescription description;
      description.name = name;
      description.source = context.memory(phase.fromTarget ? call.target : call.source);
      description.target = context.memory(call.target);
      description.receives = phase.receives;
      description.sends = phase.sends;
      description.local = phase.local;
      description.reduction = phase.reduction;
      absl::StatusOr<std::unique_ptr<Channel>> channel = context.communicator.open(std::move(description));
      if (!channel.ok())
        return channel.status();
      channels.push_back(*std::move(channel));
    }
    return absl::OkStatus();
  }

  absl::Status run() override {
    for (const std::unique_ptr<Channel> &channel : channels) {
      if (absl::Status status = channel->start(); !status.ok())
        return status;
      if (absl::Status status = channel->finish(); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }

  absl::Status release() override {
    for (const std::unique_ptr<Channel> &channel : channels)
      if (absl::Status status = channel->release(); !status.ok())
        return status;
    return absl::OkStatus();
  }

  std::vector<uint32_t> readByOthers() const override {
    std::vector<uint32_t> buffers;
    for (const ExchangePhase &phase : phases)
      if (!phase.sends.empty())
        buffers.push_back(context.plan.tensors[phase.fromTarget ? call.target : call.source].buffer);
    return buffers;
  }

private:
  SessionContext &context;
  std::string name;
  ExchangeCall call;
  std::vector<ExchangePhase> phases;
  std::vector<std::unique_ptr<Channel>> channels;
};

} // namespace

absl::StatusOr<std::unique_ptr<ExchangeExecutor>> dovetail::runtime::createExchangeStep(SessionContext &context,
                                                                                        const StepInfo &step) {
  // Even a rank without transfers opens its channels: all ranks number them alike.
  return std::make_unique<ExchangeStep>(context, step);
}
