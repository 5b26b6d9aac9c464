//===- LineHeap.h - Heaps in the memory of a line -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines LineHeap, with which row programs put entries in order where they write them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_LINEHEAP_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_LINEHEAP_H

#include "dovetail/Dialect/Dovetail/Definition/LineBuilder.h"

namespace dovetail {

/// An integer of i32 that is the larger, the later `element`, a scalar of `type`, comes in ascending order, or with
/// `reverse` in descending order. Types have up to 32 bits. What is no number is larger than all numbers.
mlir::Value rankElement(ElementBuilder &elements, mlir::Value element, mlir::Type type, bool reverse = false);
/// Of type i64: ordered as its rank, an i32, and of equal ones the first, which `index` says (of i64, below 2^32), is
/// the larger.
mlir::Value packRank(ElementBuilder &elements, mlir::Value rank, mlir::Value index);
/// The rank and the index of a packed rank.
mlir::Value unpackRank(ElementBuilder &elements, mlir::Value packed);
mlir::Value unpackIndex(ElementBuilder &elements, mlir::Value packed);

/// A heap of entries, of one scalar or several each, at positions [0, size): of all entries the last one comes first.
/// Emits code.
class LineHeap {
public:
  using Entry = llvm::SmallVector<mlir::Value, 2>;

  virtual ~LineHeap() = default;

  virtual Entry read(mlir::Value position) = 0;
  virtual void write(mlir::Value position, const Entry &entry) = 0;
  /// i1: `a` comes before `b`, another entry.
  virtual mlir::Value isBefore(const Entry &a, const Entry &b) = 0;

  /// Makes a heap of the `size` entries that were written.
  void build(mlir::Value size);
  /// Puts `entry` into the heap of the first `size` entries, of which the one at `position` is free and all below it
  /// are in order.
  void sift(const Entry &entry, mlir::Value position, mlir::Value size);
  /// Puts all `size` entries of the heap in order.
  void sort(int64_t size);

protected:
  explicit LineHeap(ElementBuilder &elements) : elements(elements) {}

  ElementBuilder &elements;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_LINEHEAP_H
