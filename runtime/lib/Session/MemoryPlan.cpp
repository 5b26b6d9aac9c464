//===- MemoryPlan.cpp - Memory of a rank -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MemoryPlan.h"

#include "dovetail/runtime/MemoryView.h"
#include "dovetail/runtime/Session.h"

#include <algorithm>

using namespace dovetail::runtime;

int64_t dovetail::runtime::bufferBytes(const Plan &plan, uint32_t buffer, int rank) {
  const BufferInfo &info = plan.buffers[buffer];
  return MemoryView::packed(info.type, plan.bufferBox(buffer, rank), info.format).bytes();
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
  for (const PortInfo &port : plan.inputs)
    use(port.tensor, positions.inputs);
  useSteps(plan.steps, positions.firstStep);
  for (const PortInfo &port : plan.outputs)
    use(port.tensor, positions.outputs);
  for (size_t i = 0; i < items.size(); ++i)
    if (plan.buffers[i].kind == BufferKind::Arena && items[i].last >= 0)
      items[i].bytes = bufferBytes(plan, i, rank);
  return items;
}

SessionStatistics dovetail::runtime::estimateStatistics(const Plan &plan, int rank) {
  SessionStatistics result;
  std::vector<ArenaItem> items = bufferLives(plan, rank);
  result.arenaBytes = planArena(items);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferInfo &buffer = plan.buffers[i];
    if (buffer.kind == BufferKind::Persistent)
      result.persistentBytes += bufferBytes(plan, i, rank);
    else if (buffer.kind == BufferKind::Constant)
      (buffer.format.isRowMajor() && !plan.isForDevice() ? result.weightBytes : result.copiedBytes) +=
          bufferBytes(plan, i, rank);
  }
  return result;
}
