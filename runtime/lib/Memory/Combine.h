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
/// that running it allocates nothing.
class Combination {
public:
  Combination(layout::ReductionKind kind, const MemoryView &target, const MemoryView &source, const layout::Box &box);

  /// The same from what the getters say.
  Combination(layout::ReductionKind kind, ElementType type, std::vector<BoxPair> pairs)
      : kind(kind), type(type), pairs(std::move(pairs)) {}

  /// `target` and `source` are the views' `data`.
  void run(std::byte *target, const std::byte *source) const;

  layout::ReductionKind getKind() const { return kind; }
  ElementType getType() const { return type; }
  const std::vector<BoxPair> &getPairs() const { return pairs; }

private:
  layout::ReductionKind kind;
  ElementType type;
  std::vector<BoxPair> pairs;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_MEMORY_COMBINE_H
