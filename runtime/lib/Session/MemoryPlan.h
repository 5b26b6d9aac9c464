//===- MemoryPlan.h - Memory of a rank -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_MEMORYPLAN_H
#define DOVETAIL_RUNTIME_SESSION_MEMORYPLAN_H

#include "Arena.h"
#include "PackingPlan.h"

#include "dovetail/runtime/Plan.h"

#include <functional>

namespace dovetail::runtime {

/// Positions in the life of a session: the prologue's steps, the writing of inputs, the steps, the reading of outputs.
struct Positions {
  explicit Positions(const Plan &plan)
      : inputs(plan.prologue.size()), firstStep(inputs + 1), outputs(firstStep + plan.steps.size()) {}

  int64_t inputs, firstStep, outputs;
};

/// One item for each buffer: when its memory is needed on `rank`, and how much; no bytes for those outside of the
/// arena.
std::vector<ArenaItem> bufferLives(const Plan &plan, int rank);

/// Where everything lies in a rank's arena, and when.
struct ArenaPlan {
  std::vector<ArenaItem> items; ///< One for each buffer, then scratch memory of the prologue's steps and of the others.
  int64_t bytes = 0;
  /// Memory that is there while the prologue runs, in which lie the buffers that `packing` says are transient.
  int64_t startBytes = 0;
  PackingPlan packing;
};

/// Gives items places, as `planArena` of items does, or only says how much they take together.
using ItemPlanner = std::function<int64_t(std::vector<ArenaItem> &items)>;

/// Plans the arena of steps that need so much scratch memory, and memory of the prologue, which takes no more than the
/// arena, unless one piece is larger. `memory` needs no addresses.
ArenaPlan planArena(
    const RankMemory &memory, const std::vector<int64_t> &prologueScratch, const std::vector<int64_t> &stepScratch,
    const ItemPlanner &planItems = [](std::vector<ArenaItem> &items) { return planArena(items); });

/// Bytes of a buffer on `rank`, as it lies in memory.
int64_t bufferBytes(const Plan &plan, uint32_t buffer, int rank);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_MEMORYPLAN_H
