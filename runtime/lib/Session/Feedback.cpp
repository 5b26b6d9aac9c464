//===- Feedback.cpp - Outputs that are inputs of the next run -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Feedback.h"

#include "../Memory/Alignment.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

/// Memory for the box of an input, without an address.
MemoryView stageOf(const RankMemory &memory, const PortInfo &input) {
  return MemoryView::rowMajor(input.type, memory.box(input.tensor), nullptr);
}

} // namespace

std::vector<FeedbackCopy> dovetail::runtime::orderFeedback(const Plan &plan) {
  std::vector<uint32_t> pending;
  for (uint32_t i = 0; i < plan.inputs.size(); ++i)
    if (const PortInfo &input = plan.inputs[i];
        input.fedBy >= 0 && plan.tensors[input.next].buffer != plan.tensors[input.tensor].buffer)
      pending.push_back(i);
  std::vector<FeedbackCopy> order;
  // Those whose input is not what another one is fed.
  auto isFree = [&](uint32_t number) {
    uint32_t target = plan.tensors[plan.inputs[number].tensor].buffer;
    return std::none_of(pending.begin(), pending.end(),
                        [&](uint32_t other) { return plan.tensors[plan.inputs[other].next].buffer == target; });
  };
  for (auto next = pending.begin(); next != pending.end();) {
    next = std::find_if(pending.begin(), pending.end(), isFree);
    if (next == pending.end())
      break;
    order.push_back({*next, /*isStaged=*/false});
    pending.erase(next);
    next = pending.begin();
  }
  for (uint32_t number : pending)
    order.push_back({number, /*isStaged=*/true});
  return order;
}

int64_t dovetail::runtime::stagedBytes(const RankMemory &memory) {
  int64_t bytes = 0;
  for (const FeedbackCopy &copy : orderFeedback(memory.plan))
    if (copy.isStaged)
      bytes += alignedSize(stageOf(memory, memory.plan.inputs[copy.input]).bytes());
  return bytes;
}

absl::Status Feedback::prepare(const RankMemory &memory, Backend &backend,
                               absl::Span<const std::unique_ptr<PortTransfer>> uploads) {
  onDevice = !backend.usesHostMemory();
  for (const FeedbackCopy &ordered : orderFeedback(memory.plan)) {
    const PortInfo &input = memory.plan.inputs[ordered.input];
    Copy copy{uploads[ordered.input].get(), &memory.memory(input.next), memory.box(input.tensor), {}, {}, {}};
    if (copy.box.empty())
      continue;
    if (ordered.isStaged) {
      copy.stage = stageOf(memory, input);
      auto allocated = backend.allocate(alignedSize(copy.stage.bytes()));
      if (!allocated.ok())
        return allocated.status();
      copy.owner = *std::move(allocated);
      copy.stage.data = copy.owner.get();
    }
    copies.push_back(std::move(copy));
  }
  // They refer to views, which stay where they are from here on.
  for (Copy &copy : copies)
    if (copy.owner) {
      auto transfer = backend.createUpload(copy.stage, copy.box);
      if (!transfer.ok())
        return transfer.status();
      copy.toStage = *std::move(transfer);
    }
  return absl::OkStatus();
}

absl::Status Feedback::run() {
  for (Copy &copy : copies)
    if (copy.toStage)
      if (absl::Status status = copy.toStage->run(*copy.source, {copy.box}, onDevice); !status.ok())
        return status;
  for (Copy &copy : copies)
    if (absl::Status status = copy.toInput->run(copy.toStage ? copy.stage : *copy.source, {copy.box}, onDevice);
        !status.ok())
      return status;
  return absl::OkStatus();
}
