//===- ScalarSupport.cpp - Scalar code that several operations share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what the scalar definitions of elementwise operations are built from.
//
//===----------------------------------------------------------------------===//

#include "ScalarSupport.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;

FloatType scalar::wideType(Type type) {
  auto floatType = llvm::cast<FloatType>(type);
  return floatType.getWidth() < 32 ? Float32Type::get(type.getContext()) : floatType;
}

Value scalar::inWide(ElementBuilder &builder, Value x, function_ref<Value(Value)> function) {
  Value result = function(builder.convertFloat(x, wideType(x.getType())));
  return builder.convertFloat(result, llvm::cast<FloatType>(x.getType()));
}

Value scalar::less(ElementBuilder &builder, Value a, Value b, bool isUnsigned) {
  return builder.compare(arith::CmpFPredicate::OLT, isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt,
                         a, b);
}

Value scalar::clamp(ElementBuilder &builder, Value x, double lo, double hi) {
  Value low = builder.constant(x.getType(), lo);
  Value high = builder.constant(x.getType(), hi);
  return builder.select(less(builder, x, low), low, builder.select(greater(builder, x, high), high, x));
}

Value scalar::relu(ElementBuilder &builder, Value x, bool isUnsigned) {
  // A comparison and a selection, in this order, are one instruction on x86 and keep NaN.
  Value zero = builder.zero(x.getType());
  return builder.select(less(builder, x, zero, isUnsigned), zero, x);
}

Value scalar::sigmoid(ElementBuilder &builder, Value x) {
  // exp overflows to infinity for very negative x, which gives the right limit.
  Value one = builder.constant(x.getType(), 1);
  Value power = builder.create<math::ExpOp>(builder.create<arith::NegFOp>(x));
  return builder.div(one, builder.add(one, power));
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// Truncates a float to a signed integer of `width` bits; what is outside of its range, and NaN, give the least
/// integer. (arith.fptosi alone is undefined there.)
static Value truncateToSigned(ElementBuilder &builder, Value x, unsigned width) {
  Type type = builder.getBuilder().getIntegerType(width);
  double limit = std::ldexp(1.0, static_cast<int>(width) - 1);
  Value low = builder.constant(x.getType(), -limit);
  Value high = builder.constant(x.getType(), limit);
  Value inside = builder.andB(builder.create<arith::CmpFOp>(arith::CmpFPredicate::OGE, x, low),
                              builder.create<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, high));
  Value converted = builder.create<arith::FPToSIOp>(type, builder.select(inside, x, builder.zero(x.getType())));
  return builder.select(inside, converted, builder.lowest(type));
}

/// Truncates a float to an unsigned integer of 64 bits. Negative numbers wrap around.
static Value truncateToUnsigned64(ElementBuilder &builder, Value x) {
  Value half = builder.constant(x.getType(), std::ldexp(1.0, 63));
  Value isUpper = builder.create<arith::CmpFOp>(arith::CmpFPredicate::OGE, x, half);
  Value lower = truncateToSigned(builder, builder.select(isUpper, builder.sub(x, half), x), 64);
  Value topBit = builder.lowest(builder.getBuilder().getI64Type());
  return builder.select(isUpper, builder.create<arith::XOrIOp>(lower, topBit), lower);
}

static Value resizeInteger(ElementBuilder &builder, Value x, IntegerType type, bool isUnsigned) {
  unsigned from = x.getType().getIntOrFloatBitWidth();
  if (from == type.getWidth())
    return x;
  if (from > type.getWidth())
    return builder.create<arith::TruncIOp>(type, x);
  return isUnsigned ? builder.create<arith::ExtUIOp>(type, x) : builder.create<arith::ExtSIOp>(type, x);
}

static Value floatToInteger(ElementBuilder &builder, Value x, IntegerType to) {
  x = builder.convertFloat(x, scalar::wideType(x.getType()));
  unsigned width = to.getWidth();
  if (to.isUnsigned() && width == 64)
    return truncateToUnsigned64(builder, x);
  // 32 bits where they hold all results: that conversion is a vector instruction everywhere.
  unsigned convertedWidth = width < 32 || (width == 32 && !to.isUnsigned()) ? 32 : 64;
  return resizeInteger(builder, truncateToSigned(builder, x, convertedWidth),
                       llvm::cast<IntegerType>(ElementBuilder::scalarType(to)), /*isUnsigned=*/false);
}

/// Rounds once. f32 between would round a first time, but for integers that it has all digits of, and f16, which is
/// infinite beyond those.
static Value integerToFloat(ElementBuilder &builder, Value x, bool isUnsigned, FloatType to) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  FloatType between = llvm::cast<FloatType>(scalar::wideType(to));
  if (to.isBF16() && width > 24)
    between = builder.getBuilder().getF64Type();
  if (to.isBF16() && width > 53) {
    // Digits far beyond those of bf16 only matter in that there are some: one stands for all of them.
    auto constant = [&](int64_t value) { return builder.constantInt(x.getType(), value); };
    Value isLarge = builder.create<arith::CmpIOp>(
        arith::CmpIPredicate::uge, isUnsigned ? x : builder.create<arith::AddIOp>(x, constant(int64_t(1) << 30)),
        constant(int64_t(1) << 31));
    Value rest = builder.create<arith::AndIOp>(x, constant(0x7ff));
    Value hasRest = builder.create<arith::CmpIOp>(arith::CmpIPredicate::ne, rest, constant(0));
    Value last = builder.select(hasRest, constant(0x800), constant(0));
    Value shorter = builder.create<arith::OrIOp>(builder.create<arith::SubIOp>(x, rest), last);
    x = builder.select(isLarge, shorter, x);
  }
  Value result = isUnsigned ? builder.create<arith::UIToFPOp>(between, x) : builder.create<arith::SIToFPOp>(between, x);
  return builder.convertFloat(result, to);
}

Value scalar::cast(ElementBuilder &builder, Value x, Type from, Type to) {
  if (from == to)
    return x;
  bool isUnsigned = isUnsignedElement(from);
  if (to.isInteger(1))
    return builder.compare(arith::CmpFPredicate::UNE, arith::CmpIPredicate::ne, x, builder.zero(x.getType()));
  if (isa<FloatType>(from)) {
    if (auto floatType = dyn_cast<FloatType>(to))
      return builder.convertFloat(x, floatType);
    return floatToInteger(builder, x, llvm::cast<IntegerType>(to));
  }
  if (auto floatType = dyn_cast<FloatType>(to))
    return integerToFloat(builder, x, isUnsigned, floatType);
  return resizeInteger(builder, x, llvm::cast<IntegerType>(ElementBuilder::scalarType(to)), isUnsigned);
}
