//===- Waits.cpp - Waits of plans written by hand -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Waits.h"

#include "Session/MemoryPlan.h"

#include <algorithm>
#include <set>

using namespace dovetail;

namespace {

using Buffers = std::set<uint32_t>;
using Steps = std::vector<std::unique_ptr<artifact::StepT>>;

struct Open {
  uint32_t position; ///< In the list with waits.
  Buffers sources, targets;
  bool isComplete = false;
};

bool meet(const Buffers &a, const Buffers &b) {
  return std::any_of(a.begin(), a.end(), [&](uint32_t buffer) { return b.count(buffer) != 0; });
}

/// Moves `steps`, the first of which is at `position` of the lives of buffers, into a list with waits. `infos` are the
/// same, decoded.
Steps withWaits(Steps steps, const std::vector<runtime::StepInfo> &infos, int64_t position, const runtime::Plan &plan,
                const std::vector<runtime::ArenaItem> &lives) {
  auto buffersOf = [&](const std::vector<uint32_t> &tensors) {
    Buffers buffers;
    for (uint32_t tensor : tensors)
      buffers.insert(plan.tensors[tensor].buffer);
    return buffers;
  };
  Steps result;
  std::vector<Open> open;
  auto wait = [&](auto &&completes, auto &&reads) {
    artifact::WaitStepT call;
    std::erase_if(open, [&](Open &entry) {
      if (!entry.isComplete && completes(entry)) {
        call.complete.push_back(entry.position);
        entry.isComplete = true;
      }
      if (!entry.isComplete || !reads(entry))
        return false;
      call.read.push_back(entry.position);
      return true;
    });
    if (call.complete.empty() && call.read.empty())
      return;
    auto step = std::make_unique<artifact::StepT>();
    step->name = "wait" + std::to_string(result.size());
    step->action.Set(std::move(call));
    result.push_back(std::move(step));
  };
  auto isShared = [&](uint32_t buffer) { return plan.buffers[buffer].kind == runtime::BufferKind::Arena; };
  for (size_t i = 0; i < infos.size(); ++i, ++position) {
    Buffers reads = buffersOf(infos[i].reads()), writes = buffersOf(infos[i].writes());
    auto begins = [&](uint32_t buffer) { return isShared(buffer) && lives[buffer].first == position; };
    bool takesMemory = infos[i].memory.has_value() || std::any_of(writes.begin(), writes.end(), begins);
    auto isGone = [&](const Buffers &buffers) {
      auto ended = [&](uint32_t buffer) { return isShared(buffer) && lives[buffer].last < position; };
      return takesMemory && std::any_of(buffers.begin(), buffers.end(), ended);
    };
    auto overwrites = [&](const Open &entry) { return meet(writes, entry.sources) || isGone(entry.sources); };
    wait(
        [&](const Open &entry) {
          return overwrites(entry) || meet(writes, entry.targets) || meet(reads, entry.targets) ||
                 isGone(entry.targets);
        },
        overwrites);
    if (std::holds_alternative<runtime::ExchangeCall>(infos[i].action))
      open.push_back({static_cast<uint32_t>(result.size()), reads, writes});
    result.push_back(std::move(steps[i]));
  }
  auto all = [](const Open &) { return true; };
  wait(all, all);
  return result;
}

} // namespace

void test::addWaits(artifact::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(artifact::Plan::Pack(builder, &plan));
  auto decoded = runtime::decodePlan(
      absl::MakeConstSpan(reinterpret_cast<const std::byte *>(builder.GetBufferPointer()), builder.GetSize()),
      /*weightsSize=*/uint64_t(1) << 40);
  if (!decoded.ok())
    return;
  std::vector<runtime::ArenaItem> lives = runtime::bufferLives(*decoded, /*rank=*/0);
  plan.prologue = withWaits(std::move(plan.prologue), decoded->prologue, 0, *decoded, lives);
  plan.steps =
      withWaits(std::move(plan.steps), decoded->steps, runtime::Positions(*decoded).firstStep, *decoded, lives);
}
