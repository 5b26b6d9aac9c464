//===- Groups.cpp - Make groups of operations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves operations into groups.
//
//===----------------------------------------------------------------------===//

#include "Groups.h"

#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dovetail;

void GroupInputs::add(OpOperand &operand) {
  numbers[&operand] = values.size();
  values.push_back(operand.get());
}

plan::GroupOp dovetail::formGroup(ArrayRef<Operation *> ops, const GroupInputs &inputs, StringAttr library) {
  Operation *root = ops.back();
  OpBuilder builder(root);
  auto group = plan::GroupOp::create(builder, root->getLoc(), root->getResultTypes(), inputs.values, library,
                                     /*in_place=*/IntegerAttr());
  group->setAttr(plan::kFormatsAttrName, root->getAttr(plan::kFormatsAttrName));
  Block &body = group.getBody().emplaceBlock();
  for (Value value : inputs.values)
    body.addArgument(value.getType(), value.getLoc());
  root->replaceAllUsesWith(group.getResults());

  DenseMap<Value, Value> constants;
  for (Operation *op : ops) {
    op->moveBefore(&body, body.end());
    op->removeAttr(plan::kFormatsAttrName); // Values within the group are nowhere in memory.
    builder.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands()) {
      if (auto number = inputs.numbers.find(&operand); number != inputs.numbers.end()) {
        operand.set(body.getArgument(number->second));
        continue;
      }
      Operation *producer = operand.get().getDefiningOp();
      if (producer->getBlock() == &body)
        continue;
      Value &copy = constants[operand.get()];
      if (!copy) {
        copy = builder.clone(*producer)->getResult(0);
        copy.getDefiningOp()->removeAttr(plan::kFormatsAttrName);
      }
      operand.set(copy);
    }
  }
  builder.setInsertionPointToEnd(&body);
  plan::YieldOp::create(builder, root->getLoc(), root->getResults());
  return group;
}

DenseMap<Operation *, Operation *> dovetail::findLoops(Block &block) {
  DenseMap<Operation *, Operation *> loops;
  SmallVector<Operation *> open;
  for (Operation &op : block) {
    if (!open.empty())
      loops[&op] = open.back();
    if (isa<plan::BeginLoopOp>(op))
      open.push_back(&op);
    else if (isa<plan::EndLoopOp>(op) && !open.empty())
      open.pop_back();
  }
  return loops;
}
