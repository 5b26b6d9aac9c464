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
      if (isa<DefinitionOpInterface>(op) && failed(decompose(op)))
        return signalPassFailure();
  }

  LogicalResult decompose(Operation &op);
};

} // namespace

/// After partition, splits the loops of the parts of `op`, from `first` up to it, so that ranks compute what they need
/// for `value`, its replacement, when that is split as `loops`, those of `op`. None of what `op` reduces is split.
static void assignLoops(Operation &op, Operation *first, Value value, ArrayRef<DimShardingAttr> loops,
                        FlatSymbolRefAttr mesh) {
  DimShardingAttr unsplit = DimShardingAttr::getUnsplit(op.getContext());
  DenseMap<Value, ShardingAttr> needs;
  auto add = [&](Value operand, ShardingAttr need) {
    auto [entry, isNew] = needs.try_emplace(operand, need);
    if (!isNew)
      entry->second = getHull(entry->second, need);
  };
  unsigned rank = cast<RankedTensorType>(value.getType()).getRank();
  add(value, ShardingAttr::get(op.getContext(), mesh, loops.take_front(rank), {}, ReduceKind::Sum));
  for (Operation *part = op.getPrevNode(), *end = first->getPrevNode(); part != end; part = part->getPrevNode()) {
    auto partitionable = dyn_cast<DefinitionOpInterface>(part);
    if (!partitionable)
      continue;
    OpRelation relation = partitionable.getRelation();
    LoopShardings partLoops(relation.loops.size(), unsplit);
    if (ShardingAttr need = needs.lookup(part->getResult(0)))
      for (auto [sharding, loop, dim] : llvm::zip(partLoops, relation.loops, need.getDims()))
        if (loop.kind == LoopKind::Parallel && dim.covers(loop.extent))
          sharding = dim;
    assignLoopShardings(partitionable, relation, partLoops, mesh);
    for (auto [number, operand] : llvm::enumerate(part->getOperands()))
      add(operand, getNeededSharding(relation, number, cast<RankedTensorType>(operand.getType()), partLoops, mesh));
  }
}

LogicalResult DecomposeComposites::decompose(Operation &op) {
  OpBuilder builder(&op);
  Operation *before = op.getPrevNode();
  FailureOr<Value> replacement = decomposeUnsplit(&op, builder);
  if (failed(replacement))
    return success();
  FailureOr<LoopShardings> loops = readLoopShardings(cast<DefinitionOpInterface>(op));
  if (failed(loops))
    return failure();
  Value result = op.getResult(0);
  if (ShardingAttr sharding = getSharding(result)) {
    Operation *first = before ? before->getNextNode() : &op.getBlock()->front();
    assignLoops(op, first, *replacement, *loops, sharding.getMesh());
  }
  result.replaceAllUsesWith(*replacement);
  op.erase();
  return success();
}
