//===- ControlOps.cpp - Loops and choices of a graph ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines iter_arg, yield, loop_result and if: all of them give elements of an operand as they are.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/ControlOps.h"

using namespace mlir;
using namespace dovetail;

/// All operands of the result's rank are read at its loops.
static Definition getCopyDefinition(Operation *op) {
  Definition definition = Definition::over(cast<RankedTensorType>(op->getResult(0).getType()));
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
    SmallVector<layout::AccessDim> &dims = definition.addRead(operand);
    for (int64_t dim = 0, rank = cast<RankedTensorType>(op->getOperand(operand).getType()).getRank(); dim < rank; ++dim)
      dims.push_back(Definition::at(dim));
  }
  return definition;
}

template <typename OpT> static LogicalResult verifyCarried(OpT op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  for (Value operand : op->getOperands())
    if (!equalUpToSharding(operand.getType(), type))
      return op.emitOpError("gives ") << type << " of " << operand.getType() << ": a loop-carried value keeps its type";
  if (op.getSlot() == 0 && (type.getRank() != 0 || !type.getElementType().isInteger(1)))
    return op.emitOpError("is of value 0, the condition, but has type ") << type;
  return success();
}

Definition IterArgOp::getDefinition() { return getCopyDefinition(*this); }
SmallVector<Value> IterArgOp::emitBody(BodyBuilder &body) { return {body.read(0)}; }
LogicalResult IterArgOp::verify() { return verifyCarried(*this); }

Definition YieldOp::getDefinition() { return getCopyDefinition(*this); }
SmallVector<Value> YieldOp::emitBody(BodyBuilder &body) { return {body.read(1)}; }
LogicalResult YieldOp::verify() { return verifyCarried(*this); }

Definition LoopResultOp::getDefinition() { return getCopyDefinition(*this); }
SmallVector<Value> LoopResultOp::emitBody(BodyBuilder &body) { return {body.read(0)}; }
LogicalResult LoopResultOp::verify() { return verifyCarried(*this); }

Definition IfOp::getDefinition() { return getCopyDefinition(*this); }

SmallVector<Value> IfOp::emitBody(BodyBuilder &body) {
  return {body.elements.select(body.read(0), body.read(1), body.read(2))};
}

LogicalResult IfOp::verify() {
  for (Value operand : {getOnTrue(), getOnFalse()})
    if (!equalUpToSharding(operand.getType(), getType()))
      return emitOpError("chooses ") << operand.getType() << " for " << getType();
  if (auto type = cast<RankedTensorType>(getCondition().getType()); type.getRank() != 0)
    return emitOpError("has a condition of type ") << type << "; it must be a boolean of rank 0";
  return success();
}
