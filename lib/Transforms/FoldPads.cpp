//===- FoldPads.cpp - Fold padding into windows -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces padding before a convolution or a pooling by pads of its windows.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Calls/CallForm.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

#include <cmath>

namespace dovetail {
#define GEN_PASS_DEF_FOLDPADS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
/// The pads of a window operation after padding is folded into it.
struct Pads {
  SmallVector<int64_t> low, high;
};
} // namespace

/// The number that `pad` continues its operand with; none if it is not constant or the mode is another.
static std::optional<double> getPadValue(PadOp pad) {
  if (pad.getMode() != PadMode::Constant)
    return std::nullopt;
  return pad.getValue() ? getSplat(pad.getValue()) : 0.0;
}

/// The sums of pads, unless `pad` touches batch or channels, or crops what the window's own pads would bring back.
static std::optional<Pads> addPads(PadOp pad, ArrayRef<int64_t> windowLow, ArrayRef<int64_t> windowHigh) {
  Pads sums;
  auto add = [](ArrayRef<int64_t> outer, ArrayRef<int64_t> window, SmallVectorImpl<int64_t> &sum) {
    if (outer[0] != 0 || outer[1] != 0)
      return false;
    for (auto [a, b] : llvm::zip_equal(outer.drop_front(2), window)) {
      if (a < 0 && b > 0)
        return false;
      sum.push_back(a + b);
    }
    return true;
  };
  if (!add(pad.getLow(), windowLow, sums.low) || !add(pad.getHigh(), windowHigh, sums.high))
    return std::nullopt;
  return sums;
}

static LogicalResult foldIntoConv(ConvOp conv, PatternRewriter &rewriter) {
  auto pad = conv.getInput().getDefiningOp<PadOp>();
  if (!pad || getPadValue(pad) != 0.0)
    return failure();
  // Long sums of integers are exact where libraries have nothing to pad.
  int64_t terms = ShapedType::getNumElements(shapeOf(conv.getWeights()).drop_front());
  if (!isa<FloatType>(conv.getType().getElementType()) && terms > calls::mostExactTerms)
    return failure();
  std::optional<Pads> pads = addPads(pad, conv.getPadsLow(), conv.getPadsHigh());
  if (!pads)
    return failure();
  rewriter.replaceOpWithNewOp<ConvOp>(conv, pad.getOperand(), conv.getWeights(), conv.getStrides(), conv.getDilations(),
                                      pads->low, pads->high, conv.getGroups());
  return success();
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// True if no element of `value` is negative (but for NaN).
static bool isNonNegative(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<ReluOp, SigmoidOp, HardSigmoidOp>(op))
    return true;
  auto isNonNegativeNumber = [](Value operand) {
    std::optional<double> number = getSplat(operand);
    return number && *number >= 0;
  };
  // One side of a maximum is enough; a minimum, such as that of a clip, needs both.
  if (auto max = dyn_cast_if_present<MaxOp>(op))
    return isNonNegativeNumber(max.getLhs()) || isNonNegativeNumber(max.getRhs());
  if (auto min = dyn_cast_if_present<MinOp>(op))
    return (isNonNegative(min.getLhs()) && isNonNegativeNumber(min.getRhs())) ||
           (isNonNegative(min.getRhs()) && isNonNegativeNumber(min.getLhs()));
  return false;
}

/// True if every window of `pool` on `input` with these pads has an element of the tensor.
static bool windowsReachInside(PoolOp pool, RankedTensorType input, const Pads &pads) {
  for (auto [dim, kernel] : llvm::enumerate(pool.getKernel())) {
    int64_t extent = input.getDimSize(dim + 2), low = pads.low[dim];
    int64_t lastStart = (pool.getType().getDimSize(dim + 2) - 1) * pool.getStrides()[dim] - low;
    // Windows without gaps that begin no later than the last element and end behind the first.
    if (pool.getDilations()[dim] != 1 || low >= kernel || lastStart >= extent)
      return false;
  }
  return true;
}

/// The kind of pooling on the operand of `pad` that equals that of `pool` on its result; none if there is none.
static std::optional<PoolKind> getPaddedKind(PoolOp pool, PadOp pad, double padValue, const Pads &pads) {
  auto isZero = [](int64_t pad) { return pad == 0; };
  switch (pool.getKind()) {
  case PoolKind::Max:
    if (padValue == -std::numeric_limits<double>::infinity())
      return PoolKind::Max;
    // Zeros change nothing where a window has another element, none of which is negative.
    if (padValue == 0 && isNonNegative(pad.getOperand()) && windowsReachInside(pool, pad.getOperand().getType(), pads))
      return PoolKind::Max;
    return std::nullopt;
  case PoolKind::AverageIncludePad:
  case PoolKind::AverageExcludePad:
    // What was padding counts; what the window itself padded must do so, too.
    if (padValue == 0 && (pool.getKind() == PoolKind::AverageIncludePad ||
                          (llvm::all_of(pool.getPadsLow(), isZero) && llvm::all_of(pool.getPadsHigh(), isZero))))
      return PoolKind::AverageIncludePad;
    return std::nullopt;
  case PoolKind::Lp:
    return padValue == 0 ? std::optional(PoolKind::Lp) : std::nullopt;
  }
  llvm_unreachable("covered switch");
}

static LogicalResult foldIntoPool(PoolOp pool, PatternRewriter &rewriter) {
  auto pad = pool.getInput().getDefiningOp<PadOp>();
  std::optional<double> value = pad ? getPadValue(pad) : std::nullopt;
  std::optional<Pads> pads = value ? addPads(pad, pool.getPadsLow(), pool.getPadsHigh()) : std::nullopt;
  if (!pads)
    return failure();
  // A crop is not padding, and libraries refuse windows that lie in padding only.
  for (auto [low, high, kernel] : llvm::zip_equal(pads->low, pads->high, pool.getKernel()))
    if (low < 0 || high < 0 || low >= kernel || high >= kernel)
      return failure();
  std::optional<PoolKind> kind = getPaddedKind(pool, pad, *value, *pads);
  if (!kind)
    return failure();
  auto folded = PoolOp::create(rewriter, pool.getLoc(), pad.getOperand(), *kind, pool.getKernel(), pool.getStrides(),
                               pool.getDilations(), pads->low, pads->high, pool.getCeil(), pool.getP());
  // With `ceil`, a window that starts in the trailing pad is dropped, but not one that starts in trailing zeros.
  if (folded.getType() != pool.getType()) {
    rewriter.eraseOp(folded);
    return failure();
  }
  rewriter.replaceOp(pool, folded);
  return success();
}

namespace {
struct FoldPads : dovetail::impl::FoldPadsBase<FoldPads> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add(foldIntoConv);
    patterns.add(foldIntoPool);
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
