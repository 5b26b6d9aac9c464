//===- SplitFacts.h - What moves where a dimension is split -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares getSplitFacts, which follows a dimension of a value through a graph and says, from definitions alone, what
// it takes to have it split.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_SHARDING_SPLITFACTS_H
#define DOVETAIL_SHARDING_SPLITFACTS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringRef.h"

#include <map>

namespace dovetail {

/// What moves between ranks; the worse comes later.
enum class SplitFact {
  Halo,  ///< Elements beyond the cuts, which windows read.
  Order, ///< Elements that go to another rank, as a dimension is reversed, cut off or repeated.
  Sum,   ///< Parts of sums, all of the result's extents, or of means and the like.
  Parts, ///< What ranks make of their terms, for each element of the result.
  Carry, ///< What a running sum has come to at each cut.
  Owner, ///< What is looked up, from the rank that has it.
  Whole  ///< All of the dimension is brought together, or another one is split instead.
};

/// `halo`, as documents and tools name it.
llvm::StringRef stringifySplitFact(SplitFact fact);

/// Movements, each with the first operation that causes it.
using SplitFacts = std::map<SplitFact, mlir::Operation *>;

/// Movements where dimension `dim` of `value` is cut in the middle, or near it where strides ask for that. The cut is
/// followed through all that is computed of the value, as far as it goes. None: ranks compute their parts. Graphs are
/// those from before shardings are chosen.
SplitFacts getSplitFacts(mlir::Value value, int64_t dim);

} // namespace dovetail

#endif // DOVETAIL_SHARDING_SPLITFACTS_H
