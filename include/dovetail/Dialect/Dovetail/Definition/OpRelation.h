//===- OpRelation.h - How an operator's dimensions relate to its loops -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the relation of operand dimensions to loops, at most one each, that follows from a definition.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_OPRELATION_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_OPRELATION_H

#include "dovetail/Dialect/Dovetail/Definition/Definition.h"

namespace dovetail {

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
/// reductions. Taps are not among them: needs go through all of them.
struct OpRelation {
  llvm::SmallVector<Loop> loops;
  /// For each operand, for each of its dimensions.
  llvm::SmallVector<llvm::SmallVector<DimRelation>> operands;
};

/// The relation of operands of these `types`. Of several loops that an index depends on it is the one whose iterations
/// need least.
OpRelation getRelation(const Definition &definition, mlir::TypeRange types);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_OPRELATION_H
