//===- ReduceOp.cpp - Reduction over dimensions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.reduce`.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"

using namespace mlir;
using namespace dovetail;

FailureOr<RankedTensorType> ReduceOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  StringRef name = getOperationName();
  ReduceKind kind = adaptor.getKind();
  if (kind == ReduceKind::Moments)
    return emitOptionalError(location, "'", name, "' op cannot have kind moments: use dovetail.moments");
  if (operand.getElementType().isInteger(1) && (kind == ReduceKind::Sum || kind == ReduceKind::Prod))
    return emitOptionalError(location, "'", name, "' op of kind ", stringifyReduceKind(kind),
                             " needs numbers, but has elements of i1");
  if (failed(verifyAxes(location, name, adaptor.getAxes(), operand.getRank())))
    return failure();
  SmallVector<int64_t> shape(operand.getShape());
  for (int64_t axis : adaptor.getAxes())
    shape[axis] = 1;
  return RankedTensorType::get(shape, operand.getElementType());
}

Definition ReduceOp::getDefinition() {
  Definition definition = Definition::over(getType());
  definition.isFold = true;
  addReducedRead(definition, getOperand().getType(), getAxes(), getKind());
  return definition;
}

bool ReduceOp::isLinearIn(unsigned operand) { return getKind() == ReduceKind::Sum; }

bool ReduceOp::isCheapElement() { return false; }

SmallVector<Value> ReduceOp::emitInit(ElementBuilder &builder) {
  Type elementType = getType().getElementType();
  switch (getKind()) {
  case ReduceKind::Sum:
    return {builder.zero(getAccumulatorType(elementType))};
  case ReduceKind::Prod:
    return {builder.constantInt(getAccumulatorType(elementType), 1)};
  case ReduceKind::Max:
    return {builder.lowest(elementType)};
  case ReduceKind::Min:
    return {builder.highest(elementType)};
  case ReduceKind::Moments:
    break;
  }
  llvm_unreachable("refused by inferType");
}

SmallVector<Value> ReduceOp::emitBody(BodyBuilder &body) {
  bool accumulates = getKind() == ReduceKind::Sum || getKind() == ReduceKind::Prod;
  Value element = body.read(0);
  return {accumulates ? widen(body.elements, element, getAccumulatorType(getType().getElementType())) : element};
}

SmallVector<Value> ReduceOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  bool isUnsigned = isUnsignedElement(getType());
  Value a = accumulators.front(), b = term.front();
  switch (getKind()) {
  case ReduceKind::Sum:
    return {builder.add(a, b)};
  case ReduceKind::Prod:
    return {builder.mul(a, b)};
  case ReduceKind::Max:
    return {builder.max(a, b, isUnsigned)};
  case ReduceKind::Min:
    return {builder.min(a, b, isUnsigned)};
  case ReduceKind::Moments:
    break;
  }
  llvm_unreachable("refused by inferType");
}
