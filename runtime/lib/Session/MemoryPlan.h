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

#include "dovetail/runtime/Plan.h"

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

/// Appends scratch memory of the step at `position`; returns its number.
int64_t addScratch(std::vector<ArenaItem> &items, int64_t position, int64_t bytes);

/// Bytes of a buffer on `rank`, as it lies in memory.
int64_t bufferBytes(const Plan &plan, uint32_t buffer, int rank);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_MEMORYPLAN_H
