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

#include "../Definition/ReductionSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

FailureOr<RankedTensorType> ReduceOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  StringRef name = getOperationName();
  ReduceKind kind = adaptor.getKind();
  if (kind == ReduceKind::Owner)
    return emitOptionalError(location, "'", name, "' op cannot have kind owner: of its terms none is the only one");
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

SmallVector<Value> ReduceOp::emitInit(ElementBuilder &builder) {
  return {emitReductionInit(builder, getKind(), getType().getElementType())};
}

SmallVector<Value> ReduceOp::emitBody(BodyBuilder &body) {
  return {emitReductionTerm(body.elements, getKind(), getType().getElementType(), body.read(0))};
}

SmallVector<Value> ReduceOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  return {emitReductionCombine(builder, getKind(), isUnsignedElement(getType()), accumulators.front(), term.front())};
}
