//===- VerifyPartition.cpp - Check a partition -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks that every need is met on every rank.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/IR/MeshPass.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Layout/Exchange.h"
#include "dovetail/Sharding/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace dovetail {
#define GEN_PASS_DEF_VERIFYPARTITION
#include "dovetail/Sharding/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

struct VerifyPartition : MeshPass<dovetail::impl::VerifyPartitionBase<VerifyPartition>> {
  LogicalResult run(MeshOp) override {
    for (auto function : getGraphs(getOperation()))
      if (failed(verifyArguments(function)))
        return failure();
    WalkResult result = getOperation().walk([&](Operation *op) {
      if (failed(verify(op)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Every element of an argument has an owner.
  LogicalResult verifyArguments(func::FuncOp function);
  LogicalResult verify(Operation *op);
  LogicalResult verifyNeeds(SplitOpInterface op);
  LogicalResult verifyReshard(ReshardOp op);
};

} // namespace

LogicalResult VerifyPartition::verifyArguments(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    if (failed(verifySharding(function, type)))
      return failure();
    ShardingAttr sharding = getSharding(type);
    if (!sharding)
      continue;
    for (auto [index, dim] : llvm::enumerate(sharding.getDims()))
      if (!dim.covers(type.getDimSize(index)))
        return function.emitError("argument ")
               << argument.getArgNumber() << " is cut into " << dim << " in dimension " << index
               << ", which leaves elements of its extent of " << type.getDimSize(index) << " to no rank";
  }
  return success();
}

LogicalResult VerifyPartition::verify(Operation *op) {
  for (Value result : op->getResults()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type)
      continue;
    std::string why;
    layout::Sharding sharding = toLayout(getSharding(type), mesh, type.getRank());
    if (!sharding.verify(mesh, type.getShape(), &why))
      return op->emitError("has a result whose sharding is wrong: ") << why;
  }
  if (auto reshard = dyn_cast<ReshardOp>(op))
    return verifyReshard(reshard);
  if (auto partitionable = dyn_cast<SplitOpInterface>(op))
    return verifyNeeds(partitionable);
  return success();
}

LogicalResult VerifyPartition::verifyReshard(ReshardOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  std::string why;
  if (!layout::verifyExchange(mesh, type.getShape(), toLayout(getSharding(op.getOperand()), mesh, type.getRank()),
                              toLayout(getSharding(op.getResult()), mesh, type.getRank()), &why))
    return op.emitError("cannot be carried out: ") << why;
  return success();
}

LogicalResult VerifyPartition::verifyNeeds(SplitOpInterface op) {
  OpRelation relation = op.getRelation();
  FailureOr<LoopShardings> loops = readLoopShardings(op);
  if (failed(loops))
    return failure();
  ShardingAttr actual = getSharding(op->getResult(0));
  ShardingAttr partial;
  SmallVector<StringAttr> summed;
  for (DimShardingAttr loop : llvm::drop_begin(*loops, cast<RankedTensorType>(op->getResult(0).getType()).getRank()))
    llvm::append_range(summed, loop.getAxes());
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    auto type = cast<RankedTensorType>(operand.getType());
    ShardingAttr held = getSharding(operand);
    ShardingAttr need = getNeededSharding(relation, number, type, *loops, meshName);
    if (held && held.isPartial()) {
      if (!op.isLinearIn(getPartialOperands(op, held)) || !llvm::all_of(held.getPartialAxes(), [&](StringAttr axis) {
            return actual && llvm::is_contained(actual.getPartialAxes(), axis);
          }))
        return op->emitError("reads operand ") << number << ", which is partial, but is not linear in it";
      // Others than sums are not what they were once they are scaled, and what has no owner is no longer zero bits.
      if (held.getPartialKind() != ReduceKind::Sum || actual.getPartialKind() != ReduceKind::Sum)
        return op->emitError("reads operand ") << number << ", which is partial, and no sum that could stay so";
      // Linear in some operands means with the others fixed.
      if (partial && partial.getPartialAxes() != held.getPartialAxes())
        return op->emitError("reads operand ") << number << ", which is partial over other axes than another one";
      partial = held;
      llvm::append_range(summed, held.getPartialAxes());
      held = held.withoutPartial();
    }
    if (!covers(held, need, type, mesh))
      return op->emitError("needs ") << need << " of operand " << number << ", but ranks hold " << held;
  }
  for (StringAttr axis : actual ? actual.getPartialAxes() : ArrayRef<StringAttr>())
    if (!llvm::is_contained(summed, axis))
      return op->emitError("has a result that is partial over mesh axis ")
             << axis << ", over which it adds nothing up: the sum would count it several times";
  return success();
}
