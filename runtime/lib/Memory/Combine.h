//===- Combine.h - Reductions of partial values -----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_MEMORY_COMBINE_H
#define DOVETAIL_RUNTIME_MEMORY_COMBINE_H

#include "dovetail/runtime/MemoryView.h"

namespace dovetail::runtime {

/// Combines the elements of `box` of `source` into those of `target`: target = target (kind) source. Prepared once, so
/// that running it allocates nothing. For `Moments` the last dimension, of extent 3 and whole in `box`, holds (count,
/// mean, sum of squared deviations).
class Combination {
public:
  Combination(layout::ReductionKind kind, const MemoryView &target, const MemoryView &source, const layout::Box &box);

  /// The same from what the getters say.
  Combination(layout::ReductionKind kind, ElementType type, std::vector<BoxPair> pairs, int64_t targetMoment,
              int64_t sourceMoment)
      : kind(kind), type(type), targetMoment(targetMoment), sourceMoment(sourceMoment), pairs(std::move(pairs)) {}

  /// `target` and `source` are the views' `data`.
  void run(std::byte *target, const std::byte *source) const;

  layout::ReductionKind getKind() const { return kind; }
  ElementType getType() const { return type; }
  /// Bytes between the numbers of a triple; `pairs` walk over the first ones.
  int64_t getTargetMoment() const { return targetMoment; }
  int64_t getSourceMoment() const { return sourceMoment; }
  const std::vector<BoxPair> &getPairs() const { return pairs; }

private:
  layout::ReductionKind kind;
  ElementType type;
  int64_t targetMoment = 0, sourceMoment = 0; ///< Bytes between the numbers of a triple.
  std::vector<BoxPair> pairs;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_MEMORY_COMBINE_H
