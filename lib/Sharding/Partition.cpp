//===- Partition.cpp - Make needs explicit -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inserts a reshard where a rank does not hold what an operation needs.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/IR/MeshPass.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Layout/Exchange.h"
#include "dovetail/Sharding/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace dovetail {
#define GEN_PASS_DEF_PARTITION
#include "dovetail/Sharding/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

struct Partition : MeshPass<dovetail::impl::PartitionBase<Partition>> {
  LogicalResult run(MeshOp) override {
    for (auto function : getGraphs(getOperation())) {
      for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
        if (auto partitionable = dyn_cast<SplitOpInterface>(op)) {
          if (failed(meetNeeds(partitionable)))
            return failure();
        } else if (op.hasTrait<OpTrait::IsTerminator>())
          reduceResults(function, op);
      }
    }
    return success();
  }

  LogicalResult meetNeeds(SplitOpInterface op);
  /// Says where an axis that splits operands of `op` splits none of its loops: no large tensor is replicated silently.
  void remarkGathered(SplitOpInterface op, ArrayRef<DimShardingAttr> loops);
  void reduceResults(func::FuncOp function, Operation &terminator);
};

} // namespace

/// Tensors of fewer bytes are not worth a remark.
static constexpr int64_t kLeastRemarked = 1024;

static int64_t getBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

void Partition::remarkGathered(SplitOpInterface op, ArrayRef<DimShardingAttr> loops) {
  // The bytes that ranks gather along each axis.
  llvm::MapVector<StringAttr, int64_t> gathered;
  for (Value operand : op->getOperands()) {
    llvm::SmallSetVector<StringAttr, 4> axes;
    if (ShardingAttr held = getSharding(operand))
      for (DimShardingAttr dim : held.getDims())
        axes.insert(dim.getAxes().begin(), dim.getAxes().end());
    for (StringAttr axis : axes)
      if (llvm::none_of(loops, [&](DimShardingAttr loop) { return llvm::is_contained(loop.getAxes(), axis); }))
        gathered[axis] += getBytes(operand);
  }
  for (auto [axis, bytes] : gathered)
    if (bytes >= kLeastRemarked)
      op.emitRemark("is computed whole by all ranks along axis ")
          << axis << ", which splits its operands: ranks gather " << bytes << " bytes first";
}

LogicalResult Partition::meetNeeds(SplitOpInterface op) {
  OpRelation relation = op.getRelation();
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  FailureOr<LoopShardings> loops = readLoopShardings(op);
  if (failed(loops))
    return failure();
  ShardingAttr resultSharding = getSharding(result);
  if (!resultSharding)
    return success();
  SmallVector<StringAttr> reducedAxes;
  for (DimShardingAttr loop : ArrayRef(*loops).drop_front(result.getRank()))
    llvm::append_range(reducedAxes, loop.getAxes());
  remarkGathered(op, *loops);
  // Sums over the same axes may stay partial together where the result is partial over these because of them.
  auto passes = [&](ShardingAttr held) {
    return held && held.isPartial() && held.getPartialKind() == ReduceKind::Sum &&
           op.isLinearIn(getPartialOperands(op, held)) && llvm::all_of(held.getPartialAxes(), [&](StringAttr axis) {
             return llvm::is_contained(resultSharding.getPartialAxes(), axis) && !llvm::is_contained(reducedAxes, axis);
           });
  };

  // Whether sums pass is asked before any of them is completed.
  SmallVector<bool> mayPass =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return passes(getSharding(operand)); });
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = cast<RankedTensorType>(operand.get().getType());
    ShardingAttr held = getSharding(type);
    ShardingAttr need = getNeededSharding(relation, operand.getOperandNumber(), type, *loops, meshName);
    bool isConstant = operand.get().getDefiningOp<ConstantOp>() != nullptr;
    bool covered = covers(held, need, type, mesh);
    if (mayPass[operand.getOperandNumber()]) {
      covered = covers(held.withoutPartial(), need, type, mesh);
      need = ShardingAttr::get(&getContext(), meshName, need.getDims(), held.getPartialAxes(), held.getPartialKind());
    }
    // Ranks keep their part of a constant only, though all of it is at hand.
    if (isConstant && need.isSplit() ? held != need : !covered)
      operand.set(reshardBefore(op, operand.get(), need));
  }
  return success();
}

void Partition::reduceResults(func::FuncOp function, Operation &terminator) {
  for (OpOperand &operand : terminator.getOpOperands())
    if (isPartial(operand.get()))
      operand.set(reshardBefore(&terminator, operand.get(), getBoxSharding(operand.get())));
  function.setType(
      FunctionType::get(&getContext(), function.getBody().front().getArgumentTypes(), terminator.getOperandTypes()));
}
