//===- AttentionCall.cpp - What calls of attention read -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what follows from the accesses of `plan.attention`.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Plan/IR/AttentionCall.h"

#include "dovetail/Calls/AttentionForm.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

static std::vector<calls::AccessDims> getAccesses(AttentionOp call) {
  std::vector<calls::AccessDims> accesses;
  for (auto read : call.getReads().getAsRange<AccessAttr>())
    accesses.emplace_back(read.getDims().get());
  return accesses;
}

bool AttentionOp::hasForm() { return calls::isAttention(getAccesses(*this), getExtents(getLoops())); }

int64_t plan::getHeadColumns(AttentionOp call) {
  return getValueColumns(call, calls::AttentionForm::find(getAccesses(call), getExtents(call.getLoops()))->columns);
}

int64_t plan::getValueColumns(AttentionOp call, int64_t columns) {
  return call.getParts() ? std::max<int64_t>(columns - calls::attentionPartColumns, 0) : columns;
}

LogicalResult plan::verifyReads(AttentionOp call) {
  std::vector<calls::AccessDims> accesses = getAccesses(call);
  SmallVector<int64_t> extents = getExtents(call.getLoops());
  int64_t &columns = extents.end()[-3];
  if (call.getParts() && (extents.size() < 5 || columns <= calls::attentionPartColumns ||
                          calls::AttentionForm::find(accesses, extents)->columns != columns))
    return call.emitOpError(
        "gives parts, but has no loop over them, or not the columns of one head with scores and sums");
  if (auto keys = cast<LoopAttr>(call.getLoops()[extents.size() - 2]); keys.isSplit() && !call.getParts())
    return call.emitOpError("splits the loop over keys, but gives no parts");
  columns = getValueColumns(call, columns);
  BufferOp output = getBufferOp(call.getOutput());
  for (auto [number, operand] : llvm::enumerate(call.getStepReads())) {
    RankedTensorType type = cast<RefType>(operand.getType()).getTensor();
    if (!calls::staysInside(accesses[number], type.getShape(), extents))
      return call.emitOpError("reads operand ") << number << " as a tensor of other extents than " << type;
    bool isShared = output && getBufferOp(operand) == output;
    if (isShared && (number != 0 || !calls::mayWriteOverQueries(accesses, extents)))
      return call.emitOpError("writes over operand ") << number << ", which it still reads";
  }
  return success();
}
