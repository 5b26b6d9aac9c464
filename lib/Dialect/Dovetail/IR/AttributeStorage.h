//===- AttributeStorage.h - What attributes are stored with -----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the storage of DimShardingAttr.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_IR_ATTRIBUTESTORAGE_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_IR_ATTRIBUTESTORAGE_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail::detail {

/// Besides the parameters, what is asked of the pieces again and again: found once, as there may be as many of them as
/// ranks, and each pass and verifier asks.
struct DimShardingAttrStorage : mlir::AttributeStorage {
  using KeyTy = std::tuple<llvm::ArrayRef<mlir::StringAttr>, llvm::ArrayRef<int64_t>>;

  DimShardingAttrStorage(llvm::ArrayRef<mlir::StringAttr> axes, llvm::ArrayRef<int64_t> pieces,
                         llvm::ArrayRef<layout::Interval> intervals);

  KeyTy getAsKey() const { return KeyTy(axes, pieces); }
  bool operator==(const KeyTy &key) const { return KeyTy(axes, pieces) == key; }
  static llvm::hash_code hashKey(const KeyTy &key) { return llvm::hash_combine(std::get<0>(key), std::get<1>(key)); }
  static DimShardingAttrStorage *construct(mlir::AttributeStorageAllocator &allocator, const KeyTy &key);

  llvm::ArrayRef<mlir::StringAttr> axes;
  llvm::ArrayRef<int64_t> pieces;
  /// The same pieces.
  llvm::ArrayRef<layout::Interval> intervals;
  /// The least interval with the ends of all pieces, empty ones included; {0, 0} if there are none.
  layout::Interval span;
  /// No piece ends before it starts.
  bool isOrdered = true;
  /// Of the largest piece.
  int64_t largestSize = 0;
  /// [0, covered) is the longest part from 0 on each position of which lies in some piece.
  int64_t covered = 0;
  /// The pieces that are not empty tile [0, tiled) in order; -1 if they tile nothing so.
  int64_t tiled = 0;
};

} // namespace dovetail::detail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_IR_ATTRIBUTESTORAGE_H
