//===- PropagateBackward.cpp - What users of values wish ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds shardings for arguments without a request: those that the values made of them are to have.
//
//===----------------------------------------------------------------------===//

#include "Propagator.h"

using namespace mlir;
using namespace dovetail;

void Propagator::backward() {
  // Values that depend on nothing that the user decided.
  DenseSet<Value> undecided;
  for (BlockArgument argument : function.getArguments())
    if (!requests.arguments.contains(argument))
      undecided.insert(argument);
  if (undecided.empty())
    return;
  Block &block = function.getBody().front();
  for (Operation &op : block)
    if (isa<DefinitionOpInterface>(op) &&
        llvm::any_of(op.getOperands(), [&](Value v) { return undecided.contains(v); }) &&
        llvm::all_of(op.getOperands(), [&](Value v) { return undecided.contains(v) || v.getDefiningOp<ConstantOp>(); }))
      undecided.insert(op.result_begin(), op.result_end());

  DenseMap<Value, ShardingAttr> wishes;
  for (Operation &op : llvm::reverse(block)) {
    auto partitionable = dyn_cast<DefinitionOpInterface>(op);
    if (!partitionable)
      continue;
    ShardingAttr sharding = getSharding(op.getResult(0));
    if (undecided.contains(op.getResult(0)) && !requests.results.contains(op.getResult(0)) &&
        !requests.loops.contains(&op))
      sharding = wishes.lookup(op.getResult(0));
    if (!sharding)
      continue;
    OpRelation relation = partitionable.getRelation();
    LoopShardings loops(relation.loops.size(), unsplit);
    llvm::copy(sharding.getDims(), loops.begin());
    SmallVector<StringAttr> used;
    for (DimShardingAttr dim : sharding.getDims())
      used.append(dim.getAxes().begin(), dim.getAxes().end());
    // A reduction was split before users wished for this result: what they wish may take its axes.
    if (LoopShardingsAttr decided = partitionable.getLoopShardings())
      for (auto [index, loop] : llvm::enumerate(decided.getLoops()))
        if (index >= sharding.getDims().size() &&
            llvm::none_of(loop.getAxes(), [&](StringAttr axis) { return llvm::is_contained(used, axis); }))
          loops[index] = loop;
    for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
      if (!undecided.contains(operand) || wishes.contains(operand))
        continue;
      ArrayRef<int64_t> shape = cast<RankedTensorType>(operand.getType()).getShape();
      SmallVector<DimShardingAttr> dims(shape.size(), unsplit);
      SmallVector<int> taken;
      for (auto [dim, entry] : llvm::enumerate(relation.operands[number])) {
        if (entry.loop < 0 || !loops[entry.loop].isSplit())
          continue;
        auto positions = getCutPositions(loops[entry.loop], relation.loops[entry.loop].extent);
        auto cuts = positions ? entry.map.followBack(*positions, shape[dim]) : std::nullopt;
        // Two dimensions may follow one loop.
        if (!cuts || llvm::is_contained(taken, entry.loop))
          continue;
        dims[dim] = DimShardingAttr::getCuts(loops[entry.loop].getAxes(), *cuts);
        taken.push_back(entry.loop);
      }
      auto wish = ShardingAttr::get(op.getContext(), meshName, dims, {}, ReduceKind::Sum);
      if (wish.isSplit())
        wishes[operand] = wish;
    }
  }
  for (BlockArgument argument : function.getArguments())
    if (ShardingAttr wish = wishes.lookup(argument); wish && !requests.arguments.contains(argument))
      requests.arguments[argument] = wish;
}
