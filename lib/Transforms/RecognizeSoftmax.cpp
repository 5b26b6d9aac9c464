//===- RecognizeSoftmax.cpp - Softmax that is spelt out -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recognises softmax that exporters write as several operations.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_RECOGNIZESOFTMAX
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// The reduction of `operand` with which `value` is computed, if it is over one axis.
static ReduceOp getReduction(Value value, Value operand, ReduceKind kind) {
  auto reduce = value.getDefiningOp<ReduceOp>();
  return reduce && reduce.getOperand() == operand && reduce.getKind() == kind && reduce.getAxes().size() == 1
             ? reduce
             : ReduceOp();
}

/// exp(x - max(x)) / sum(exp(x - max(x))). Without the maximum it is not recognised: it would overflow elsewhere.
static LogicalResult recognizeSoftmax(DivOp div, PatternRewriter &rewriter) {
  auto exp = div.getLhs().getDefiningOp<ExpOp>();
  auto sub = exp ? exp.getOperand().getDefiningOp<SubOp>() : SubOp();
  if (!sub)
    return failure();
  Value x = sub.getLhs();
  ReduceOp sum = getReduction(div.getRhs(), exp, ReduceKind::Sum);
  ReduceOp max = getReduction(sub.getRhs(), x, ReduceKind::Max);
  if (!sum || !max || sum.getAxes() != max.getAxes() || x.getType() != div.getType())
    return failure();
  // Powers that something else reads would be computed twice.
  if (!llvm::all_of(exp->getUsers(), [&](Operation *user) { return user == div || user == sum; }))
    return failure();
  rewriter.replaceOpWithNewOp<SoftmaxOp>(div, x, sum.getAxes().front());
  return success();
}

namespace {
struct RecognizeSoftmax : dovetail::impl::RecognizeSoftmaxBase<RecognizeSoftmax> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(recognizeSoftmax);
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
