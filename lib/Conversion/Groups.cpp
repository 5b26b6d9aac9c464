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

#include "dovetail/Dialect/Plan/IR/PackedWeights.h"
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
  if (Attribute attribute = root->getAttr(plan::kEachRunAttrName))
    group->setAttr(plan::kEachRunAttrName, attribute);
  Block &body = group.getBody().emplaceBlock();
  for (Value value : inputs.values)
    body.addArgument(value.getType(), value.getLoc());
  root->replaceAllUsesWith(group.getResults());

  DenseMap<Value, Value> constants;
  for (Operation *op : ops) {
    op->moveBefore(&body, body.end());
    // Values within the group are nowhere in memory.
    for (StringRef attribute : {plan::kFormatsAttrName, plan::kEachRunAttrName, plan::kGeneratedAttrName})
      op->removeAttr(attribute);
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

/// For each operation the innermost of those before it for which `begins` holds and that have not ended.
static DenseMap<Operation *, Operation *> findInnermost(Block &block, llvm::function_ref<bool(Operation &)> begins,
                                                        llvm::function_ref<bool(Operation &)> ends) {
  DenseMap<Operation *, Operation *> innermost;
  SmallVector<Operation *> open;
  for (Operation &op : block) {
    if (!open.empty())
      innermost[&op] = open.back();
    if (begins(op))
      open.push_back(&op);
    else if (ends(op) && !open.empty())
      open.pop_back();
  }
  return innermost;
}

DenseMap<Operation *, Operation *> dovetail::findLoops(Block &block) {
  return findInnermost(
      block, [](Operation &op) { return isa<plan::BeginLoopOp>(op); },
      [](Operation &op) { return isa<plan::EndLoopOp>(op); });
}

DenseMap<Operation *, Operation *> dovetail::findRegions(Block &block) {
  return findInnermost(
      block, [](Operation &op) { return isa<plan::BeginLoopOp, plan::BeginChoiceOp>(op); },
      [](Operation &op) { return isa<plan::EndLoopOp, plan::EndChoiceOp>(op); });
}
