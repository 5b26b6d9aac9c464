//===- PackingPlan.cpp - When weights are packed --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackingPlan.h"

#include "../Memory/Alignment.h"
#include "Backend.h"

#include <algorithm>
#include <optional>
#include <set>

using namespace dovetail::runtime;

namespace {

class Packer {
public:
  Packer(const RankMemory &memory, int64_t batchBytes) : memory(memory), plan(memory.plan), batchBytes(batchBytes) {}

  PackingPlan create();

private:
  int64_t numSteps() const { return static_cast<int64_t>(plan.prologue.size()); }
  uint32_t bufferOf(uint32_t tensor) const { return plan.tensors[tensor].buffer; }
  void findUses();
  /// Adds steps that pack what is there after so many steps of the prologue.
  void pack(int64_t position);
  void releaseBuffers();
  void findPurposes();

  const RankMemory &memory;
  const Plan &plan;
  int64_t batchBytes;
  PackingPlan result;
  std::vector<std::optional<uint32_t>> packed; ///< For each step the buffer that it packs.
  std::vector<int64_t> written;                ///< For each buffer how many steps of the prologue it takes to make it.
  std::vector<std::vector<size_t>> ready;      ///< By the number of these steps, the steps that could pack then.
  std::vector<size_t> pending;                 ///< Steps whose weights have been made, but not been packed,
  int64_t pendingBytes = 0;                    ///< and what these take.
};

} // namespace

void Packer::findUses() {
  result.transient.assign(plan.buffers.size(), false);
  result.readInRuns.assign(plan.buffers.size(), false);
  result.lastUses.assign(plan.buffers.size(), -1);
  written.assign(plan.buffers.size(), 0);
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    result.transient[i] = plan.buffers[i].kind == BufferKind::Persistent && !plan.isForDevice();

  for (int64_t position = 0; position < numSteps(); ++position) {
    const StepInfo &step = plan.prologue[position];
    // Other ranks read what is exchanged when they come to it.
    bool isExchange = std::holds_alternative<ExchangeCall>(step.action);
    for (uint32_t tensor : step.reads()) {
      result.lastUses[bufferOf(tensor)] = position;
      if (isExchange)
        result.transient[bufferOf(tensor)] = false;
    }
    for (uint32_t tensor : step.writes()) {
      result.lastUses[bufferOf(tensor)] = position;
      written[bufferOf(tensor)] = position + 1;
      if (isExchange)
        result.transient[bufferOf(tensor)] = false;
    }
  }
  for (const StepInfo &step : plan.steps) {
    std::optional<uint32_t> tensor = plan.isForDevice() ? std::nullopt : hostPackedTensor(memory, step);
    packed.push_back(tensor ? std::optional(bufferOf(*tensor)) : std::nullopt);
    for (const std::vector<uint32_t> &tensors : {step.reads(), step.writes()})
      for (uint32_t other : tensors)
        if (other != tensor)
          result.readInRuns[bufferOf(other)] = true;
  }
  for (const std::vector<PortInfo> &ports : {plan.getArguments(), plan.getResults()})
    for (const PortInfo &port : ports)
      result.readInRuns[bufferOf(port.tensor)] = true;
  for (const PortInfo &input : plan.inputs)
    if (input.fedBy >= 0)
      result.readInRuns[bufferOf(input.next)] = true;
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    if (result.readInRuns[i])
      result.transient[i] = false;
}

void Packer::pack(int64_t position) {
  for (size_t step : pending) {
    result.pauses[position].packs.push_back({step, std::nullopt});
    if (packed[step])
      result.lastUses[*packed[step]] = std::max(result.lastUses[*packed[step]], position - 1);
  }
  pending.clear();
  pendingBytes = 0;
}

void Packer::releaseBuffers() {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    bool isMapped = plan.isMapped(plan.buffers[i]) && !result.readInRuns[i];
    if ((!isMapped && !result.transient[i]) || memory.buffers[i].box.empty())
      continue;
    PackingPlan::Pause &pause = result.pauses[result.lastUses[i] + 1];
    auto last = std::find_if(pause.packs.rbegin(), pause.packs.rend(),
                             [&](const PackingPlan::Pack &pack) { return packed[pack.step] == i; });
    if (last != pause.packs.rend())
      last->released = i;
    else if (isMapped)
      pause.released.push_back(i);
  }
}

void Packer::findPurposes() {
  std::vector<bool> always(plan.buffers.size());
  std::vector<std::set<size_t>> packs(plan.buffers.size());
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (packed[i])
      packs[*packed[i]].insert(i);
  result.purposes.resize(numSteps());
  for (int64_t position = numSteps(); position-- > 0;) {
    const StepInfo &step = plan.prologue[position];
    const auto *kernel = std::get_if<KernelCall>(&step.action);
    // Ranks meet in exchanges, and report wrong indices.
    bool isNeeded = std::holds_alternative<ExchangeCall>(step.action) ||
                    std::holds_alternative<WaitCall>(step.action) || (kernel && !kernel->checks.empty());
    std::set<size_t> feeds;
    for (uint32_t tensor : step.writes()) {
      uint32_t buffer = bufferOf(tensor);
      isNeeded |= !result.transient[buffer] || always[buffer];
      feeds.insert(packs[buffer].begin(), packs[buffer].end());
    }
    for (uint32_t tensor : step.reads()) {
      always[bufferOf(tensor)] = always[bufferOf(tensor)] || isNeeded;
      packs[bufferOf(tensor)].insert(feeds.begin(), feeds.end());
    }
    result.purposes[position].always = isNeeded;
    result.purposes[position].packs.assign(feeds.begin(), feeds.end());
  }
}

PackingPlan Packer::create() {
  findUses();
  result.pauses.resize(numSteps() + 2);
  ready.resize(numSteps() + 1);
  // What is mapped waits: what is packed of it would be in memory beside what the prologue makes.
  std::vector<size_t> last;
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (packed[i] && written[*packed[i]] > 0)
      ready[written[*packed[i]]].push_back(i);
    else
      last.push_back(i);
  for (int64_t position = 0; position <= numSteps(); ++position) {
    if (position > 0) {
      int64_t bytes = 0;
      for (uint32_t tensor : plan.prologue[position - 1].writes())
        if (result.transient[bufferOf(tensor)])
          bytes += alignedSize(memory.buffers[bufferOf(tensor)].bytes());
      if (pendingBytes > 0 && pendingBytes + bytes > batchBytes)
        pack(position - 1);
      pendingBytes += bytes;
    }
    pending.insert(pending.end(), ready[position].begin(), ready[position].end());
  }
  pack(numSteps());
  pending = std::move(last);
  pack(numSteps() + 1);
  releaseBuffers();
  findPurposes();
  return std::move(result);
}

PackingPlan PackingPlan::create(const RankMemory &memory, int64_t batchBytes) {
  return Packer(memory, batchBytes).create();
}
