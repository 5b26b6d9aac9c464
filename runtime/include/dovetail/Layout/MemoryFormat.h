//===- MemoryFormat.h - How tensors lie in memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines in which order the elements of a tensor lie in memory, and the strides that follow. The attribute
// `#plan.format` is its twin in the IR, and kernels, views, messages and library calls take strides from here.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_MEMORYFORMAT_H
#define DOVETAIL_LAYOUT_MEMORYFORMAT_H

#include "dovetail/Layout/Box.h"

#include <span>
#include <string>
#include <vector>

namespace dovetail::layout {

/// The order of the dimensions in memory.
struct MemoryFormat {
  std::vector<int> order; ///< A permutation of the dimensions, outermost first.

  /// Stands for an extent or stride that is not known.
  static constexpr int64_t dynamic = -1;

  static MemoryFormat rowMajor(int rank);

  bool isRowMajor() const;
  /// `row-major`, or the order such as `0,2,3,1`.
  std::string str() const;
  /// Whether it is a format of tensors of `rank` dimensions; if not, and `why` is given, that says what is wrong.
  bool verify(size_t rank, std::string *why = nullptr) const;

  /// For each dimension the elements from one coordinate to the next in memory that holds these extents without gaps.
  /// `dynamic` where it depends on extents that are. Extents of 0 count as 1.
  std::vector<int64_t> strides(std::span<const int64_t> extents) const;
  /// The same in memory that holds `box`.
  std::vector<int64_t> strides(const Box &box) const;
};

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_MEMORYFORMAT_H
