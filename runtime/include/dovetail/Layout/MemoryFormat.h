//===- MemoryFormat.h - How tensors lie in memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines in which order the elements of a tensor lie in memory, and the strides and blocks that follow. The attribute
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

/// The order of the dimensions in memory. One of them may be cut into blocks: its place in the order is then that of
/// the blocks, and the elements of a block are innermost of all (`nChw16c`: order 0, 1, 2, 3 with dimension 1 in blocks
/// of 16).
///
/// Blocks are counted from the tensor's beginning, and memory consists of whole ones: that of a box goes from the block
/// of its first coordinate to that of its last. The rest of the tensor's last block, its tail, is always zero: whoever
/// writes an element before it writes the zeros, too.
struct MemoryFormat {
  std::vector<int> order; ///< A permutation of the dimensions, outermost first.
  int blockDim = -1;      ///< The dimension in blocks; negative if there is none.
  int64_t block = 1;      ///< Elements of a block.

  /// Stands for an extent or stride that is not known.
  static constexpr int64_t dynamic = -1;

  static MemoryFormat rowMajor(int rank);

  bool isBlocked() const { return blockDim >= 0; }
  bool isRowMajor() const;
  /// Whether both cut the same dimension into blocks of the same size, or none.
  bool hasBlocksOf(const MemoryFormat &other) const { return blockDim == other.blockDim && block == other.block; }
  /// `row-major`, or the order such as `0,2,3,1`, and blocks as in `0,1,2,3,16x1`.
  std::string str() const;
  /// Whether it is a format of tensors of `rank` dimensions; if not, and `why` is given, that says what is wrong.
  bool verify(size_t rank, std::string *why = nullptr) const;

  /// `range`, of coordinates of `dim`, with the rest of the blocks that it begins and ends in. May go beyond the
  /// tensor.
  Interval roundToBlocks(int dim, Interval range) const;
  /// Whether `box`, of a tensor of this shape, consists of whole blocks, the last of which may be cut by the tensor's
  /// end. Empty boxes do.
  bool hasWholeBlocks(const Box &box, std::span<const int64_t> shape) const;
  /// Of a tensor of this shape, the extent of the dimension in blocks; 0 if there is none.
  int64_t blockedExtent(std::span<const int64_t> shape) const { return isBlocked() ? shape[blockDim] : 0; }
  /// The elements in memory for `box`, of what its first and last block hold besides it, too.
  int64_t volume(const Box &box) const;

  /// For each dimension the elements from one coordinate to the next, or from block to block, in memory that holds
  /// these extents, beginning at a block, without gaps. `dynamic` where it depends on extents that are. Extents of 0
  /// count as 1.
  std::vector<int64_t> strides(std::span<const int64_t> extents) const;
  /// The same in memory that holds `box`.
  std::vector<int64_t> strides(const Box &box) const;
};

/// Whether `range`, not empty, of a dimension of `extent` consists of whole blocks of `block` elements, the last of
/// which may be cut by the end.
inline bool areWholeBlocks(Interval range, int64_t block, int64_t extent) {
  return range.lo % block == 0 && (range.hi % block == 0 || range.hi == extent);
}

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_MEMORYFORMAT_H
