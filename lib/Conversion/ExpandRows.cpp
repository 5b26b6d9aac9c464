//===- ExpandRows.cpp - Take folds of whole rows apart ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces folds of rows that no rank divides by others that gain by keeping the row in memory.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"

namespace dovetail {
#define GEN_PASS_DEF_EXPANDROWS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// Longer rows leave the nearest caches while code goes over them.
static constexpr int64_t kMaxRow = 1 << 14;

namespace {
struct ExpandRows : dovetail::impl::ExpandRowsBase<ExpandRows> {
  void runOnOperation() override;
};
} // namespace

/// Whether `op` folds over the last dimensions of its operands alone, each rank over all of them.
static bool foldsWholeRows(SplitOpInterface op) {
  if (!op.isReduction())
    return false;
  int64_t resultRank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  OpRelation relation = op.getRelation();
  int64_t row = 1;
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), relation.operands)) {
    auto type = cast<RankedTensorType>(operand.getType());
    ShardingAttr sharding = getSharding(type);
    bool isInRow = true;
    for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
      bool isFolded = dims[dim].loop >= resultRank;
      if (isFolded && ((sharding && sharding.getDims()[dim].isSplit()) || (type.getDimSize(dim) > 1 && !isInRow)))
        return false;
      isInRow &= isFolded || type.getDimSize(dim) == 1;
      if (isFolded)
        row *= type.getDimSize(dim);
    }
  }
  return row <= kMaxRow;
}

void ExpandRows::runOnOperation() {
  for (Operation &each : llvm::make_early_inc_range(getOperation().getBody().front())) {
    auto op = dyn_cast<SplitOpInterface>(each);
    if (!op || !foldsWholeRows(op))
      continue;
    OpBuilder builder(op);
    FailureOr<SmallVector<Value>> replacement = op.expandRows(builder);
    if (failed(replacement))
      continue;
    op->replaceAllUsesWith(*replacement);
    op->erase();
  }
}
