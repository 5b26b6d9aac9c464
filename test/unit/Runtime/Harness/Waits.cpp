//===- Waits.cpp - Waits of plans written by hand -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Waits.h"

#include "dovetail/runtime/Plan.h"

#include <algorithm>
#include <map>
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

/// Moves `steps` into a list with waits. `first` and `last` are the steps that touch each buffer; `plan` has them
/// decoded.
Steps withWaits(Steps steps, const std::vector<runtime::StepInfo> &infos, const runtime::Plan &plan,
                std::map<uint32_t, size_t> first, std::map<uint32_t, size_t> last) {
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
  for (size_t i = 0; i < infos.size(); ++i) {
    Buffers reads = buffersOf(infos[i].reads()), writes = buffersOf(infos[i].writes());
    bool takesMemory = infos[i].memory.has_value() ||
                       std::any_of(writes.begin(), writes.end(), [&](uint32_t buffer) { return first[buffer] == i; });
    auto isGone = [&](const Buffers &buffers) {
      return takesMemory &&
             std::any_of(buffers.begin(), buffers.end(), [&](uint32_t buffer) { return last[buffer] < i; });
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
  for (bool inPrologue : {true, false}) {
    const std::vector<runtime::StepInfo> &infos = inPrologue ? decoded->prologue : decoded->steps;
    // Inputs are there before the first step, outputs and what is no part of the arena after the last.
    constexpr size_t before = SIZE_MAX;
    std::map<uint32_t, size_t> first, last;
    for (uint32_t buffer = 0; buffer < decoded->buffers.size(); ++buffer)
      if (decoded->buffers[buffer].kind != runtime::BufferKind::Arena)
        first[buffer] = before, last[buffer] = infos.size();
    if (!inPrologue)
      for (const runtime::PortInfo &input : decoded->inputs)
        first[decoded->tensors[input.tensor].buffer] = before;
    for (size_t i = 0; i < infos.size(); ++i)
      for (const std::vector<uint32_t> &tensors : {infos[i].reads(), infos[i].writes()})
        for (uint32_t tensor : tensors) {
          uint32_t buffer = decoded->tensors[tensor].buffer;
          first.try_emplace(buffer, i);
          last[buffer] = std::max(last[buffer], i);
        }
    if (!inPrologue)
      for (const runtime::PortInfo &output : decoded->outputs)
        last[decoded->tensors[output.tensor].buffer] = infos.size();
    Steps &steps = inPrologue ? plan.prologue : plan.steps;
    steps = withWaits(std::move(steps), infos, *decoded, first, last);
  }
}
