//===- BoxCopy.h - Elements from memory to memory ------------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines copies and combinations of the elements of boxes, at addresses: what movers and devices prepare.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BOXCOPY_H
#define DOVETAIL_RUNTIME_BOXCOPY_H

#include "dovetail/runtime/MemoryView.h"

#include <vector>

namespace dovetail::runtime {

/// A box of elements with strides in two memories, innermost loop last; at least one loop. Strides are in bytes. See
/// BoxPair.
struct StridedBox {
  std::byte *target;
  const std::byte *source;
  int64_t elementBytes; ///< 1, 2, 4 or 8.
  std::vector<BoxLoop> loops;
};

/// Partial values to be combined: target = target (kind) source.
struct CombinationDescription {
  layout::ReductionKind kind;
  ElementType type;
  std::vector<StridedBox> boxes; ///< Disjoint in the target.
};

/// The elements of `pairs` at these addresses.
std::vector<StridedBox> stridedBoxes(const std::vector<BoxPair> &pairs, std::byte *target, const std::byte *source);

/// Appends what copies `box`, which both views hold, between their data.
void appendCopies(const MemoryView &target, const MemoryView &source, const layout::Box &box,
                  std::vector<StridedBox> &copies);

/// What combines `box` of both views.
CombinationDescription describeCombination(layout::ReductionKind kind, const MemoryView &target,
                                           const MemoryView &source, const layout::Box &box);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BOXCOPY_H
