//===- CheckChoices.cpp - What choices make is there where it is read -----===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows what is made only if a condition holds, to all who read it.
//
//===----------------------------------------------------------------------===//

#include "CheckChoices.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/Ops/ControlOps.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dovetail;

namespace {

/// A condition, and 1 if it must not hold.
using Case = std::pair<Value, unsigned>;
/// The cases that must all be so for a value to be there.
using Cases = llvm::SmallSetVector<Case, 2>;

class ChoiceCheck {
public:
  explicit ChoiceCheck(Block &block) : block(block) {}

  LogicalResult run();

private:
  /// Whether all that `op` reads is there where it stands, or, if there are `decisive` cases, lacks none of these.
  LogicalResult checkOperands(Operation *op, const Cases &decisive = {});
  LogicalResult checkKernel(plan::GroupOp group);
  /// What must be so for `value` to be there, besides what is where the check has come to.
  Cases getMissing(Value value) const;
  static InFlightDiagnostic report(Operation *reader, Value read);

  Block &block;
  SmallVector<Case> open;
  DenseMap<Value, Cases> cases;
};

} // namespace

Cases ChoiceCheck::getMissing(Value value) const {
  Cases missing = cases.lookup(value);
  for (const Case &given : open)
    missing.remove(given);
  return missing;
}

InFlightDiagnostic ChoiceCheck::report(Operation *reader, Value read) {
  InFlightDiagnostic diagnostic = reader->emitOpError();
  diagnostic.attachNote(read.getLoc()) << "it is made here";
  return diagnostic;
}

LogicalResult ChoiceCheck::checkOperands(Operation *op, const Cases &decisive) {
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    if (llvm::any_of(getMissing(operand), [&](Case given) { return decisive.empty() || decisive.contains(given); }))
      return report(op, operand) << "reads operand " << number
                                 << ", which is made by a choice that it is not part of; only kernels that choose by "
                                    "the same condition may";
  return success();
}

LogicalResult ChoiceCheck::checkKernel(plan::GroupOp group) {
  if (group.getLibrary())
    return checkOperands(group);
  // What is there of the values in the kernel.
  DenseMap<Value, Cases> missing;
  for (auto [argument, input] : llvm::zip_equal(group.getBlock()->getArguments(), group.getInputs()))
    missing[argument] = getMissing(input);
  auto isOutside = [&](Value value) -> Value {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getOwner() == group.getBlock() ? group.getInputs()[argument.getArgNumber()] : value;
  };
  for (Operation &op : *group.getBlock()) {
    Cases all;
    auto choose = dyn_cast<IfOp>(op);
    for (OpOperand &operand : op.getOpOperands()) {
      Cases own = missing.lookup(operand.get());
      if (choose && operand.getOperandNumber() > 0)
        own.remove(Case(isOutside(choose.getCondition()), operand.getOperandNumber() - 1));
      all.insert(own.begin(), own.end());
    }
    if (auto defined = dyn_cast<DefinitionOpInterface>(op)) {
      Definition definition = defined.getDefinition();
      for (const DataIndex &index : definition.getDataIndices())
        if (Value read = op.getOperand(definition.reads[index.read].operand); !missing.lookup(read).empty())
          return report(group, isOutside(read)) << "takes indices of what is made by a choice that it is not part of";
    }
    if (isa<plan::YieldOp>(op) && !all.empty())
      return checkOperands(group, all);
    for (Value result : op.getResults())
      missing[result] = all;
  }
  return success();
}

LogicalResult ChoiceCheck::run() {
  for (Operation &op : block) {
    // Constants are there, and what the prologue has made, whatever is chosen.
    if (isa<ConstantOp, plan::StorageOp>(op) || op.hasAttr(plan::kPrologueAttrName))
      continue;
    // What a view gives is there where its operand is.
    if (op.hasAttr(plan::kViewAttrName)) {
      cases[op.getResult(0)] = cases.lookup(op.getOperand(0));
      continue;
    }
    auto group = dyn_cast<plan::GroupOp>(op);
    if (failed(group ? checkKernel(group) : checkOperands(&op)))
      return failure();
    if (auto choice = dyn_cast<plan::BeginChoiceOp>(op))
      open.emplace_back(choice.getCondition(), choice.getNegated() ? 1 : 0);
    else if (isa<plan::EndChoiceOp>(op) && !open.empty())
      open.pop_back();
    for (Value result : op.getResults())
      cases[result].insert(open.begin(), open.end());
  }
  return success();
}

LogicalResult dovetail::checkChoices(Block &block) { return ChoiceCheck(block).run(); }
