//===- PropagationRequests.cpp - What users ask of propagation ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads which shardings are requested, and sees to it that values have them.
//
//===----------------------------------------------------------------------===//

#include "Propagator.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dovetail;

LogicalResult Propagator::readRequests() {
  FailureOr<FunctionRequests> read = dovetail::readRequests(function, meshOp);
  if (failed(read))
    return failure();
  requests = std::move(*read);
  // The operation that computes an output takes care of what is requested, unless it must do otherwise. Results are
  // split alike.
  for (const auto &[operand, dims] : requests.outputs)
    if (auto op = operand->get().getDefiningOp<DefinitionOpInterface>(); op && !requests.loops.contains(op))
      requests.results.try_emplace(op->getResult(0), dims);
  return success();
}

void Propagator::applyRequest(DefinitionOpInterface op, const OpRelation &relation, LoopShardings &loops) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  ShardingAttr chosen = getResultSharding(relation, type.getRank(), loops, meshName);
  auto dims = closeCuts(requests.results.lookup(op->getResult(0)), chosen, mesh, type.getShape());
  llvm::SmallSetVector<StringAttr, 4> axes;
  for (auto [index, dim] : llvm::enumerate(dims)) {
    if (dim.isSplit() && relation.loops[index].kind == LoopKind::Whole) {
      op.emitRemark("computes dimension ") << index << " whole, which is to be split: it is cut afterwards";
      dim = unsplit;
    }
    axes.insert(dim.getAxes().begin(), dim.getAxes().end());
    loops[index] = dim;
  }
  // An axis splits one loop.
  for (DimShardingAttr &loop : MutableArrayRef(loops).drop_front(dims.size()))
    if (llvm::any_of(loop.getAxes(), [&](StringAttr axis) { return axes.contains(axis); }))
      loop = unsplit;
}

void Propagator::meetOutputRequests() {
  for (auto &[operand, dims] : requests.outputs) {
    auto type = cast<RankedTensorType>(operand->get().getType());
    ShardingAttr held = getSharding(type);
    auto wanted = ShardingAttr::get(function.getContext(), meshName, closeCuts(dims, held, mesh, type.getShape()), {},
                                    ReduceKind::Sum);
    if (wanted == held || (!held && wanted.isReplicated()))
      continue;
    OpBuilder builder(operand->getOwner());
    operand->set(ReshardOp::create(builder, operand->get().getLoc(), withSharding(type, wanted), operand->get()));
  }
}
