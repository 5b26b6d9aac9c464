//===- Control.cpp - Steps that are repeated or chosen ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines where loops and choices begin and end, in a graph and in a program.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

#define GET_OP_CLASSES
#include "dovetail/Dialect/Plan/IR/PlanControlOps.cpp.inc"

LogicalResult EndLoopOp::verify() {
  for (auto [carried, next] : llvm::zip_equal(getCarried(), getNext()))
    if (carried.getType() != next.getType())
      return emitOpError("makes ") << carried.getType() << " of " << next.getType()
                                   << ": a loop-carried value is split alike in each iteration";
  return success();
}

static LogicalResult verifyCondition(Operation *op, Value condition) {
  RankedTensorType type = cast<RefType>(condition.getType()).getTensor();
  if (type.getRank() != 0 || !type.getElementType().isInteger(1) || isPartial(type))
    return op->emitOpError("has a condition of type ") << type << "; it must be a boolean of rank 0";
  return success();
}

SmallVector<Value> RepeatOp::getStepReads() { return {getCondition()}; }
SmallVector<Value> RepeatOp::getStepWrites() { return {}; }

LogicalResult RepeatOp::verify() { return verifyCondition(*this, getCondition()); }

SmallVector<Value> IfOp::getStepReads() { return {getCondition()}; }
SmallVector<Value> IfOp::getStepWrites() { return {}; }
LogicalResult IfOp::verify() { return verifyCondition(*this, getCondition()); }

SmallVector<Value> EndOp::getStepReads() { return {}; }
SmallVector<Value> EndOp::getStepWrites() { return {}; }
