//===- RecognizeActivations.cpp - Activations that are spelt out -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Recognises activation functions that exporters write as several operations.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"

#include <cmath>
#include <numbers>

namespace dovetail {
#define GEN_PASS_DEF_RECOGNIZEACTIVATIONS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

/// The operand of a value `OpT(operand) + 1`; null for other values.
template <typename OpT> static Value getOperandOfOnePlus(Value value) {
  std::optional<ShiftedValue> sum = getShifted(value);
  if (!sum || sum->number != 1)
    return {};
  auto op = getSoleProducer<OpT>(sum->operand);
  return op ? op.getOperand() : Value();
}

namespace {
/// min(max(operand, low), high) with low <= high.
struct Clamp {
  Value operand;
  double low, high;
};
/// min or max with a constant.
struct Bound {
  Value operand;
  double number;
};
} // namespace

template <typename OpT> static std::optional<Bound> getBound(Value value) {
  if constexpr (std::is_same_v<OpT, MaxOp>)
    if (auto relu = getSoleProducer<ReluOp>(value))
      return Bound{relu.getOperand(), 0};
  auto op = getSoleProducer<OpT>(value);
  if (!op)
    return std::nullopt;
  if (std::optional<double> number = getSplat(op.getRhs()))
    return Bound{op.getLhs(), *number};
  if (std::optional<double> number = getSplat(op.getLhs()))
    return Bound{op.getRhs(), *number};
  return std::nullopt;
}

template <typename OuterT, typename InnerT> static std::optional<std::array<Bound, 2>> getBounds(Value value) {
  auto outer = getBound<OuterT>(value);
  auto inner = outer ? getBound<InnerT>(outer->operand) : std::nullopt;
  if (!inner)
    return std::nullopt;
  return std::array<Bound, 2>{*outer, *inner};
}

static std::optional<Clamp> getClamp(Value value) {
  std::optional<Clamp> clamp;
  if (auto bounds = getBounds<MinOp, MaxOp>(value))
    clamp = Clamp{(*bounds)[1].operand, (*bounds)[1].number, (*bounds)[0].number};
  else if (auto bounds = getBounds<MaxOp, MinOp>(value))
    clamp = Clamp{(*bounds)[1].operand, (*bounds)[0].number, (*bounds)[1].number};
  return clamp && clamp->low <= clamp->high ? clamp : std::nullopt;
}

/// The factor of `product` that `value` is multiplied with; null if there are others.
static Value getCofactor(const Product &product, Value value) {
  if (product.factors.size() != 2)
    return {};
  return product.factors[0] == value ? product.factors[1] : product.factors[1] == value ? product.factors[0] : Value();
}

/// True if the attribute of type f32 of an activation, computed in the type of its operand, loses nothing.
static bool fitsFloat(double number) { return static_cast<double>(static_cast<float>(number)) == number; }

//===----------------------------------------------------------------------===//
// Gelu
//===----------------------------------------------------------------------===//

/// True if `inner` is what the tanh form bends: sqrt(2/pi) * (x + 0.044715 x^3), or x * (1 + 0.044715 x^2) for the sum.
static bool isTanhGeluOf(Value inner, Value x) {
  Type type = typeOf(x).getElementType();
  Product product = getProduct(inner);
  if (!isClose(product.constant, std::sqrt(2 / std::numbers::pi), type))
    return false;
  if (product.factors.size() == 1) {
    auto sum = getSoleProducer<AddOp>(product.factors[0]);
    Value cube = sum ? getOther(sum, x) : Value();
    return cube && isProductOf(getProduct(cube), 0.044715, x, 3);
  }
  Value factor = getCofactor(product, x);
  std::optional<ShiftedValue> sum = factor ? getShifted(factor) : std::nullopt;
  return sum && sum->number == 1 && isProductOf(getProduct(sum->operand), 0.044715, x, 2);
}

/// x * 0.5 * (1 + erf(x / sqrt(2))), or with tanh for erf.
static StringRef matchGelu(const Product &product, Value x, Value factor) {
  if (!isClose(product.constant, 0.5, typeOf(x).getElementType()))
    return {};
  if (Value inner = getOperandOfOnePlus<ErfOp>(factor))
    return isProductOf(getProduct(inner), std::sqrt(0.5), x) ? "none" : "";
  if (Value inner = getOperandOfOnePlus<TanhOp>(factor))
    return isTanhGeluOf(inner, x) ? "tanh" : "";
  return {};
}

//===----------------------------------------------------------------------===//
// Products of a value and a function of it
//===----------------------------------------------------------------------===//

/// min(max(x + 3, 0), 6).
static bool isRelu6OfShifted(Value value, Value x) {
  std::optional<Clamp> clamp = getClamp(value);
  if (!clamp || clamp->low != 0 || clamp->high != 6)
    return false;
  std::optional<ShiftedValue> sum = getShifted(clamp->operand);
  return sum && sum->operand == x && sum->number == 3;
}

static bool isHardSwish(const Product &product, Value x, Value factor) {
  Type type = typeOf(x).getElementType();
  if (isClose(product.constant, 1.0 / 6, type) && isRelu6OfShifted(factor, x))
    return true;
  auto sigmoid = getSoleProducer<HardSigmoidOp>(factor);
  return sigmoid && sigmoid.getOperand() == x && product.constant == 1 && sigmoid.getBeta().convertToFloat() == 0.5f &&
         isClose(sigmoid.getAlpha().convertToFloat(), 1.0 / 6, type);
}

/// The alpha with which x * sigmoid(alpha * x) is written.
static std::optional<double> getSwishAlpha(const Product &product, Value x, Value factor) {
  auto sigmoid = getSoleProducer<SigmoidOp>(factor);
  if (!sigmoid || product.constant != 1)
    return std::nullopt;
  if (sigmoid.getOperand() == x)
    return 1;
  Product scaled = getProduct(sigmoid.getOperand());
  if (sigmoid.getOperand().hasOneUse() && scaled.factors.size() == 1 && scaled.factors[0] == x &&
      fitsFloat(scaled.constant))
    return scaled.constant;
  return std::nullopt;
}

/// x * tanh(softplus(x)).
static bool isMish(const Product &product, Value x, Value factor) {
  auto tanh = getSoleProducer<TanhOp>(factor);
  auto softplus = tanh ? getSoleProducer<SoftplusOp>(tanh.getOperand()) : SoftplusOp();
  return softplus && softplus.getOperand() == x && product.constant == 1;
}

static LogicalResult recognizeProduct(Operation *op, PatternRewriter &rewriter) {
  Type type = op->getResult(0).getType();
  Product product = getProduct(op->getResult(0));
  if (product.factors.size() != 2)
    return failure();
  for (unsigned i : {0, 1}) {
    Value x = product.factors[i], factor = product.factors[1 - i];
    if (x.getType() != type)
      continue;
    if (StringRef kind = matchGelu(product, x, factor); !kind.empty()) {
      rewriter.replaceOpWithNewOp<GeluOp>(op, x, kind);
      return success();
    }
    if (isHardSwish(product, x, factor)) {
      rewriter.replaceOpWithNewOp<HardSwishOp>(op, x);
      return success();
    }
    if (std::optional<double> alpha = getSwishAlpha(product, x, factor)) {
      rewriter.replaceOpWithNewOp<SwishOp>(op, x, APFloat(static_cast<float>(*alpha)));
      return success();
    }
    if (isMish(product, x, factor)) {
      rewriter.replaceOpWithNewOp<MishOp>(op, x);
      return success();
    }
  }
  return failure();
}

//===----------------------------------------------------------------------===//
// Sigmoids
//===----------------------------------------------------------------------===//

static void replaceByHardSigmoid(Operation *op, Value x, double alpha, double beta, PatternRewriter &rewriter) {
  rewriter.replaceOpWithNewOp<HardSigmoidOp>(op, x, APFloat(static_cast<float>(alpha)),
                                             APFloat(static_cast<float>(beta)));
}

/// min(max(x + 3, 0), 6) / 6. The slope of an attribute is an f32.
static LogicalResult recognizeHardSigmoid(Operation *op, PatternRewriter &rewriter) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Product product = getProduct(op->getResult(0));
  if (product.factors.size() != 1 || !isClose(product.constant, 1.0 / 6, type.getElementType()) ||
      type.getElementType().isF64())
    return failure();
  std::optional<Clamp> clamp = getClamp(product.factors[0]);
  std::optional<ShiftedValue> sum = clamp ? getShifted(clamp->operand) : std::nullopt;
  if (!sum || sum->operand.getType() != type || !isRelu6OfShifted(product.factors[0], sum->operand))
    return failure();
  replaceByHardSigmoid(op, sum->operand, 1.0 / 6, 0.5, rewriter);
  return success();
}

/// min(max(alpha * x + beta, 0), 1). The result of the outer bound may have any uses.
static LogicalResult recognizeClampedLine(Operation *op, PatternRewriter &rewriter) {
  auto isOne = [](Value value) { return getSplat(value) == 1.0; };
  Value bounded;
  if (auto min = dyn_cast<MinOp>(op))
    bounded = isOne(min.getRhs()) ? min.getLhs() : isOne(min.getLhs()) ? min.getRhs() : Value();
  std::optional<Bound> lower = bounded ? getBound<MaxOp>(bounded) : std::nullopt;
  std::optional<ShiftedValue> sum = lower && lower->number == 0 ? getShifted(lower->operand) : std::nullopt;
  if (!sum || !isa<FloatType>(typeOf(sum->operand).getElementType()))
    return failure();
  Product line = getProduct(sum->operand);
  // Without a factor this would be slower than what it replaces.
  if (line.factors.size() != 1 || line.factors[0] == sum->operand || !sum->operand.hasOneUse() ||
      line.factors[0].getType() != op->getResult(0).getType() || !fitsFloat(line.constant) || !fitsFloat(sum->number))
    return failure();
  replaceByHardSigmoid(op, line.factors[0], line.constant, sum->number, rewriter);
  return success();
}

/// The x of 1 + exp(-x).
static Value getLogistic(Value value) {
  Value power = getOperandOfOnePlus<ExpOp>(value);
  auto neg = power ? getSoleProducer<NegOp>(power) : NegOp();
  return neg ? neg.getOperand() : Value();
}

static LogicalResult recognizeSigmoid(Operation *op, PatternRewriter &rewriter) {
  Value x;
  if (auto reciprocal = dyn_cast<ReciprocalOp>(op))
    x = getLogistic(reciprocal.getOperand());
  else if (auto div = dyn_cast<DivOp>(op); div && getSplat(div.getLhs()) == 1.0)
    x = getLogistic(div.getRhs());
  if (!x || x.getType() != op->getResult(0).getType())
    return failure();
  rewriter.replaceOpWithNewOp<SigmoidOp>(op, x);
  return success();
}

//===----------------------------------------------------------------------===//
// Rectifiers
//===----------------------------------------------------------------------===//

/// max(x, 0), and max(x, alpha * x) where 0 < alpha < 1.
static LogicalResult recognizeRelu(MaxOp op, PatternRewriter &rewriter) {
  if (!isa<FloatType>(op.getType().getElementType()))
    return failure();
  for (Value x : {op.getLhs(), op.getRhs()}) {
    Value other = getOther(op, x);
    if (x.getType() != op.getType())
      continue;
    if (getSplat(other) == 0.0) {
      rewriter.replaceOpWithNewOp<ReluOp>(op, x);
      return success();
    }
    Product scaled = getProduct(other);
    if (other != x && other.hasOneUse() && scaled.factors.size() == 1 && scaled.factors[0] == x &&
        scaled.constant > 0 && scaled.constant < 1 && fitsFloat(scaled.constant)) {
      rewriter.replaceOpWithNewOp<LeakyReluOp>(op, x, APFloat(static_cast<float>(scaled.constant)));
      return success();
    }
  }
  return failure();
}

/// PRelu with one slope for all elements.
static LogicalResult recognizeLeakyRelu(PReluOp op, PatternRewriter &rewriter) {
  std::optional<double> slope = getSplat(op.getRhs());
  if (!slope || !fitsFloat(*slope) || op.getLhs().getType() != op.getType() ||
      !isa<FloatType>(op.getType().getElementType()))
    return failure();
  rewriter.replaceOpWithNewOp<LeakyReluOp>(op, op.getLhs(), APFloat(static_cast<float>(*slope)));
  return success();
}

namespace {
/// A pattern on operations of one name, with the higher benefit for what contains the others.
template <LogicalResult (*recognize)(Operation *, PatternRewriter &)> struct NamedPattern : RewritePattern {
  NamedPattern(MLIRContext *context, StringRef name, PatternBenefit benefit) : RewritePattern(name, benefit, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    return recognize(op, rewriter);
  }
};

struct RecognizeActivations : dovetail::impl::RecognizeActivationsBase<RecognizeActivations> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    for (StringRef name : {MulOp::getOperationName(), DivOp::getOperationName()}) {
      patterns.add<NamedPattern<recognizeProduct>>(context, name, /*benefit=*/2);
      patterns.add<NamedPattern<recognizeHardSigmoid>>(context, name, /*benefit=*/1);
    }
    patterns.add<NamedPattern<recognizeClampedLine>>(context, MinOp::getOperationName(), /*benefit=*/1);
    for (StringRef name : {DivOp::getOperationName(), ReciprocalOp::getOperationName()})
      patterns.add<NamedPattern<recognizeSigmoid>>(context, name, /*benefit=*/1);
    patterns.add(recognizeRelu);
    patterns.add(recognizeLeakyRelu);
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
