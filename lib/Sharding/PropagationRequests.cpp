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
#include "dovetail/Sharding/ShardingRequests.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dovetail;

FailureOr<ArrayAttr> Propagator::getStated(Value value, ArrayAttr request, const Twine &name) {
  ShardingAttr sharding = getSharding(value);
  if (!sharding)
    return request;
  Operation *owner = value.getParentBlock()->getParentOp();
  auto error = [&] { return owner->emitError() << name << " has a sharding in its type, "; };
  if (request)
    return error() << "and another is requested: state one of them";
  if (sharding.getMesh() != meshName)
    return error() << "over " << sharding.getMesh() << ", but the mesh is " << meshName;
  if (sharding.isPartial())
    return error() << "which is partial: only how it is cut can be stated";
  return ArrayAttr::get(function.getContext(), llvm::to_vector_of<Attribute>(sharding.getDims()));
}

LogicalResult Propagator::readRequests() {
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    FailureOr<ArrayAttr> stated =
        getStated(argument, function.getArgAttrOfType<ArrayAttr>(index, kShardAttrName), "argument " + Twine(index));
    if (failed(stated))
      return failure();
    ArrayAttr attribute = *stated;
    if (!attribute)
      continue;
    auto dims = readRequest(attribute, argument, meshOp, "argument " + Twine(index));
    if (failed(dims))
      return failure();
    requests[argument] = ShardingAttr::get(
        function.getContext(), meshName,
        closeCuts(*dims, nullptr, mesh, cast<RankedTensorType>(argument.getType()).getShape()), {}, ReduceKind::Sum);
  }
  Block &block = function.getBody().front();
  for (Operation &op : block) {
    auto partitionable = dyn_cast<DefinitionOpInterface>(op);
    if (!partitionable)
      continue;
    std::string name = ("the result of '" + op.getName().getStringRef() + "'").str();
    FailureOr<ArrayAttr> stated = getStated(op.getResult(0), op.getAttrOfType<ArrayAttr>(kShardAttrName), name);
    if (failed(stated))
      return failure();
    ArrayAttr attribute = *stated;
    // Results are split alike.
    for (Value other : llvm::drop_begin(op.getResults()))
      if (getSharding(other) != getSharding(op.getResult(0)))
        return op.emitError() << name << " has a sharding in its type, and another result has another: state one";
    if (LoopShardingsAttr loops = partitionable.getLoopShardings()) {
      if (op.hasAttr(kShardAttrName))
        return op.emitError() << name << " has loop shardings, and a sharding is requested: state one of them";
      if (loops.getMesh() != meshName)
        return op.emitError() << "loops are split over " << loops.getMesh() << ", but the mesh is " << meshName;
      statedLoops[&op] = LoopShardings(loops.getLoops());
      continue;
    }
    if (!attribute)
      continue;
    auto dims = readRequest(attribute, op.getResult(0), meshOp, name);
    if (failed(dims))
      return failure();
    op.removeAttr(kShardAttrName);
    resultRequests[op.getResult(0)] = *dims;
  }
  for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    auto attribute = function.getResultAttrOfType<ArrayAttr>(index, kShardAttrName);
    if (!attribute)
      continue;
    auto dims = readRequest(attribute, operand.get(), meshOp, "result " + Twine(index));
    if (failed(dims))
      return failure();
    outputRequests.push_back({&operand, *dims});
    // The operation that computes it takes care of that, unless it must do otherwise. Results are split alike.
    if (auto op = operand.get().getDefiningOp<DefinitionOpInterface>(); op && !statedLoops.contains(op))
      resultRequests.try_emplace(op->getResult(0), *dims);
  }
  return success();
}

void Propagator::applyRequest(DefinitionOpInterface op, const OpRelation &relation, LoopShardings &loops) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  ShardingAttr chosen = getResultSharding(relation, type.getRank(), loops, meshName);
  auto dims = closeCuts(resultRequests.lookup(op->getResult(0)), chosen, mesh, type.getShape());
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
  for (auto &[operand, dims] : outputRequests) {
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
