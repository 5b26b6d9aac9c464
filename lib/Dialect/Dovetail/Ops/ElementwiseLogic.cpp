//===- ElementwiseLogic.cpp - Comparisons, logic and bits -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines comparisons, selections, and logical and bitwise operations, as ONNX defines them.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ScalarSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

Value EqualOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, operands[0], operands[1]);
}

Value LessOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::less(builder, operands[0], operands[1], isUnsignedElement(getLhs().getType()));
}

Value GreaterOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return scalar::greater(builder, operands[0], operands[1], isUnsignedElement(getLhs().getType()));
}

/// a <= b; false if one of them is NaN.
static Value lessOrEqual(ElementBuilder &builder, Value a, Value b, bool isUnsigned) {
  return builder.compare(arith::CmpFPredicate::OLE, isUnsigned ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle,
                         a, b);
}

Value LessOrEqualOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return lessOrEqual(builder, operands[0], operands[1], isUnsignedElement(getLhs().getType()));
}

Value GreaterOrEqualOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return lessOrEqual(builder, operands[1], operands[0], isUnsignedElement(getLhs().getType()));
}

//===----------------------------------------------------------------------===//
// Kinds of floats
//===----------------------------------------------------------------------===//

Value IsNaNOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, operands[0], operands[0]);
}

Value IsInfOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  Value x = operands[0];
  auto equals = [&](Value infinity) { return builder.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x, infinity); };
  Value result = builder.boolean(false);
  if (getDetectPositive() != 0)
    result = equals(builder.highest(x.getType()));
  if (getDetectNegative() != 0)
    result = builder.create<arith::OrIOp>(result, equals(builder.lowest(x.getType())));
  return result;
}

//===----------------------------------------------------------------------===//
// Logic and bits
//===----------------------------------------------------------------------===//

/// All bits flipped.
static Value complement(ElementBuilder &builder, Value x) {
  return builder.create<arith::XOrIOp>(x, builder.constantInt(x.getType(), -1));
}

Value NotOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) { return complement(builder, operands[0]); }

Value BitwiseNotOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return complement(builder, operands[0]);
}

Value AndOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.create<arith::AndIOp>(operands[0], operands[1]);
}

Value OrOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.create<arith::OrIOp>(operands[0], operands[1]);
}

Value XorOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.create<arith::XOrIOp>(operands[0], operands[1]);
}

Value BitwiseAndOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.create<arith::AndIOp>(operands[0], operands[1]);
}

Value BitwiseOrOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.create<arith::OrIOp>(operands[0], operands[1]);
}

Value BitwiseXorOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.create<arith::XOrIOp>(operands[0], operands[1]);
}

LogicalResult BitShiftOp::verify() {
  if (getDirection() != "LEFT" && getDirection() != "RIGHT")
    return emitOpError("has direction = \"") << getDirection() << "\"; it is \"LEFT\" or \"RIGHT\"";
  return success();
}

Value BitShiftOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  // A shift by the width or more is undefined in arith.
  Type type = operands[0].getType();
  unsigned width = type.getIntOrFloatBitWidth();
  Value zero = builder.zero(type);
  // In the element's own bits the width may not be representable, but the largest defined shift is.
  Value defined =
      builder.create<arith::CmpIOp>(arith::CmpIPredicate::ule, operands[1], builder.constantInt(type, width - 1));
  Value amount = builder.select(defined, operands[1], zero);
  Value shifted = getDirection() == "LEFT" ? builder.create<arith::ShLIOp>(operands[0], amount)
                                           : builder.create<arith::ShRUIOp>(operands[0], amount);
  return builder.select(defined, shifted, zero);
}

//===----------------------------------------------------------------------===//
// Select
//===----------------------------------------------------------------------===//

LogicalResult SelectOp::verify() {
  if (!getElementTypeOrSelf(getCondition().getType()).isInteger(1))
    return emitOpError("has a condition of type ") << getCondition().getType() << "; its elements must be i1";
  if (getElementTypeOrSelf(getOnTrue().getType()) != getElementTypeOrSelf(getOnFalse().getType()))
    return emitOpError("selects between different element types: ")
           << getOnTrue().getType() << " and " << getOnFalse().getType();
  return success();
}

Value SelectOp::emitScalar(ElementBuilder &builder, ArrayRef<Value> operands) {
  return builder.select(operands[0], operands[1], operands[2]);
}
