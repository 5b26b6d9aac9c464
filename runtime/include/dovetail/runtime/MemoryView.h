//===- MemoryView.h - Boxes of tensors in memory ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the box of a tensor that a rank holds lies in memory, and how elements get from one such memory to
// another.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_MEMORYVIEW_H
#define DOVETAIL_RUNTIME_MEMORYVIEW_H

#include "dovetail/runtime/Plan.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dovetail::runtime {

/// A box in memory. The memory is not owned.
struct MemoryView {
  /// Address of the element at the low corner of `box`.
  std::byte *data = nullptr;
  ElementType type = ElementType::F32;
  layout::Box box;
  /// For each logical dimension, elements between neighbours.
  std::vector<int64_t> strides;

  /// The densely packed view of `box` in `format`; `data` is null.
  static MemoryView packed(ElementType type, const layout::Box &box, const MemoryFormat &format);
  /// The same of what `rank` has of a buffer.
  static MemoryView ofBuffer(const Plan &plan, uint32_t buffer, int rank);
  static MemoryView rowMajor(ElementType type, const layout::Box &box, void *data);

  /// Bytes from the low corner to the end of the last element; 0 when the box is empty.
  int64_t bytes() const;
  /// Elements from `data` to the element at `coordinate` of `dim` and 0 of all other dimensions, relative to the box.
  int64_t offset(int dim, int64_t coordinate) const;
  /// The address of the low corner of `part`, a box inside of this one.
  std::byte *address(const layout::Box &part) const;
  /// The address that the element at global coordinate (0, ..., 0) would have.
  std::byte *origin() const;
  /// The same memory, but only `part` of it.
  MemoryView part(const layout::Box &part) const;
  /// Whether `box` lies here as in `packed`, without gaps. Where a dimension has one coordinate only, strides do not
  /// matter.
  bool isLike(const MemoryView &packed, const layout::Box &box) const;
};

/// A loop over elements in two memories; strides are in bytes.
struct BoxLoop {
  int64_t count, targetStride, sourceStride;
};

/// The elements of a box in two memories, ready to be walked through.
class BoxPair {
public:
  /// Elements at the very beginning of both memories; outermost loop first, at least one.
  BoxPair(int64_t elementBytes, std::vector<BoxLoop> loops) : elementBytes(elementBytes), loops(std::move(loops)) {}

  /// Appends a pair for all elements of `box`, which both views hold. Empty boxes need none.
  static void append(const MemoryView &target, const MemoryView &source, const layout::Box &box,
                     std::vector<BoxPair> &pairs);

  /// Calls `body(target, source, count, targetStride, sourceStride)` for runs of elements; strides are in bytes.
  template <typename Body> void forEachRun(std::byte *target, const std::byte *source, Body body) const {
    target += targetOffset;
    source += sourceOffset;
    const BoxLoop &inner = loops.back();
    int64_t index[maxLoops] = {};
    int outer = static_cast<int>(loops.size()) - 1;
    for (;;) {
      body(target, source, inner.count, inner.targetStride, inner.sourceStride);
      int loop = outer - 1;
      for (; loop >= 0; --loop) {
        target += loops[loop].targetStride;
        source += loops[loop].sourceStride;
        if (++index[loop] < loops[loop].count)
          break;
        target -= loops[loop].targetStride * loops[loop].count;
        source -= loops[loop].sourceStride * loops[loop].count;
        index[loop] = 0;
      }
      if (loop < 0)
        return;
    }
  }

  /// Copies all elements; `target` and `source` are the views' `data`.
  void copy(std::byte *target, const std::byte *source) const;
  /// Bytes of the innermost run when it is contiguous in both memories, else those of one element.
  int64_t contiguousBytes() const;

  int64_t getElementBytes() const { return elementBytes; }
  /// Bytes from the views' `data` to the first element.
  int64_t getTargetOffset() const { return targetOffset; }
  int64_t getSourceOffset() const { return sourceOffset; }
  const std::vector<BoxLoop> &getLoops() const { return loops; }

private:
  BoxPair() = default;

  static constexpr int maxLoops = 64; ///< No tensor has more dimensions.

  int64_t elementBytes = 0, targetOffset = 0, sourceOffset = 0;
  std::vector<BoxLoop> loops; ///< Outermost first; at least one.
};

/// Copies `box` from `source` to `target`, both of which hold it.
void copyBox(const MemoryView &target, const MemoryView &source, const layout::Box &box);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_MEMORYVIEW_H
