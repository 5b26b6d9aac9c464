//===- LibraryCalls.cpp - Form library calls -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives library calls their epilogues: the elementwise operations behind them.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

using namespace mlir;
using namespace dovetail;
using plan::PostOpAttr;

/// True if a call can read `tensor` while it writes `result`: same type and format, or a vector that broadcasts.
static bool isPostTensor(Value tensor, Value result, const Formats &formats) {
  auto type = cast<RankedTensorType>(tensor.getType());
  auto resultType = cast<RankedTensorType>(result.getType());
  if (type.getElementType() != resultType.getElementType())
    return false;
  if (ShardingAttr sharding = getSharding(tensor); sharding && sharding.isPartial())
    return false;
  if (type.getShape() == resultType.getShape())
    return formats.lookup(tensor) == formats.lookup(result);
  // At most one dimension that is not 1: its order in memory does not matter.
  return llvm::count_if(type.getShape(), [](int64_t extent) { return extent != 1; }) <= 1;
}

/// What the user of the result of `call` is as a post-op, if the library can do it; `tensor` is what it reads besides.
static std::optional<PostOpAttr> getPostOp(Operation *call, const Library &library, OpOperand &use, Value &tensor,
                                           const Formats &formats) {
  auto op = dyn_cast<PostOpInterface>(use.getOwner());
  std::optional<PostOp> postOp = op ? op.getPostOp(use.getOperandNumber()) : std::nullopt;
  if (!postOp || !library.hasEpilogue(call, *postOp))
    return std::nullopt;
  MLIRContext *context = op.getContext();
  if (postOp->operand) {
    tensor = op->getOperand(*postOp->operand);
    if (!isPostTensor(tensor, op->getResult(0), formats))
      return std::nullopt;
  }
  if (postOp->parameters)
    return PostOpAttr::get(context, postOp->kind, postOp->parameters->alpha, postOp->parameters->beta);
  return PostOpAttr::get(context, postOp->kind);
}

void dovetail::absorbPostOps(Group &group, const Library &library, const Formats &formats,
                             const DenseSet<Operation *> &taken) {
  Value value = group.call->getResult(0);
  ShardingAttr sharding = getSharding(value);
  if (sharding && sharding.isPartial())
    return;
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    Operation *user = use.getOwner();
    if (taken.contains(user) || user->getNumResults() != 1 || user->getResult(0).getType() != value.getType() ||
        formats.lookup(user->getResult(0)) != formats.lookup(value))
      return;
    Value tensor;
    std::optional<PostOpAttr> postOp = getPostOp(group.call, library, use, tensor, formats);
    if (!postOp)
      return;
    group.postOps.push_back(*postOp);
    if (tensor)
      group.postTensors.push_back(tensor);
    group.ops.push_back(user);
    value = user->getResult(0);
  }
}
