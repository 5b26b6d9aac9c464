//===- SinkReshapes.cpp - Move reshapes behind epilogues -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves the reshape of a product or a norm behind the bias, the activation and the like that follow it, so that these
// can be computed with the product.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "ShapePatterns.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

std::optional<SmallVector<int64_t>> dovetail::pullBack(ArrayRef<int64_t> part, ArrayRef<int64_t> from,
                                                       ArrayRef<int64_t> to) {
  SmallVector<int64_t> result(from.size(), 1);
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && from[i] == 1) {
      ++i;
      continue;
    }
    if (j < to.size() && to[j] == 1) {
      ++j;
      continue;
    }
    size_t firstFrom = i, firstTo = j;
    int64_t fromProduct = from[i++], toProduct = to[j++];
    while (fromProduct != toProduct) {
      if (fromProduct < toProduct)
        fromProduct *= from[i++];
      else
        toProduct *= to[j++];
    }
    bool varies = false, isWhole = true;
    for (size_t dim = firstTo; dim < j; ++dim) {
      varies |= part[dim] != 1;
      isWhole &= part[dim] == to[dim];
    }
    if (!varies)
      continue;
    if (!isWhole)
      return std::nullopt;
    std::copy(from.begin() + firstFrom, from.begin() + i, result.begin() + firstFrom);
  }
  return result;
}

/// True if `value` is a product or a norm, or comes from one by elementwise operations.
static bool isFromProduct(Value value, int depth = 0) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<ConvOp, ConvTransposeOp, MatMulOp, GroupNormOp, LayerNormOp>(op))
    return true;
  constexpr int maxDepth = 4;
  return op && depth < maxDepth && op->hasTrait<dovetail::Elementwise>() &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return isFromProduct(operand, depth + 1); });
}

namespace {
struct SinkBelowEpilogue : RewritePattern {
  explicit SinkBelowEpilogue(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<dovetail::Elementwise>())
      return failure();
    RankedTensorType type = typeOf(op->getResult(0));
    for (Value operand : op->getOperands()) {
      auto reshape = getSoleProducer<ReshapeOp>(operand, op);
      if (reshape && shapeOf(reshape) == type.getShape() && type.getNumElements() != 0 &&
          isFromProduct(reshape.getOperand()))
        return sink(op, reshape, rewriter);
    }
    return failure();
  }

private:
  static LogicalResult sink(Operation *op, ReshapeOp reshape, PatternRewriter &rewriter) {
    ArrayRef<int64_t> from = shapeOf(reshape.getOperand()), to = shapeOf(reshape);
    // The shapes in which operands are read.
    SmallVector<SmallVector<int64_t>> shapes;
    for (Value operand : op->getOperands()) {
      auto other = operand.getDefiningOp<ReshapeOp>();
      bool isReshaped = other && shapeOf(other) == to && shapeOf(other.getOperand()) == from;
      if (!isReshaped && !isConstantOnly(operand) && typeOf(operand).getNumElements() != 1)
        return failure();
      std::optional<SmallVector<int64_t>> shape = pullBack(alignedShape(operand, to.size()), from, to);
      if (!shape)
        return failure();
      shapes.push_back(std::move(*shape));
    }
    SmallVector<Value> operands;
    for (auto [operand, shape] : llvm::zip_equal(op->getOperands(), shapes)) {
      auto other = operand.getDefiningOp<ReshapeOp>();
      bool isReshaped = other && shapeOf(other.getOperand()) == ArrayRef(shape);
      operands.push_back(isReshaped ? other.getOperand() : reshapeTo(rewriter, operand.getLoc(), operand, shape));
    }
    Operation *copy = rewriter.clone(*op);
    copy->setOperands(operands);
    copy->getResult(0).setType(typeOf(op->getResult(0)).clone(from));
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op->getResult(0).getType(), copy->getResult(0));
    return success();
  }
};
} // namespace

void dovetail::populateSinkReshapes(RewritePatternSet &patterns) {
  patterns.add<SinkBelowEpilogue>(patterns.getContext());
}
