//===- DecomposeComposites.cpp - Replace composite operations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces composite operations by the simpler ones that kernels are made of.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/Decomposition/Decompose.h"
#include "dovetail/Sharding/ShardingUtils.h"

namespace dovetail {
#define GEN_PASS_DEF_DECOMPOSECOMPOSITES
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

struct DecomposeComposites : dovetail::impl::DecomposeCompositesBase<DecomposeComposites> {
  void runOnOperation() override {
    if (getOperation().isDeclaration())
      return;
    for (Operation &op : llvm::make_early_inc_range(getOperation().getBody().front()))
      if (isa<PartitionableOpInterface>(op) && failed(decompose(op)))
        return signalPassFailure();
  }

  LogicalResult decompose(Operation &op);
};

} // namespace

/// After partition the parts of `op`, from `first` up to it, take the shardings of the whole: none of the dimensions
/// that it reduces is split. Returns `value`, its replacement, with the sharding of its result.
static Value keepShardings(Operation &op, Operation *first, Value value, FlatSymbolRefAttr mesh) {
  auto whole = cast<PartitionableOpInterface>(op);
  OpRelation relation = whole.getRelation();
  LoopShardings loops = getLoopShardings(whole);
  OpBuilder builder(first);
  auto isPart = [&](OpOperand &use) {
    Operation *owner = use.getOwner();
    return owner->getBlock() == op.getBlock() && !owner->isBeforeInBlock(first) && owner->isBeforeInBlock(&op);
  };
  // Ranks may hold more of an operand than `op` needs, or the same over other axes: the parts follow what it needs.
  for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
    auto type = cast<RankedTensorType>(operand.getType());
    ShardingAttr held = getSharding(operand);
    ShardingAttr need = getNeededSharding(relation, number, type, loops, mesh);
    if (held == need || (!held && need.isReplicated()))
      continue;
    Value part = ReshardOp::create(builder, op.getLoc(), withSharding(type, need), operand);
    operand.replaceUsesWithIf(part,
                              [&](OpOperand &use) { return use.getOwner() != part.getDefiningOp() && isPart(use); });
  }
  for (Operation *part = first; part != &op; part = part->getNextNode())
    if (auto partitionable = dyn_cast<PartitionableOpInterface>(part))
      followOperands(partitionable, mesh);
  Type type = op.getResult(0).getType();
  if (value.getType() == type)
    return value;
  builder.setInsertionPoint(&op);
  return ReshardOp::create(builder, op.getLoc(), type, value);
}

LogicalResult DecomposeComposites::decompose(Operation &op) {
  OpBuilder builder(&op);
  Operation *before = op.getPrevNode();
  FailureOr<Value> replacement = decomposeUnsplit(&op, builder);
  if (failed(replacement))
    return success();
  Value result = op.getResult(0);
  if (ShardingAttr sharding = getSharding(result)) {
    Operation *first = before ? before->getNextNode() : &op.getBlock()->front();
    replacement = keepShardings(op, first, *replacement, sharding.getMesh());
  }
  result.replaceAllUsesWith(*replacement);
  op.erase();
  return success();
}
