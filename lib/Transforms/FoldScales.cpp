//===- FoldScales.cpp - Fold factors into weights -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Multiplies the weights of convolutions and matrix products, and other constant factors, by constant factors of their
// results, and adds constant summands up.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"
#include "mlir/Dialect/Traits.h"

namespace dovetail {
#define GEN_PASS_DEF_FOLDSCALES
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
/// `product * factor` or `product / factor`.
struct Scaling {
  Value product, factor;
  bool divides;

  /// `value` scaled in the same way.
  Value apply(OpBuilder &builder, Location loc, Value value, Value by) const {
    if (divides)
      return DivOp::create(builder, loc, value, by);
    return MulOp::create(builder, loc, value, by);
  }
};
} // namespace

/// Reads `op` as the scaling of the one use of a result of `OpT` by a constant that does not enlarge it. What is
/// constant as a whole is computed later; its factors could take turns for ever.
template <typename OpT> static std::optional<Scaling> getScaling(Operation *op) {
  std::optional<Scaling> scaling;
  if (auto mul = dyn_cast<MulOp>(op)) {
    scaling = Scaling{mul.getLhs(), mul.getRhs(), false};
    if (!getSoleProducer<OpT>(scaling->product))
      std::swap(scaling->product, scaling->factor);
  } else if (auto div = dyn_cast<DivOp>(op)) {
    scaling = Scaling{div.getLhs(), div.getRhs(), true};
  }
  if (!scaling || !getSoleProducer<OpT>(scaling->product) || scaling->product.getType() != op->getResult(0).getType() ||
      !isModerateConstant(scaling->factor) || isConstantOnly(scaling->product))
    return std::nullopt;
  // Infinite weights would give NaN where infinite results were divided.
  if (scaling->divides && llvm::is_contained(*getFloats(scaling->factor), 0.0))
    return std::nullopt;
  return scaling;
}

/// `factor`, which is 1 in every dimension but `dim` of a value of this rank, as a tensor of the given shape of as many
/// elements; a scalar if it has one element. Null if it varies elsewhere.
static Value alignFactor(OpBuilder &builder, Location loc, Value factor, int64_t rank, int64_t dim,
                         ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> extents = shapeOf(factor);
  if (typeOf(factor).getNumElements() == 1)
    return reshapeTo(builder, loc, factor, {});
  int64_t offset = rank - extents.size();
  for (auto [i, extent] : llvm::enumerate(extents))
    if (extent != 1 && static_cast<int64_t>(i) + offset != dim)
      return {};
  return reshapeTo(builder, loc, factor, shape);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

static LogicalResult scaleConv(Operation *op, PatternRewriter &rewriter) {
  std::optional<Scaling> scaling = getScaling<ConvOp>(op);
  auto conv = scaling ? scaling->product.getDefiningOp<ConvOp>() : ConvOp();
  if (!conv || !isConstantOnly(conv.getWeights()))
    return failure();
  int64_t rank = conv.getType().getRank();
  SmallVector<int64_t> shape(rank, 1);
  shape[0] = conv.getType().getDimSize(1);
  Value factor = alignFactor(rewriter, op->getLoc(), scaling->factor, rank, 1, shape);
  if (!factor)
    return failure();
  Value weights = scaling->apply(rewriter, conv.getLoc(), conv.getWeights(), factor);
  rewriter.replaceOpWithNewOp<ConvOp>(op, conv.getInput(), weights, conv.getStrides(), conv.getDilations(),
                                      conv.getPadsLow(), conv.getPadsHigh(), conv.getGroups());
  return success();
}

static LogicalResult scaleConvTranspose(Operation *op, PatternRewriter &rewriter) {
  std::optional<Scaling> scaling = getScaling<ConvTransposeOp>(op);
  auto conv = scaling ? scaling->product.getDefiningOp<ConvTransposeOp>() : ConvTransposeOp();
  if (!conv || !isConstantOnly(conv.getWeights()))
    return failure();
  // Weights are [C, O/groups, window...], where the groups divide C: with a dimension for the groups, the factor is
  // [groups, 1, O/groups, 1...].
  ArrayRef<int64_t> plain = shapeOf(conv.getWeights());
  int64_t groups = conv.getGroups();
  SmallVector<int64_t> grouped{groups, plain[0] / groups};
  llvm::append_range(grouped, plain.drop_front());
  SmallVector<int64_t> shape(grouped.size(), 1);
  shape[0] = groups;
  shape[2] = plain[1];
  Location loc = conv.getLoc();
  Value factor = alignFactor(rewriter, op->getLoc(), scaling->factor, conv.getType().getRank(), 1, shape);
  if (!factor)
    return failure();
  Value weights = scaling->apply(rewriter, loc, reshapeTo(rewriter, loc, conv.getWeights(), grouped), factor);
  rewriter.replaceOpWithNewOp<ConvTransposeOp>(op, conv.getInput(), reshapeTo(rewriter, loc, weights, plain),
                                               conv.getStrides(), conv.getDilations(), conv.getPadsLow(),
                                               conv.getPadsHigh(), conv.getOutputPadding(), conv.getGroups());
  return success();
}

static LogicalResult scaleMatMul(Operation *op, PatternRewriter &rewriter) {
  std::optional<Scaling> scaling = getScaling<MatMulOp>(op);
  auto product = scaling ? scaling->product.getDefiningOp<MatMulOp>() : MatMulOp();
  if (!product)
    return failure();
  // Columns of the result are columns of the right operand, rows are rows of the left one.
  for (bool isRight : {true, false}) {
    Value matrix = isRight ? product.getRhs() : product.getLhs();
    if (!isConstantOnly(matrix))
      continue;
    int64_t rank = product.getType().getRank(), dim = isRight ? rank - 1 : rank - 2;
    SmallVector<int64_t> shape{1, 1};
    shape[isRight ? 1 : 0] = product.getType().getDimSize(dim);
    Value factor = alignFactor(rewriter, op->getLoc(), scaling->factor, rank, dim, shape);
    if (!factor)
      continue;
    Value scaled = scaling->apply(rewriter, product.getLoc(), matrix, factor);
    rewriter.replaceOpWithNewOp<MatMulOp>(op, isRight ? product.getLhs() : scaled, isRight ? scaled : product.getRhs());
    return success();
  }
  return failure();
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

static int64_t countElements(Value value) { return typeOf(value).getNumElements(); }

/// True if constants combined elementwise are not larger than the larger one.
static bool combineWell(Value a, Value b) {
  SmallVector<int64_t> shape;
  if (!OpTrait::util::getBroadcastedShape(shapeOf(a), shapeOf(b), shape))
    return false;
  return RankedTensorType::get(shape, typeOf(a).getElementType()).getNumElements() ==
         std::max(countElements(a), countElements(b));
}

/// The constant that `mul` multiplies something of its type by; null if it is another product.
static Value getFactor(MulOp mul) {
  for (Value value : {mul.getLhs(), mul.getRhs()}) {
    Value factor = getOther(mul, value);
    if (value.getType() == mul.getType() && isModerateConstant(factor))
      return factor;
  }
  return {};
}

/// (x * a) * b = x * (a * b).
static LogicalResult scaleFactor(Operation *op, PatternRewriter &rewriter) {
  std::optional<Scaling> scaling = getScaling<MulOp>(op);
  auto mul = scaling ? scaling->product.getDefiningOp<MulOp>() : MulOp();
  Value factor = mul ? getFactor(mul) : Value();
  if (!factor || !combineWell(factor, scaling->factor))
    return failure();
  Value combined = scaling->apply(rewriter, op->getLoc(), factor, scaling->factor);
  rewriter.replaceOpWithNewOp<MulOp>(op, getOther(mul, factor), combined);
  return success();
}

//===----------------------------------------------------------------------===//
// Summands
//===----------------------------------------------------------------------===//

/// True if `value` is a product with constant weights or a constant factor, into which another factor can be folded.
static bool hasConstantWeights(Value value) {
  if (auto conv = getSoleProducer<ConvOp>(value))
    return isConstantOnly(conv.getWeights());
  if (auto conv = getSoleProducer<ConvTransposeOp>(value))
    return isConstantOnly(conv.getWeights());
  if (auto product = getSoleProducer<MatMulOp>(value))
    return isConstantOnly(product.getLhs()) || isConstantOnly(product.getRhs());
  if (auto mul = getSoleProducer<MulOp>(value))
    return static_cast<bool>(getFactor(mul));
  return false;
}

/// The constant that `add` adds to a product with constant weights; null if it is another sum.
static Value getBias(AddOp add) {
  for (Value product : {add.getLhs(), add.getRhs()}) {
    Value bias = getOther(add, product);
    if (hasConstantWeights(product) && isConstantOnly(bias) && product.getType() == add.getType())
      return bias;
  }
  return {};
}

/// (product + bias) * factor = product * factor + bias * factor.
static LogicalResult scaleSum(Operation *op, PatternRewriter &rewriter) {
  std::optional<Scaling> scaling = getScaling<AddOp>(op);
  auto add = scaling ? scaling->product.getDefiningOp<AddOp>() : AddOp();
  Value bias = add ? getBias(add) : Value();
  if (!bias || !combineWell(bias, scaling->factor))
    return failure();
  Value product = scaling->apply(rewriter, op->getLoc(), getOther(add, bias), scaling->factor);
  Value summand = scaling->apply(rewriter, op->getLoc(), bias, scaling->factor);
  rewriter.replaceOpWithNewOp<AddOp>(op, product, summand);
  return success();
}

/// (product + bias) + constant = product + (bias + constant).
static LogicalResult addSums(AddOp op, PatternRewriter &rewriter) {
  for (Value sum : {op.getLhs(), op.getRhs()}) {
    auto inner = getSoleProducer<AddOp>(sum);
    Value bias = inner ? getBias(inner) : Value();
    Value constant = getOther(op, sum);
    if (!bias || !isModerateConstant(constant) || sum.getType() != op.getType() || isConstantOnly(sum))
      continue;
    // A bias for each channel is worth more than one addition less.
    if (countElements(bias) != countElements(constant) && countElements(bias) != 1 && countElements(constant) != 1)
      continue;
    if (!combineWell(bias, constant))
      continue;
    Value total = AddOp::create(rewriter, op.getLoc(), bias, constant);
    rewriter.replaceOpWithNewOp<AddOp>(op, getOther(inner, bias), total);
    return success();
  }
  return failure();
}

namespace {
/// A pattern on a `mul` or a `div`.
template <LogicalResult (*rewriteScaling)(Operation *, PatternRewriter &)> struct ScalePattern : RewritePattern {
  explicit ScalePattern(MLIRContext *context, StringRef name) : RewritePattern(name, /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    return rewriteScaling(op, rewriter);
  }
};

struct FoldScales : dovetail::impl::FoldScalesBase<FoldScales> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    for (StringRef name : {MulOp::getOperationName(), DivOp::getOperationName()})
      patterns.add<ScalePattern<scaleConv>, ScalePattern<scaleConvTranspose>, ScalePattern<scaleMatMul>,
                   ScalePattern<scaleFactor>, ScalePattern<scaleSum>>(context, name);
    patterns.add(addSums);
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
