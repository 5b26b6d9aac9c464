//===- ElementwiseMath.cpp - Rounding, roots and transcendental functions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines elementwise functions of one operand, as ONNX defines them.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ScalarSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;

/// The function `OpT` of the float `x`, in its wide type.
template <typename OpT> static Value apply(ElementBuilder &builder, Value x) {
  return scalar::inWide(builder, x, [&](Value wide) { return builder.create<OpT>(wide); });
}

//===----------------------------------------------------------------------===//
// Signs
//===----------------------------------------------------------------------===//

Value AbsOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Value x = operands[0];
  if (isa<FloatType>(x.getType()))
    return builder.create<math::AbsFOp>(x);
  return isUnsignedElement(getOperand().getType()) ? x : builder.create<math::AbsIOp>(x);
}

Value NegOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Value x = operands[0];
  if (isa<FloatType>(x.getType()))
    return builder.create<arith::NegFOp>(x);
  return builder.sub(builder.zero(x.getType()), x);
}

Value SignOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Value x = operands[0];
  Type type = x.getType();
  bool isUnsigned = isUnsignedElement(getOperand().getType());
  Value zero = builder.zero(type);
  // What is neither above nor below zero is zero or NaN, and its own sign.
  Value negative = builder.select(scalar::less(builder, x, zero, isUnsigned), builder.constantInt(type, -1), x);
  return builder.select(scalar::greater(builder, x, zero, isUnsigned), builder.constantInt(type, 1), negative);
}

//===----------------------------------------------------------------------===//
// Roots and reciprocals
//===----------------------------------------------------------------------===//

Value RsqrtOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::inWide(builder, operands[0], [&](Value x) {
    return builder.div(builder.constant(x.getType(), 1), builder.create<math::SqrtOp>(x));
  });
}

Value ReciprocalOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.div(builder.constant(operands[0].getType(), 1), operands[0]);
}

//===----------------------------------------------------------------------===//
// Functions that the math dialect has
//===----------------------------------------------------------------------===//

Value FloorOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::FloorOp>(builder, operands[0]);
}

Value CeilOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::CeilOp>(builder, operands[0]);
}

Value RoundOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::RoundEvenOp>(builder, operands[0]);
}

Value SqrtOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::SqrtOp>(builder, operands[0]);
}

Value ExpOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::ExpOp>(builder, operands[0]);
}

Value LogOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::LogOp>(builder, operands[0]);
}

Value ErfOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::ErfOp>(builder, operands[0]);
}

Value SinOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::SinOp>(builder, operands[0]);
}

Value CosOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::CosOp>(builder, operands[0]);
}

Value TanOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::TanOp>(builder, operands[0]);
}

Value AsinOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::AsinOp>(builder, operands[0]);
}

Value AcosOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::AcosOp>(builder, operands[0]);
}

Value AtanOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::AtanOp>(builder, operands[0]);
}

Value SinhOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::SinhOp>(builder, operands[0]);
}

Value CoshOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::CoshOp>(builder, operands[0]);
}

Value TanhOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::TanhOp>(builder, operands[0]);
}

Value AsinhOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::AsinhOp>(builder, operands[0]);
}

Value AcoshOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::AcoshOp>(builder, operands[0]);
}

Value AtanhOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return apply<math::AtanhOp>(builder, operands[0]);
}
