//===- FormCalls.cpp - Form library calls -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Groups operations that a library performs with the elementwise operations behind them, their epilogues.
//
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "LibraryPass.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Plan/IR/PackedWeights.h"

namespace dovetail {
#define GEN_PASS_DEF_FORMCALLS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct FormCalls : LibraryPass<dovetail::impl::FormCallsBase<FormCalls>> {
  using LibraryPass::LibraryPass;

  LogicalResult run(func::FuncOp function, const Libraries &callable) override;
};
} // namespace

/// True if a call can read `tensor` while it writes `result`: same type and format, or a vector that broadcasts.
static bool isPostTensor(Value tensor, Value result) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto resultType = cast<RankedTensorType>(result.getType());
  if (type.getElementType() != resultType.getElementType() || isPartial(tensor))
    return false;
  if (type.getShape() == resultType.getShape())
    return plan::getFormat(tensor) == plan::getFormat(result);
  // At most one dimension that is not 1: its order in memory does not matter.
  return llvm::count_if(type.getShape(), [](int64_t extent) { return extent != 1; }) <= 1;
}

/// Makes a group of `op`, which is done by `call`, and of what that can apply to the result.
static void formCall(Operation *op, const LibraryCall &call) {
  SmallVector<Operation *> ops = {op};
  GroupInputs inputs;
  Value value = op->getResult(0);
  while (!isPartial(value) && value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    auto user = dyn_cast<PostOpInterface>(use.getOwner());
    if (!user || user->getNumResults() != 1 || user->getResult(0).getType() != value.getType() ||
        plan::getFormat(user->getResult(0)) != plan::getFormat(value))
      break;
    std::optional<PostOp> postOp = user.getPostOp(use.getOperandNumber());
    if (!postOp || !call.library->hasEpilogue(call.shape, *postOp))
      break;
    if (postOp->operand) {
      OpOperand &tensor = user->getOpOperand(*postOp->operand);
      if (!isPostTensor(tensor.get(), user->getResult(0)))
        break;
      inputs.add(tensor);
    }
    ops.push_back(user);
    value = user->getResult(0);
  }
  for (OpOperand &operand : op->getOpOperands())
    if (readsOperand(call.shape.form, operand.getOperandNumber()))
      inputs.add(operand);
  formGroup(ops, inputs, StringAttr::get(op->getContext(), call.library->getName()));
}

LogicalResult FormCalls::run(func::FuncOp function, const Libraries &callable) {
  Block &block = function.getBody().front();
  SmallVector<Operation *> ops;
  for (Operation &op : block.without_terminator()) {
    // Where loops and choices begin and end there is no value.
    if (op.getNumResults() == 0)
      continue;
    if (!op.hasAttr(plan::kFormatsAttrName))
      return op.emitOpError("has no memory formats; dovetail-choose-formats chooses them");
    ops.push_back(&op);
  }
  for (Operation *op : ops)
    // Those of epilogues are in groups by now.
    if (op->getBlock() == &block && !op->hasAttr(plan::kGeneratedAttrName))
      if (LibraryCall call = callable.findCall(op))
        formCall(op, call);
  return success();
}
