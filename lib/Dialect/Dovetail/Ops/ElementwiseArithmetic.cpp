//===- ElementwiseArithmetic.cpp - Arithmetic and conversions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines arithmetic of two operands and conversions of elements, as ONNX defines them.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ScalarSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dovetail;

Value CastOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::cast(builder, operands[0], getElementTypeOrSelf(getOperand().getType()), getTo());
}

/// How many bits of an element in memory there are.
static unsigned getStoredWidth(Type type) { return type.isInteger(1) ? 8 : type.getIntOrFloatBitWidth(); }

LogicalResult BitCastOp::verify() {
  Type from = getOperand().getType().getElementType();
  if (getStoredWidth(from) == getStoredWidth(getTo()))
    return success();
  return emitOpError("takes the bits of ") << from << " as bits of " << getTo() << ", which differs in width";
}

Value BitCastOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Value x = operands[0];
  Type to = ElementBuilder::scalarType(getTo()), byte = builder.getBuilder().getI8Type();
  if (x.getType() == to)
    return x;
  if (x.getType().isInteger(1))
    x = builder.create<arith::ExtUIOp>(byte, x);
  if (to.isInteger(1)) {
    x = x.getType() == byte ? x : builder.create<arith::BitcastOp>(byte, x);
    return builder.create<arith::CmpIOp>(arith::CmpIPredicate::ne, x, builder.constantInt(byte, 0));
  }
  return x.getType() == to ? x : builder.create<arith::BitcastOp>(to, x);
}

//===----------------------------------------------------------------------===//
// Add, Sub, Mul, Max, Min
//===----------------------------------------------------------------------===//

Value AddOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.add(operands[0], operands[1]);
}

Value SubOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.sub(operands[0], operands[1]);
}

Value MulOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.mul(operands[0], operands[1]);
}

Value MaxOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.max(operands[0], operands[1], isUnsignedElement(getLhs().getType()));
}

Value MinOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.min(operands[0], operands[1], isUnsignedElement(getLhs().getType()));
}

//===----------------------------------------------------------------------===//
// Div, Mod
//===----------------------------------------------------------------------===//

static Value equals(ElementBuilder &builder, Value x, int64_t value) {
  return builder.create<arith::CmpIOp>(arith::CmpIPredicate::eq, x, builder.constantInt(x.getType(), value));
}

/// The divisor with 1 in place of those that the processor traps on: 0, and -1, which overflows with the least
/// integer.
static Value safeDivisor(ElementBuilder &builder, Value divisor, bool isUnsigned) {
  Value unsafe = equals(builder, divisor, 0);
  if (!isUnsigned)
    unsafe = builder.create<arith::OrIOp>(unsafe, equals(builder, divisor, -1));
  return builder.select(unsafe, builder.constantInt(divisor.getType(), 1), divisor);
}

Value DivOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Value a = operands[0], b = operands[1];
  if (isa<FloatType>(a.getType()))
    return builder.div(a, b);
  bool isUnsigned = isUnsignedElement(getLhs().getType());
  Value zero = builder.zero(a.getType());
  Value quotient = builder.div(a, safeDivisor(builder, b, isUnsigned), isUnsigned);
  if (!isUnsigned)
    quotient = builder.select(equals(builder, b, -1), builder.sub(zero, a), quotient);
  return builder.select(equals(builder, b, 0), zero, quotient);
}

/// The C remainder (sign of `a`), corrected to the sign of `b` unless `keepSign`.
static Value floatRemainder(ElementBuilder &builder, Value a, Value b, bool keepSign) {
  Value remainder = builder.create<arith::RemFOp>(a, b);
  if (keepSign)
    return remainder;
  Value zero = builder.zero(a.getType());
  Value differs = builder.create<arith::XOrIOp>(scalar::less(builder, remainder, zero), scalar::less(builder, b, zero));
  Value nonZero = builder.create<arith::CmpFOp>(arith::CmpFPredicate::ONE, remainder, zero);
  return builder.select(builder.andB(differs, nonZero), builder.add(remainder, b), remainder);
}

Value ModOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Value a = operands[0], b = operands[1];
  bool keepSign = getFmod() != 0;
  if (auto type = dyn_cast<FloatType>(a.getType())) {
    FloatType wide = scalar::wideType(type);
    Value remainder = floatRemainder(builder, builder.convertFloat(a, wide), builder.convertFloat(b, wide), keepSign);
    return builder.convertFloat(remainder, type);
  }
  bool isUnsigned = isUnsignedElement(getLhs().getType());
  Value zero = builder.zero(a.getType());
  // The remainder by 1 is 0, which is right for 0 (by definition) and for -1.
  Value divisor = safeDivisor(builder, b, isUnsigned);
  if (isUnsigned)
    return builder.create<arith::RemUIOp>(a, divisor);
  Value remainder = builder.create<arith::RemSIOp>(a, divisor);
  if (keepSign)
    return remainder;
  Value differs = builder.create<arith::XOrIOp>(scalar::less(builder, remainder, zero), scalar::less(builder, b, zero));
  Value nonZero = builder.create<arith::CmpIOp>(arith::CmpIPredicate::ne, remainder, zero);
  return builder.select(builder.andB(differs, nonZero), builder.add(remainder, b), remainder);
}

//===----------------------------------------------------------------------===//
// Pow
//===----------------------------------------------------------------------===//

/// The value of a constant scalar of element type `type`.
static std::optional<double> getConstant(Value scalar, Type type) {
  FloatAttr real;
  if (matchPattern(scalar, m_Constant(&real)))
    return real.getValueAsDouble();
  APInt integer;
  if (matchPattern(scalar, m_ConstantInt(&integer)))
    return isUnsignedElement(type) ? static_cast<double>(integer.getZExtValue())
                                   : static_cast<double>(integer.getSExtValue());
  return std::nullopt;
}

/// x to a constant power for which that is a few exact steps; null for other exponents.
static Value powConstant(ElementBuilder &builder, Value x, double exponent) {
  if (exponent == 1)
    return x;
  if (exponent == 2)
    return builder.mul(x, x);
  if (exponent == 3)
    return builder.mul(builder.mul(x, x), x);
  if (!isa<FloatType>(x.getType()))
    return {};
  if (exponent == -1)
    return builder.div(builder.constant(x.getType(), 1), x);
  if (exponent != 0.5)
    return {};
  // Unlike a root, this power takes -0 to 0 and -infinity to infinity.
  Type type = x.getType();
  Value isLowest = builder.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x, builder.lowest(type));
  Value root = builder.create<math::SqrtOp>(builder.add(x, builder.zero(type)));
  return builder.select(isLowest, builder.highest(type), root);
}

Value PowOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Type baseType = getElementTypeOrSelf(getLhs().getType());
  Type exponentType = getElementTypeOrSelf(getRhs().getType());
  std::optional<double> constant = getConstant(operands[1], exponentType);
  if (!isa<FloatType>(baseType)) {
    if (Value power = constant ? powConstant(builder, operands[0], *constant) : Value())
      return power;
  }
  // An exponent of f64, or an integer that f32 may not hold, makes it a computation in f64, as C does; so does an
  // integer base.
  FloatType wide = builder.getBuilder().getF64Type();
  if (isa<FloatType>(baseType)) {
    bool narrowExponent = isa<FloatType>(exponentType) ? exponentType.getIntOrFloatBitWidth() <= 32
                                                       : exponentType.getIntOrFloatBitWidth() <= 16;
    FloatType baseWide = scalar::wideType(baseType);
    if (narrowExponent || constant)
      wide = baseWide;
    Value base = scalar::cast(builder, operands[0], baseType, wide);
    if (Value power = constant ? powConstant(builder, base, *constant) : Value())
      return scalar::cast(builder, power, wide, baseType);
  }
  Value power = builder.create<math::PowFOp>(scalar::cast(builder, operands[0], baseType, wide),
                                             scalar::cast(builder, operands[1], exponentType, wide));
  return scalar::cast(builder, power, wide, baseType);
}
