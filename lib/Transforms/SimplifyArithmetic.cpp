//===- SimplifyArithmetic.cpp - Arithmetic with constants -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Drops and merges elementwise operations with constants.
//
//===----------------------------------------------------------------------===//

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Transforms/Passes.h"
#include "mlir/Dialect/Traits.h"

#include <cmath>

namespace dovetail {
#define GEN_PASS_DEF_SIMPLIFYARITHMETIC
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// Replaces `op` by `value` if that has the same type, which it has not where `op` broadcasts it.
static LogicalResult replaceBy(Operation *op, Value value, PatternRewriter &rewriter) {
  if (value.getType() != op->getResult(0).getType())
    return failure();
  rewriter.replaceOp(op, value);
  return success();
}

static bool isFloat(Value value) { return isa<FloatType>(typeOf(value).getElementType()); }

/// The operand that is not the number; null if neither operand is.
template <typename OpT> static Value getBesides(OpT op, function_ref<bool(Value)> isNumber) {
  return isNumber(op.getRhs()) ? op.getLhs() : isNumber(op.getLhs()) ? op.getRhs() : Value();
}

//===----------------------------------------------------------------------===//
// Neutral elements
//===----------------------------------------------------------------------===//

static LogicalResult multiplyByOne(MulOp op, PatternRewriter &rewriter) {
  Value other = getBesides(op, [](Value value) { return getSplat(value) == 1.0; });
  return other ? replaceBy(op, other, rewriter) : failure();
}

static LogicalResult divideByOne(DivOp op, PatternRewriter &rewriter) {
  return getSplat(op.getRhs()) == 1.0 ? replaceBy(op, op.getLhs(), rewriter) : failure();
}

/// True if no element of `value` is -0: sums that start from +0 never are.
static bool isNeverNegativeZero(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto reduce = dyn_cast_if_present<ReduceOp>(op))
    return reduce.getKind() == ReduceKind::Sum;
  return isa_and_present<ConvOp, ConvTransposeOp, MatMulOp>(op);
}

static LogicalResult addZero(AddOp op, PatternRewriter &rewriter) {
  for (Value value : {op.getLhs(), op.getRhs()}) {
    std::optional<double> number = getSplat(getOther(op, value));
    // -0 + 0 is 0, but any number plus -0 is itself.
    if (number == 0.0 && (!isFloat(value) || std::signbit(*number) || isNeverNegativeZero(value)))
      return replaceBy(op, value, rewriter);
  }
  return failure();
}

/// x - c is x + (-c), exactly, and sums are what other patterns look for; x - 0 is x.
static LogicalResult subtractConstant(SubOp op, PatternRewriter &rewriter) {
  std::optional<double> number = getSplat(op.getRhs());
  if (number == 0.0 && !(isFloat(op) && std::signbit(*number)))
    return replaceBy(op, op.getLhs(), rewriter);
  if (!isFloat(op) || !isConstantOnly(op.getRhs()) || isConstantOnly(op.getLhs()))
    return failure();
  Value negated = NegOp::create(rewriter, op.getLoc(), op.getRhs());
  rewriter.replaceOpWithNewOp<AddOp>(op, op.getLhs(), negated);
  return success();
}

/// A quotient by a power of two is a product, exactly.
static LogicalResult divideByPowerOfTwo(DivOp op, PatternRewriter &rewriter) {
  std::optional<double> number = getSplat(op.getRhs());
  RankedTensorType type = typeOf(op.getRhs());
  int exponent = 0;
  // The reciprocal is a normal number of every float type then.
  if (!number || !isFloat(op) || *number == 1 || std::abs(std::frexp(*number, &exponent)) != 0.5 || exponent > 8 ||
      exponent < -8)
    return failure();
  rewriter.replaceOpWithNewOp<MulOp>(op, op.getLhs(), createSplat(rewriter, op.getLoc(), type, 1 / *number));
  return success();
}

/// Powers that are a few products, as they are computed anyway.
static LogicalResult raiseToConstant(PowOp op, PatternRewriter &rewriter) {
  std::optional<double> exponent = getSplat(op.getRhs());
  Value x = op.getLhs();
  if (!exponent || x.getType() != op.getType())
    return failure();
  if (*exponent == 1)
    return replaceBy(op, x, rewriter);
  bool isWide = typeOf(x).getElementType().isF32() || typeOf(x).getElementType().isF64();
  if (!isWide || (*exponent != 2 && *exponent != 3 && *exponent != -1))
    return failure();
  if (*exponent == -1) {
    rewriter.replaceOpWithNewOp<ReciprocalOp>(op, x);
    return success();
  }
  Value square = MulOp::create(rewriter, op.getLoc(), x, x);
  rewriter.replaceOp(op, *exponent == 2 ? square : MulOp::create(rewriter, op.getLoc(), square, x).getResult());
  return success();
}

static LogicalResult negateTwice(NegOp op, PatternRewriter &rewriter) {
  auto inner = op.getOperand().getDefiningOp<NegOp>();
  return inner ? replaceBy(op, inner.getOperand(), rewriter) : failure();
}

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

/// max(max(x, a), b) = max(x, max(a, b)), the same for min.
template <typename OpT> static LogicalResult mergeBounds(OpT op, PatternRewriter &rewriter) {
  auto isNumber = [](Value value) { return getSplat(value).has_value(); };
  Value bounded = getBesides(op, isNumber);
  auto inner = bounded ? getSoleProducer<OpT>(bounded) : OpT();
  Value x = inner ? getBesides(inner, isNumber) : Value();
  if (!x || x.getType() != op.getType())
    return failure();
  double a = *getSplat(getOther(op, bounded)), b = *getSplat(getOther(inner, x));
  bool takesOuter = std::is_same_v<OpT, MaxOp> ? a >= b : a <= b;
  rewriter.replaceOpWithNewOp<OpT>(op, x, takesOuter ? getOther(op, bounded) : getOther(inner, x));
  return success();
}

/// relu(relu(x)) = relu(x).
static LogicalResult rectifyTwice(ReluOp op, PatternRewriter &rewriter) {
  return op.getOperand().getDefiningOp<ReluOp>() ? replaceBy(op, op.getOperand(), rewriter) : failure();
}

/// max(relu(x), c) is relu(x) for c <= 0, and max(x, c) otherwise.
static LogicalResult boundRectified(MaxOp op, PatternRewriter &rewriter) {
  for (Value rectified : {op.getLhs(), op.getRhs()}) {
    auto relu = rectified.getDefiningOp<ReluOp>();
    std::optional<double> bound = getSplat(getOther(op, rectified));
    if (!relu || !bound || rectified.getType() != op.getType())
      continue;
    if (*bound <= 0)
      return replaceBy(op, rectified, rewriter);
    if (!rectified.hasOneUse())
      continue;
    rewriter.replaceOpWithNewOp<MaxOp>(op, relu.getOperand(), getOther(op, rectified));
    return success();
  }
  return failure();
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

/// True if every value of element type `from` is one of `to`.
static bool holdsAll(Type to, Type from) {
  if (auto toFloat = dyn_cast<FloatType>(to)) {
    if (auto fromFloat = dyn_cast<FloatType>(from))
      // The wider formats hold f16 and bf16, subnormal numbers included.
      return to == from || (toFloat.getWidth() > fromFloat.getWidth() && toFloat.getWidth() >= 32);
    return from.getIntOrFloatBitWidth() < toFloat.getFPMantissaWidth();
  }
  if (!isa<IntegerType>(from))
    return false;
  unsigned toWidth = to.getIntOrFloatBitWidth(), fromWidth = from.getIntOrFloatBitWidth();
  if (isUnsignedElement(from) == isUnsignedElement(to))
    return toWidth >= fromWidth;
  return isUnsignedElement(from) && toWidth > fromWidth;
}

/// A cast to the type that an operand has changes nothing; one that loses nothing can be skipped by the next.
static LogicalResult simplifyCast(CastOp op, PatternRewriter &rewriter) {
  if (op.getOperand().getType() == op.getType())
    return replaceBy(op, op.getOperand(), rewriter);
  auto inner = op.getOperand().getDefiningOp<CastOp>();
  if (!inner)
    return failure();
  Type from = inner.getOperand().getType().getElementType();
  Type between = inner.getType().getElementType();
  if (!holdsAll(between, from))
    return failure();
  // Integers wrap, but floats out of the range of an integer type do not.
  if (isa<FloatType>(between) && isa<IntegerType>(from) && isa<IntegerType>(op.getTo()) && !op.getTo().isInteger(1) &&
      !holdsAll(op.getTo(), from))
    return failure();
  rewriter.replaceOpWithNewOp<CastOp>(op, inner.getOperand(), op.getTo());
  return success();
}

//===----------------------------------------------------------------------===//
// Broadcasts
//===----------------------------------------------------------------------===//

namespace {
/// Operands of elementwise operations broadcast by themselves, so that `broadcast` and constants of one number need not
/// have the full shape.
struct ShrinkOperands : RewritePattern {
  explicit ShrinkOperands(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<dovetail::Elementwise>() || op->getNumOperands() < 2)
      return failure();
    for (OpOperand &operand : op->getOpOperands()) {
      Value smaller = getSmaller(operand, rewriter);
      if (!smaller)
        continue;
      rewriter.modifyOpInPlace(op, [&] { operand.set(smaller); });
      return success();
    }
    return failure();
  }

private:
  /// A smaller value to read in place of `operand`; null if there is none, or if the result would lose its shape.
  static Value getSmaller(OpOperand &operand, PatternRewriter &rewriter) {
    Value value = operand.get();
    RankedTensorType type = typeOf(value);
    auto broadcast = value.getDefiningOp<BroadcastOp>();
    auto constant = value.getDefiningOp<ConstantOp>();
    auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
    if (splat && type.getRank() == 0)
      return {};
    if (!broadcast && !splat)
      return {};
    SmallVector<int64_t> shape;
    if (broadcast)
      shape.assign(shapeOf(broadcast.getOperand()).begin(), shapeOf(broadcast.getOperand()).end());
    for (OpOperand &other : operand.getOwner()->getOpOperands()) {
      if (&other == &operand)
        continue;
      SmallVector<int64_t> merged;
      if (!OpTrait::util::getBroadcastedShape(shape, shapeOf(other.get()), merged))
        return {};
      shape = merged;
    }
    if (shape != shapeOf(operand.getOwner()->getResult(0)))
      return {};
    if (broadcast)
      return broadcast.getOperand();
    return ConstantOp::create(rewriter, constant.getLoc(), splat.resizeSplat(type.clone(ArrayRef<int64_t>())));
  }
};

struct SimplifyArithmetic : dovetail::impl::SimplifyArithmeticBase<SimplifyArithmetic> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ShrinkOperands>(&getContext());
    patterns.add(multiplyByOne);
    patterns.add(divideByOne);
    patterns.add(addZero);
    patterns.add(subtractConstant);
    patterns.add(divideByPowerOfTwo);
    patterns.add(raiseToConstant);
    patterns.add(negateTwice);
    patterns.add(mergeBounds<MaxOp>);
    patterns.add(mergeBounds<MinOp>);
    patterns.add(rectifyTwice);
    patterns.add(boundRectified);
    patterns.add(simplifyCast);
    if (failed(applyToGraph(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
