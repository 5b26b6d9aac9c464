//===- WorkModel.cpp - How long operations take ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements WorkModel.
//
//===----------------------------------------------------------------------===//

#include "WorkModel.h"

using namespace mlir;
using namespace dovetail;

// Of one core of a server's CPU. They weigh operations against each other: products, which libraries do, against folds
// and elements, which are compiled, and against what memory takes.
static constexpr double kProductsPerSecond = 5e10;
static constexpr double kElementsPerSecond = 2e9;
static constexpr double kBytesPerSecond = 1e10;

WorkModel::WorkModel(DefinitionOpInterface op, const OpRelation &relation) {
  Definition definition = op.getDefinition();
  double iterations = 1;
  for (const Loop &loop : definition.loops)
    // Of what is looked up one iteration alone counts; the terms of parts are those of the dimension.
    if (!loop.isLookup() && loop.kind != LoopKind::Part)
      iterations *= static_cast<double>(loop.extent);
  computing = iterations / (definition.isProduct ? kProductsPerSecond : kElementsPerSecond);
  double bytes = 0;
  for (Type type : op->getResultTypes())
    bytes += static_cast<double>(getByteSize(cast<RankedTensorType>(type)));
  writing = bytes / kBytesPerSecond;
  resultRank = definition.resultRank;
}

static double getLargestShare(const Loop &loop, DimShardingAttr sharding) {
  if (!sharding.isSplit() || loop.extent == 0)
    return 1;
  int64_t largest = 0;
  for (unsigned i = 0, e = sharding.getNumPieces(); i < e; ++i)
    largest = std::max(largest, sharding.getPiece(i).size());
  return static_cast<double>(largest) / static_cast<double>(loop.extent);
}

double WorkModel::getLargestShare(const OpRelation &relation, ArrayRef<DimShardingAttr> loops) {
  // Loops are split over different axes, so that some rank has the largest piece of each. What is looked up counts for
  // its owner.
  double share = 1;
  for (auto [loop, sharding] : llvm::zip_equal(relation.loops, loops))
    share *= ::getLargestShare(loop, sharding);
  return share;
}

double WorkModel::getSeconds(const OpRelation &relation, ArrayRef<DimShardingAttr> loops) const {
  double resultShare = 1;
  for (unsigned dim = 0; dim < resultRank; ++dim)
    resultShare *= ::getLargestShare(relation.loops[dim], loops[dim]);
  return getSeconds(getLargestShare(relation, loops), resultShare);
}

double WorkModel::getSeconds(double iterationShare, double resultShare) const {
  return computing * iterationShare + writing * resultShare;
}
