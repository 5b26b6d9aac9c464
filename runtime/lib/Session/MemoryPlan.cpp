//===- MemoryPlan.cpp - Memory of a rank -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryPlan.h"

#include "../Memory/Alignment.h"
#include "Backend.h"
#include "Feedback.h"

#include "dovetail/runtime/MemoryView.h"
#include "dovetail/runtime/Session.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace dovetail;
using namespace dovetail::runtime;

int64_t dovetail::runtime::bufferBytes(const Plan &plan, uint32_t buffer, int rank) {
  return MemoryView::ofBuffer(plan, buffer, rank).bytes();
}

std::vector<ArenaItem> dovetail::runtime::bufferLives(const Plan &plan, int rank) {
  Positions positions(plan);
  std::vector<ArenaItem> items(plan.buffers.size(), ArenaItem{0, positions.outputs, -1, 0});
  auto use = [&](uint32_t tensor, int64_t position) {
    ArenaItem &item = items[plan.tensors[tensor].buffer];
    item.first = std::min(item.first, position);
    item.last = std::max(item.last, position);
  };
  auto useSteps = [&](const std::vector<StepInfo> &steps, int64_t position) {
    for (const StepInfo &step : steps) {
      for (uint32_t tensor : step.reads())
        use(tensor, position);
      for (uint32_t tensor : step.writes())
        use(tensor, position);
      ++position;
    }
  };
  useSteps(plan.prologue, 0);
  for (const PortInfo &port : plan.getArguments())
    use(port.tensor, positions.inputs);
  useSteps(plan.steps, positions.firstStep);
  for (const PortInfo &port : plan.getResults())
    use(port.tensor, positions.outputs);
  for (const PortInfo &port : plan.inputs)
    if (port.fedBy >= 0)
      use(port.next, positions.outputs);
  // Copied there when the run is over, while what others are fed is still needed.
  for (const FeedbackCopy &copy : orderFeedback(plan))
    if (!copy.isStaged)
      use(plan.inputs[copy.input].tensor, positions.outputs);
  // What comes from before the first iteration is there in each of them, and what is there behind the last one lies
  // where no other one has something else. Inner repeats end first.
  for (const StepInfo &step : plan.steps)
    if (const auto *end = std::get_if<EndCall>(&step.action)) {
      const auto *repeat = std::get_if<RepeatCall>(&plan.steps[end->begin].action);
      if (!repeat)
        continue;
      int64_t first = positions.firstStep + end->begin, last = positions.firstStep + repeat->end;
      for (ArenaItem &item : items) {
        if (item.last < first || last < item.first)
          continue;
        if (item.first <= first)
          item.last = std::max(item.last, last);
        if (item.last > last)
          item.first = std::min(item.first, first);
      }
    }
  for (size_t i = 0; i < items.size(); ++i)
    if (plan.buffers[i].kind == BufferKind::Arena && items[i].last >= 0)
      items[i].bytes = bufferBytes(plan, i, rank);
  return items;
}

ArenaPlan dovetail::runtime::planArena(const RankMemory &memory, const std::vector<int64_t> &prologueScratch,
                                       const std::vector<int64_t> &stepScratch, const ItemPlanner &planItems) {
  const Plan &plan = memory.plan;
  ArenaPlan result;
  result.items = bufferLives(plan, memory.rank);
  auto addScratch = [&](const std::vector<int64_t> &scratch, int64_t position) {
    for (int64_t bytes : scratch) {
      result.items.push_back({bytes, position, position, 0});
      ++position;
    }
  };
  addScratch(prologueScratch, 0);
  addScratch(stepScratch, Positions(plan).firstStep);
  result.bytes = planItems(result.items);
  result.packing = PackingPlan::create(memory, result.bytes);

  std::vector<ArenaItem> lives = bufferLives(plan, memory.rank), transient(lives.size());
  for (size_t i = 0; i < lives.size(); ++i)
    if (result.packing.transient[i] && result.packing.lastUses[i] >= 0)
      // Steps of a run do not read it themselves.
      transient[i] = {bufferBytes(plan, i, memory.rank), lives[i].first, result.packing.lastUses[i], 0};
  result.startBytes = planItems(transient);
  for (size_t i = 0; i < lives.size(); ++i)
    if (result.packing.transient[i])
      result.items[i] = transient[i];
  return result;
}

/// The buffers of a rank as a session has them, but for their addresses.
static RankMemory memoryWithoutAddresses(const Plan &plan, int rank) {
  RankMemory memory{plan, rank};
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferInfo &buffer = plan.buffers[i];
    MemoryView view = MemoryView::ofBuffer(plan, i, rank);
    // Read where it is mapped, a part of a constant has the strides of the whole.
    if (plan.isMapped(buffer) && !view.box.empty())
      view.strides = MemoryView::rowMajor(buffer.type, layout::Box::ofShape(buffer.shape), nullptr).strides;
    memory.buffers.push_back(std::move(view));
  }
  return memory;
}

/// Bytes of the items that are alive at each position from `first` to `last`.
static std::vector<int64_t> aliveBytes(const std::vector<ArenaItem> &items, int64_t first, int64_t last) {
  // What begins at a position, less what ended at the one before.
  std::vector<int64_t> changes(last - first + 2);
  for (const ArenaItem &item : items) {
    if (item.bytes == 0 || item.last < first)
      continue;
    changes[std::max(item.first, first) - first] += alignedSize(item.bytes);
    changes[item.last + 1 - first] -= alignedSize(item.bytes);
  }
  changes.pop_back();
  std::partial_sum(changes.begin(), changes.end(), changes.begin());
  return changes;
}

struct MemoryEstimator::State {
  const Plan &plan;
  int threads;
  /// The sizes of arenas by the bytes and lives of what is in them.
  std::map<std::vector<int64_t>, int64_t> arenas;
  /// Of each exchange that was looked at.
  std::map<const ExchangeCall *, std::vector<MoveScheduler>> schedulers = {};

  const std::vector<MoveScheduler> &getSchedulers(const ExchangeCall &call) {
    auto [entry, isNew] = schedulers.try_emplace(&call);
    if (isNew)
      entry->second = createSchedulers(plan, call);
    return entry->second;
  }

  /// Those that are known already get no places.
  int64_t getArena(std::vector<ArenaItem> &items) {
    std::vector<int64_t> key;
    key.reserve(3 * items.size());
    for (const ArenaItem &item : items)
      if (item.bytes > 0)
        key.insert(key.end(), {item.bytes, item.first, item.last});
    auto [entry, isNew] = arenas.try_emplace(std::move(key), 0);
    if (isNew)
      entry->second = planArena(items);
    return entry->second;
  }
};

MemoryEstimator::MemoryEstimator(const Plan &plan, int threads) : state(new State{plan, threads, {}}) {}
MemoryEstimator::MemoryEstimator(MemoryEstimator &&) noexcept = default;
MemoryEstimator::~MemoryEstimator() = default;

absl::StatusOr<MemoryUse> MemoryEstimator::estimate(int rank) {
  const Plan &plan = state->plan;
  MemoryUse use;
  SessionStatistics &result = use.statistics;
  RankMemory memory = memoryWithoutAddresses(plan, rank);
  std::vector<int64_t> prologueScratch, stepScratch;
  auto addSteps = [&](const std::vector<StepInfo> &steps, bool inPrologue, std::vector<int64_t> &scratch) {
    for (const StepInfo &step : steps) {
      absl::StatusOr<CallBytes> bytes = plan.isForDevice() ? deviceCallBytes(memory, step, inPrologue)
                                                           : hostCallBytes(memory, step, inPrologue, state->threads);
      if (!bytes.ok())
        return bytes.status();
      scratch.push_back(bytes->scratch);
      result.scratchBytes = std::max(result.scratchBytes, bytes->scratch);
      result.packedBytes += bytes->packed;
    }
    return absl::OkStatus();
  };
  if (absl::Status status = addSteps(plan.prologue, /*inPrologue=*/true, prologueScratch); !status.ok())
    return status;
  if (absl::Status status = addSteps(plan.steps, /*inPrologue=*/false, stepScratch); !status.ok())
    return status;
  auto [items, arenaBytes, startBytes, packing] = planArena(
      memory, prologueScratch, stepScratch, [&](std::vector<ArenaItem> &all) { return state->getArena(all); });
  result.arenaBytes = arenaBytes;
  result.startBytes = startBytes;
  // They are in the arena of the prologue's own.
  for (size_t i = 0; i < packing.transient.size(); ++i)
    if (packing.transient[i])
      items[i].bytes = 0;
  result.persistentBytes = stagedBytes(memory);
  Positions positions(plan);
  use.aliveBytes = aliveBytes(items, positions.inputs, positions.outputs);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferInfo &buffer = plan.buffers[i];
    int64_t bytes = memory.buffers[i].box.volume() * elementSize(buffer.type);
    if (plan.isMapped(buffer))
      result.weightBytes += packing.readInRuns[i] ? bytes : 0;
    else if (buffer.kind != BufferKind::Arena && !packing.transient[i])
      (buffer.kind == BufferKind::Constant ? result.copiedBytes : result.persistentBytes) +=
          alignedSize(memory.buffers[i].bytes());
  }
  return use;
}

absl::StatusOr<SessionStatistics> MemoryEstimator::estimateStatistics(int rank) {
  absl::StatusOr<MemoryUse> use = estimate(rank);
  if (!use.ok())
    return use.status();
  const Plan &plan = state->plan;
  RankMemory memory = memoryWithoutAddresses(plan, rank);
  for (const std::vector<StepInfo> *steps : {&plan.prologue, &plan.steps})
    for (const StepInfo &step : *steps)
      if (const auto *call = std::get_if<ExchangeCall>(&step.action))
        use->statistics.messageBytes += messageBytes(memory, *call, state->getSchedulers(*call));
  return use->statistics;
}

absl::StatusOr<SessionStatistics> dovetail::runtime::estimateStatistics(const Plan &plan, int rank, int threads) {
  return MemoryEstimator(plan, threads).estimateStatistics(rank);
}
