//===- FormAttention.cpp - Form attention ---------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes attention of products of queries and keys, their softmax, and products of that and values.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/Ops/AttentionOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_FORMATTENTION
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
/// What stands between the product of queries and keys and the softmax.
struct Scores {
  MatMulOp product;
  double scale = 1;
  Value mask;
  bool isInverted = false; ///< The mask chooses what is left out.
  double fill = 0;
};
} // namespace

/// `value` as a product, scaled by constants. Nothing else may use what is in between.
static std::optional<Scores> findScaled(Value value) {
  Scores scores;
  while (true) {
    if (auto product = getSoleProducer<MatMulOp>(value)) {
      scores.product = product;
      return scores;
    }
    std::optional<double> factor;
    if (auto mul = getSoleProducer<MulOp>(value)) {
      value = mul.getLhs();
      factor = getSplat(mul.getRhs());
      if (!factor) {
        factor = getSplat(mul.getLhs());
        value = mul.getRhs();
      }
    } else if (auto div = getSoleProducer<DivOp>(value)) {
      value = div.getLhs();
      factor = getSplat(div.getRhs());
      if (factor)
        factor = 1 / *factor;
    }
    if (!factor)
      return std::nullopt;
    scores.scale *= *factor;
  }
}

/// The same with a mask, if there is one.
static std::optional<Scores> findScores(Value value) {
  if (auto add = getSoleProducer<AddOp>(value)) {
    for (auto [side, other] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
      if (std::optional<Scores> scores = findScaled(side); scores && side.getType() == value.getType()) {
        scores->mask = other;
        return scores;
      }
    return std::nullopt;
  }
  if (auto select = getSoleProducer<SelectOp>(value)) {
    for (bool isInverted : {false, true}) {
      Value side = isInverted ? select.getOnFalse() : select.getOnTrue(),
            other = isInverted ? select.getOnTrue() : select.getOnFalse();
      std::optional<double> fill = getSplat(other);
      std::optional<Scores> scores = findScaled(side);
      if (!fill || !scores || side.getType() != value.getType())
        continue;
      scores->mask = select.getCondition();
      scores->isInverted = isInverted;
      scores->fill = *fill;
      return scores;
    }
    return std::nullopt;
  }
  return findScaled(value);
}

/// `value` with its last two dimensions in the other order.
static Value swapLast(OpBuilder &builder, Location loc, Value value) {
  int64_t rank = typeOf(value).getRank();
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(rank));
  // What is in another order already is put into that one at once.
  if (auto transpose = value.getDefiningOp<TransposeOp>()) {
    order.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
    value = transpose.getOperand();
  }
  std::swap(order[rank - 2], order[rank - 1]);
  if (llvm::is_sorted(order))
    return value;
  return TransposeOp::create(builder, loc, value, order);
}

/// `value` with dimensions of extent 1 before all others.
static Value extendTo(OpBuilder &builder, Location loc, Value value, int64_t rank) {
  return reshapeTo(builder, loc, value, alignedShape(value, rank));
}

namespace {
/// Of products with a softmax before them, where scores are `least` elements or more.
struct AttentionPattern : OpRewritePattern<MatMulOp> {
  AttentionPattern(MLIRContext *context, int64_t least) : OpRewritePattern(context), least(least) {}

  LogicalResult matchAndRewrite(MatMulOp product, PatternRewriter &rewriter) const override;

  int64_t least;
};

struct FormAttention : dovetail::impl::FormAttentionBase<FormAttention> {
  using FormAttentionBase::FormAttentionBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<AttentionPattern>(&getContext(), minScores.getValue());
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

LogicalResult AttentionPattern::matchAndRewrite(MatMulOp product, PatternRewriter &rewriter) const {
  auto softmax = getSoleProducer<SoftmaxOp>(product.getLhs());
  int64_t rank = product.getType().getRank();
  if (!softmax || softmax.getLog() || !product.getType().getElementType().isF32() ||
      softmax.getType().getRank() != rank || static_cast<int64_t>(softmax.getAxis()) != rank - 1)
    return failure();
  ArrayRef<int64_t> shape = softmax.getType().getShape();
  if (shape[rank - 2] * shape[rank - 1] < least || shape[rank - 1] == 0)
    return failure();
  std::optional<Scores> scores = findScores(softmax.getOperand());
  if (!scores || scores->product.getType() != softmax.getType())
    return failure();
  Value query = scores->product.getLhs(), keys = scores->product.getRhs(), value = product.getRhs();
  // Who shares keys or values broadcasts them, and not the other way round.
  auto isBatchOf = [&](Value operand, bool mayBroadcast) {
    ArrayRef<int64_t> own = shapeOf(operand).drop_back(2), all = product.getType().getShape().drop_back(2);
    if (!mayBroadcast)
      return own == all;
    return own.size() <= all.size() && llvm::all_of(llvm::zip(llvm::reverse(own), llvm::reverse(all)), [](auto pair) {
             return std::get<0>(pair) == 1 || std::get<0>(pair) == std::get<1>(pair);
           });
  };
  if (!isBatchOf(query, false) || !isBatchOf(keys, true) || !isBatchOf(value, true))
    return failure();
  Location loc = product.getLoc();
  Value mask = scores->mask;
  if (mask && scores->isInverted)
    mask = NotOp::create(rewriter, loc, mask);
  keys = extendTo(rewriter, loc, swapLast(rewriter, loc, keys), rank);
  auto attention = AttentionOp::create(
      rewriter, loc, product.getType(), query, keys, extendTo(rewriter, loc, value, rank), mask,
      rewriter.getF32FloatAttr(static_cast<float>(scores->scale)),
      rewriter.getF32FloatAttr(static_cast<float>(scores->fill)),
      /*heads=*/DenseI64ArrayAttr(), /*offsets=*/DenseI64ArrayAttr(), /*restarts=*/DenseI64ArrayAttr());
  attention->setDiscardableAttrs(product->getDiscardableAttrDictionary());
  rewriter.replaceOp(product, attention);
  return success();
}
