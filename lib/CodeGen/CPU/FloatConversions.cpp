//===- FloatConversions.cpp - Conversions that CPUs have no instruction for -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines expandFloatConversions: what LLVM would call its own run-time library for becomes arithmetic.
//
//===----------------------------------------------------------------------===//

#include "FloatConversions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace dovetail;

namespace {

/// Arithmetic on the bits of f32.
class Bits {
public:
  Bits(PatternRewriter &rewriter, Location loc) : builder(loc, rewriter) {}

  Type i16() { return builder.getI16Type(); }
  Type i32() { return builder.getI32Type(); }
  Type i64() { return builder.getI64Type(); }
  Type f32() { return builder.getF32Type(); }
  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(builder, std::forward<Args>(args)...);
  }
  Value constant(uint32_t bits) {
    return make<arith::ConstantOp>(builder.getI32IntegerAttr(static_cast<int32_t>(bits)));
  }
  Value constant64(int64_t value) { return make<arith::ConstantOp>(builder.getI64IntegerAttr(value)); }
  Value cast(Type type, Value value) { return make<arith::BitcastOp>(type, value); }
  Value andI(Value a, uint32_t b) { return make<arith::AndIOp>(a, constant(b)); }
  Value orI(Value a, Value b) { return make<arith::OrIOp>(a, b); }
  Value add(Value a, uint32_t b) { return make<arith::AddIOp>(a, constant(b)); }
  Value shiftLeft(Value a, uint32_t b) { return make<arith::ShLIOp>(a, constant(b)); }
  Value shiftRight(Value a, uint32_t b) { return make<arith::ShRUIOp>(a, constant(b)); }
  /// Compares as unsigned numbers.
  Value less(Value a, uint32_t b) { return make<arith::CmpIOp>(arith::CmpIPredicate::ult, a, constant(b)); }
  Value select(Value condition, Value a, Value b) { return make<arith::SelectOp>(condition, a, b); }

private:
  ImplicitLocOpBuilder builder;
};

constexpr uint32_t signBit = 0x80000000;
constexpr uint32_t infinity = 0x7f800000;
/// 2^-14, the least normal number of f16.
constexpr uint32_t leastNormalF16 = 113u << 23;

/// f64 to f32, rounded to odd: what is not exact gets an odd last bit, so that rounding to a shorter type after it
/// gives what rounding at once would. NaN stays NaN.
Value roundToOdd(Bits &bits, Value x) {
  Type f64 = x.getType();
  Value magnitude = bits.make<math::AbsFOp>(x);
  Value nearest = bits.make<arith::TruncFOp>(bits.f32(), magnitude);
  Value back = bits.make<arith::ExtFOp>(f64, nearest);
  Value nearestBits = bits.cast(bits.i32(), nearest);
  Value isExact = bits.make<arith::CmpFOp>(arith::CmpFPredicate::UEQ, magnitude, back);
  Value isOdd = bits.make<arith::CmpIOp>(arith::CmpIPredicate::ne, bits.andI(nearestBits, 1), bits.constant(0));
  Value wasRoundedDown = bits.make<arith::CmpFOp>(arith::CmpFPredicate::OGT, magnitude, back);
  // An even neighbour is one step from the odd number on the other side of x; infinity, from the largest number.
  Value step = bits.select(wasRoundedDown, bits.constant(1), bits.constant(static_cast<uint32_t>(-1)));
  Value odd = bits.make<arith::AddIOp>(nearestBits, step);
  Value rounded = bits.select(bits.make<arith::OrIOp>(isExact, isOdd), nearestBits, odd);
  // The sign is moved as bits: LLVM makes one conversion of a copysign and two conversions.
  Value upper = bits.make<arith::ShRUIOp>(bits.cast(bits.i64(), x), bits.constant64(32));
  Value sign = bits.andI(bits.make<arith::TruncIOp>(bits.i32(), upper), signBit);
  return bits.cast(bits.f32(), bits.orI(rounded, sign));
}

/// f64 to f16 and bf16.
struct TruncateF64 : OpRewritePattern<arith::TruncFOp> {
  TruncateF64(MLIRContext *context, bool hasF64ToF16) : OpRewritePattern(context), hasF64ToF16(hasF64ToF16) {}
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!op.getIn().getType().isF64() || !(op.getType().isBF16() || (op.getType().isF16() && !hasF64ToF16)))
      return failure();
    Bits bits(rewriter, op.getLoc());
    rewriter.replaceOpWithNewOp<arith::TruncFOp>(op, op.getType(), roundToOdd(bits, op.getIn()));
    return success();
  }
  bool hasF64ToF16;
};

/// f32 to f16, in steps that are vector instructions.
struct TruncateF32ToF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!op.getIn().getType().isF32() || !op.getType().isF16())
      return failure();
    Bits bits(rewriter, op.getLoc());
    Value x = bits.cast(bits.i32(), op.getIn());
    Value magnitude = bits.andI(x, ~signBit);

    // Normal numbers: the exponent is biased by 15 instead of 127, and half of the last place is added, less one if the
    // place is even. What overflows carries into the exponent of infinity.
    Value lastPlace = bits.andI(bits.shiftRight(magnitude, 13), 1);
    Value biased = bits.add(magnitude, ((15u - 127u) << 23) + 0xfff);
    Value normal = bits.shiftRight(bits.make<arith::AddIOp>(biased, lastPlace), 13);

    // Subnormal numbers: an addition whose result has its last place where that of f16 is rounds.
    constexpr uint32_t half = ((127u - 15u) + (23u - 10u) + 1u) << 23;
    Value sum = bits.make<arith::AddFOp>(bits.cast(bits.f32(), magnitude), bits.cast(bits.f32(), bits.constant(half)));
    Value subnormal = bits.add(bits.cast(bits.i32(), sum), -half);

    // Infinity, for what is 2^16 or more, and NaN, which becomes quiet.
    Value payload = bits.orI(bits.andI(bits.shiftRight(magnitude, 13), 0x3ff), bits.constant(0x7e00));
    Value special = bits.select(bits.less(magnitude, infinity + 1), bits.constant(0x7c00), payload);

    Value result = bits.select(bits.less(magnitude, leastNormalF16), subnormal, normal);
    result = bits.select(bits.less(magnitude, (127u + 16u) << 23), result, special);
    result = bits.orI(result, bits.shiftRight(bits.andI(x, signBit), 16));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), bits.make<arith::TruncIOp>(bits.i16(), result));
    return success();
  }
};

/// f16 to f32 and f64.
struct ExtendF16 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!op.getIn().getType().isF16())
      return failure();
    Bits bits(rewriter, op.getLoc());
    Value x = bits.make<arith::ExtUIOp>(bits.i32(), bits.cast(bits.i16(), op.getIn()));
    Value magnitude = bits.andI(x, 0x7fff);
    Value shifted = bits.shiftLeft(magnitude, 13);
    Value normal = bits.add(shifted, (127u - 15u) << 23);
    // Subnormal numbers are the digits after those of 2^-14.
    Value digits = bits.cast(bits.f32(), bits.add(shifted, leastNormalF16));
    Value subnormal =
        bits.cast(bits.i32(), bits.make<arith::SubFOp>(digits, bits.cast(bits.f32(), bits.constant(leastNormalF16))));
    Value quiet = bits.select(bits.less(magnitude, 0x7c01), bits.constant(0), bits.constant(0x00400000));
    Value special = bits.orI(bits.orI(shifted, bits.constant(infinity)), quiet);
    Value result = bits.select(bits.less(magnitude, 0x0400), subnormal, normal);
    result = bits.select(bits.less(magnitude, 0x7c00), result, special);
    result = bits.cast(bits.f32(), bits.orI(result, bits.shiftLeft(bits.andI(x, 0x8000), 16)));
    if (op.getType().isF32())
      rewriter.replaceOp(op, result);
    else
      rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), result);
    return success();
  }
};

/// bf16 to f64, by way of f32, which MLIR's own patterns expand.
struct ExtendBF16ToF64 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!op.getIn().getType().isBF16() || !op.getType().isF64())
      return failure();
    Value single = arith::ExtFOp::create(rewriter, op.getLoc(), rewriter.getF32Type(), op.getIn());
    rewriter.replaceOpWithNewOp<arith::ExtFOp>(op, op.getType(), single);
    return success();
  }
};

} // namespace

LogicalResult dovetail::expandFloatConversions(Operation *kernels, const FloatInstructions &instructions) {
  RewritePatternSet patterns(kernels->getContext());
  patterns.add<TruncateF64>(kernels->getContext(), instructions.f64ToF16);
  patterns.add<ExtendBF16ToF64>(kernels->getContext());
  if (!instructions.f16)
    patterns.add<TruncateF32ToF16, ExtendF16>(kernels->getContext());
  arith::populateExpandBFloat16Patterns(patterns);
  GreedyRewriteConfig config;
  config.enableFolding(false);
  return applyPatternsGreedily(kernels, std::move(patterns), config);
}
