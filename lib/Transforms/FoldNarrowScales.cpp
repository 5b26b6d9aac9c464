//===- FoldNarrowScales.cpp - Fold wide factors into narrow weights -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Multiplies weights of 16 bits by factors of f32, for libraries that have products in 16 bits.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_FOLDNARROWSCALES
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
/// `narrow(wide(conv) * factor + summand)`, whose factor and summand are constants for each channel.
struct Affine {
  ConvOp conv;
  Value factor, summand;
};

struct FoldNarrowScales : dovetail::impl::FoldNarrowScalesBase<FoldNarrowScales> {
  void runOnOperation() override;
};
} // namespace

/// Of two operands the one with `type` and the other, if the other is a moderate constant.
template <typename OpT> static std::pair<Value, Value> splitConstant(OpT op, Type type) {
  for (Value value : {op.getLhs(), op.getRhs()})
    if (Value other = getOther(op, value); value.getType() == type && isModerateConstant(other))
      return {value, other};
  return {};
}

static std::optional<Affine> getAffine(CastOp narrow) {
  Type type = typeOf(narrow).getElementType(), wide = typeOf(narrow.getOperand()).getElementType();
  auto add = getSoleProducer<AddOp>(narrow.getOperand());
  if (!add || !wide.isF32() || !(type.isF16() || type.isBF16()))
    return std::nullopt;
  auto [scaled, summand] = splitConstant(add, add.getType());
  auto mul = getSoleProducer<MulOp>(scaled);
  if (!mul)
    return std::nullopt;
  auto [product, factor] = splitConstant(mul, mul.getType());
  auto widened = getSoleProducer<CastOp>(product);
  auto conv = widened ? getSoleProducer<ConvOp>(widened.getOperand()) : ConvOp();
  if (!conv || conv.getType().getElementType() != type)
    return std::nullopt;
  return Affine{conv, factor, summand};
}

/// `constant`, of one element or of one for each channel of a value of this rank, as one for each channel. Nothing if
/// it varies along other dimensions.
static std::optional<SmallVector<double>> getPerChannel(Value constant, int64_t rank, int64_t channels) {
  SmallVector<double> numbers = *getFloats(constant);
  ArrayRef<int64_t> shape = shapeOf(constant);
  int64_t channelDim = 1 - (rank - static_cast<int64_t>(shape.size()));
  for (auto [dim, extent] : llvm::enumerate(shape))
    if (extent != 1 && static_cast<int64_t>(dim) != channelDim)
      return std::nullopt;
  if (numbers.size() == 1)
    numbers.resize(channels, numbers.front());
  return numbers;
}

/// Whether each channel's weights keep their digits when they are multiplied by its factor. The largest must be far
/// from the largest number of its type, and so large that subnormal ones do not count beside it.
static bool keepsDigits(Value weights, ArrayRef<double> factors) {
  std::optional<SmallVector<double>> numbers = getFloats(weights);
  if (!numbers || numbers->empty())
    return false;
  const llvm::fltSemantics &semantics = cast<FloatType>(typeOf(weights).getElementType()).getFloatSemantics();
  double most = APFloat::getLargest(semantics).convertToDouble() / 2,
         least = APFloat::getSmallestNormalized(semantics).convertToDouble() * 4;
  size_t perChannel = numbers->size() / factors.size();
  for (auto [channel, factor] : llvm::enumerate(factors)) {
    double largest = 0;
    for (double number : ArrayRef(*numbers).slice(channel * perChannel, perChannel))
      largest = std::max(largest, std::abs(number * factor));
    if (!(largest == 0 || (largest >= least && largest <= most)))
      return false;
  }
  return true;
}

/// Whether all numbers are far from the largest of `type`: a sum with a product that is as large stays a number.
static bool isFarFromInfinity(ArrayRef<double> numbers, FloatType type) {
  double most = APFloat::getLargest(type.getFloatSemantics()).convertToDouble() / 2;
  return llvm::all_of(numbers, [&](double number) { return std::abs(number) <= most; });
}

/// narrow(wide(conv(x, w)) * factor + summand) = conv(x, narrow(wide(w) * factor)) + narrow(summand).
static LogicalResult foldAffine(CastOp narrow, PatternRewriter &rewriter) {
  std::optional<Affine> affine = getAffine(narrow);
  if (!affine)
    return failure();
  ConvOp conv = affine->conv;
  Value weights = conv.getWeights();
  int64_t rank = conv.getType().getRank(), channels = conv.getType().getDimSize(1);
  std::optional<SmallVector<double>> factors = getPerChannel(affine->factor, rank, channels),
                                     summands = getPerChannel(affine->summand, rank, channels);
  if (!factors || !summands || channels == 0 || !keepsDigits(weights, *factors) ||
      !isFarFromInfinity(*summands, cast<FloatType>(conv.getType().getElementType())))
    return failure();
  Location loc = narrow.getLoc();
  Type type = conv.getType().getElementType(), wide = rewriter.getF32Type();
  SmallVector<int64_t> shape(rank, 1);
  shape[0] = typeOf(affine->factor).getNumElements() == 1 ? 1 : channels;
  Value factor = reshapeTo(rewriter, loc, affine->factor, shape);
  Value scaled = MulOp::create(rewriter, loc, CastOp::create(rewriter, loc, weights, wide), factor);
  auto product =
      ConvOp::create(rewriter, conv.getLoc(), conv.getInput(), CastOp::create(rewriter, loc, scaled, type),
                     conv.getStrides(), conv.getDilations(), conv.getPadsLow(), conv.getPadsHigh(), conv.getGroups());
  Value summand = CastOp::create(rewriter, loc, affine->summand, type);
  rewriter.replaceOpWithNewOp<AddOp>(narrow, product, summand);
  return success();
}

void FoldNarrowScales::runOnOperation() {
  RewritePatternSet patterns(&getContext());
  patterns.add(foldAffine);
  if (failed(applyToGraph(getOperation(), std::move(patterns))))
    signalPassFailure();
}
