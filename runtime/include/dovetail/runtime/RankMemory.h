//===- RankMemory.h - Where the values of a rank lie ------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the memory of one rank as its steps see it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_RANKMEMORY_H
#define DOVETAIL_RUNTIME_RANKMEMORY_H

#include "dovetail/runtime/MemoryView.h"

#include "absl/status/status.h"

#include <span>
#include <string>
#include <vector>

namespace dovetail::runtime {

/// The buffers of a rank. Boxes, strides and types are known from the beginning; addresses when steps are bound.
struct RankMemory {
  const Plan &plan;
  int rank;
  /// The memory of each buffer.
  std::vector<MemoryView> buffers = {};
  /// Where kernels write indices that are out of range: a word for each check of the plan, zero without a report.
  int64_t *records = nullptr;
  /// A word for each count of the plan, as KernelAbi.h says. Null: there are none.
  int64_t *counts = nullptr;
  /// For each count of the plan what it is in this run, if it is given. Null: no loop has an end.
  const int64_t *lengths = nullptr;

  const MemoryView &memory(uint32_t tensor) const { return buffers[plan.tensors[tensor].buffer]; }
  /// The box of `tensor` on this rank.
  layout::Box box(uint32_t tensor) const { return plan.tensorBox(tensor, rank); }
  /// What this rank has of a loop of a library call, and of the first loops, those of the dimensions of `output`: the
  /// part of it that the call computes here.
  layout::Interval range(const LoopInfo &loop) const { return plan.loopRange(loop, rank); }
  layout::Box resultBox(const std::vector<LoopInfo> &loops, uint32_t output) const;
  /// The part of `range`, which this rank has of `loop`, that this run goes through.
  layout::Interval endAt(const LoopInfo &loop, layout::Interval range) const;
  /// The same of all of them.
  layout::Box loopBox(std::span<const LoopInfo> loops) const;
  /// Whether the value never changes after the prologue.
  bool isConstant(uint32_t tensor) const { return plan.bufferOf(tensor).kind != BufferKind::Arena; }
  /// That this rank holds `box` of `tensor`, which a step reads. Errors: DATA_LOSS.
  absl::Status checkHeld(uint32_t tensor, const layout::Box &box) const;
  /// `tensor 'x'`, as in messages.
  std::string name(uint32_t tensor) const;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_RANKMEMORY_H
