//===- CompactOp.cpp - Positions of what is marked ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.compact`, a row program, and `dovetail.clear_tail`.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// Compact
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> CompactOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType mask = tensorType(adaptor.getMask());
  if (mask.getRank() == 0)
    return emitOptionalError(location, "'", getOperationName(), "' op needs a dimension, but its mask is ", mask);
  return RankedTensorType::get(mask.getShape(), IntegerType::get(mask.getContext(), 64));
}

Definition CompactOp::getDefinition() {
  Definition definition = Definition::over(getType());
  unsigned last = definition.resultRank - 1;
  definition.loops[last].kind = LoopKind::Whole;
  definition.lines.push_back(last);
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned dim = 0; dim < last; ++dim)
    dims.push_back(Definition::at(dim));
  dims.push_back(IndexExpr::unknown(0));
  return definition;
}

void CompactOp::emitLine(LineBuilder &line) {
  ElementBuilder &elements = line.elements;
  Type type = elements.getBuilder().getI64Type();
  auto write = [&](Value position, Value element) {
    SmallVector<Value> index(line.getResultIndex());
    index.back() = position;
    line.write(0, index, element);
  };
  Value zero = elements.index(0), size = elements.index(getType().getShape().back());
  // Places that data decide are no proof that all of the line is written.
  Value none = elements.zero(type);
  elements.forEach(zero, size, [&](Value iv) { write(iv, none); });
  // What is written where nothing is marked is written over: without a branch that nobody could foresee.
  SmallVector<Value> end = elements.forLoop(zero, size, zero, [&](Value iv, ValueRange carried) -> SmallVector<Value> {
    write(carried.front(), elements.create<arith::IndexCastOp>(type, iv));
    return {elements.select(line.read(0, iv), elements.addI(carried.front(), 1), carried.front())};
  });
  elements.runIf(elements.compareI(arith::CmpIPredicate::slt, end.front(), size), [&] { write(end.front(), none); });
}

//===----------------------------------------------------------------------===//
// ClearTail
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> ClearTailOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType operand = tensorType(adaptor.getOperand()), count = tensorType(adaptor.getCount());
  auto axis = static_cast<int64_t>(adaptor.getAxis());
  if (axis < 0 || axis >= operand.getRank())
    return emitOptionalError(location, "'", getOperationName(), "' op has axis ", axis, ", which ", operand,
                             " does not have");
  if (count.getRank() != 0 || !count.getElementType().isInteger(64))
    return emitOptionalError(location, "'", getOperationName(), "' op has a count of type ", count,
                             "; it must be a scalar of i64");
  return RankedTensorType::get(operand.getShape(), operand.getElementType());
}

Definition ClearTailOp::getDefinition() {
  Definition definition = Definition::over(getType());
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    dims.push_back(Definition::at(dim));
  definition.addRead(1);
  return definition;
}

SmallVector<Value> ClearTailOp::emitBody(BodyBuilder &body) {
  ElementBuilder &elements = body.elements;
  Value count = body.read(1), position = elements.create<arith::IndexCastOp>(count.getType(), body.getLoop(getAxis()));
  Value isThere = elements.create<arith::CmpIOp>(arith::CmpIPredicate::slt, position, count);
  return {elements.select(isThere, body.read(0), elements.zero(getType().getElementType()))};
}
