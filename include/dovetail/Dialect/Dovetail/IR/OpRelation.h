//===- OpRelation.h - How an operator's dimensions relate to its loops -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what PartitionableOpInterface returns: loops, and the relation of operand dimensions to them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_OPRELATION_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_OPRELATION_H

#include "dovetail/Dialect/Dovetail/IR/DovetailEnums.h"
#include "dovetail/Layout/DimMap.h"
#include "llvm/ADT/SmallVector.h"

namespace dovetail {

/// What splitting a loop means.
enum class LoopKind {
  /// A dimension of the result: every rank computes its part.
  Parallel,
  /// A loop over which terms are combined: every rank gets a partial result.
  Reduction,
  /// A dimension of the result that is also reduced (softmax, normalisation):
  /// may be split after the operation has been decomposed.
  Composite,
  /// Cannot be split.
  Whole
};

/// One loop of an operation, over [0, extent).
struct Loop {
  int64_t extent;
  LoopKind kind = LoopKind::Parallel;
  /// For reductions, how terms combine.
  ReduceKind reduction = ReduceKind::Sum;
};

/// Relation of one operand dimension to at most one loop. `loop` is -1 when the map is `whole` or `broadcastPoint`.
struct DimRelation {
  int loop = -1;
  layout::DimMap map = layout::DimMap::whole();

  /// The dimension has the same coordinates as the loop.
  static DimRelation identity(int loop) { return {loop, layout::DimMap::identity()}; }
  /// All of the dimension is needed, whatever the loops.
  static DimRelation whole() { return {-1, layout::DimMap::whole()}; }
  /// A dimension of extent 1 that is repeated.
  static DimRelation broadcast() { return {-1, layout::DimMap::broadcastPoint()}; }
};

/// The iteration space of an operation. Loops 0 .. resultRank-1 are the dimensions of the result; the others are
/// reductions.
struct OpRelation {
  llvm::SmallVector<Loop> loops;
  /// For each operand, for each of its dimensions.
  llvm::SmallVector<llvm::SmallVector<DimRelation>> operands;
};

/// The memory format that an operation is best served by, for its operands of the result's rank and its result.
enum class FormatPreference {
  /// Whatever its operands have.
  Any,
  /// Channels (dimension 1) innermost.
  ChannelsLast,
  /// Dimensions in order.
  RowMajor
};

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_OPRELATION_H
