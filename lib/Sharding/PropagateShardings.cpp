//===- PropagateShardings.cpp - Carry shardings through the graph -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives every value a sharding that follows from the requested ones.
//
//===----------------------------------------------------------------------===//

#include "Propagator.h"

#include "dovetail/Sharding/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_PROPAGATESHARDINGS
#include "dovetail/Sharding/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct PropagateShardings : dovetail::impl::PropagateShardingsBase<PropagateShardings> {
  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getModuleMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    if (!*mesh)
      return;
    for (auto function : getDefinitions(getOperation()))
      if (failed(Propagator(function, *mesh).run()))
        return signalPassFailure();
  }
};
} // namespace

LogicalResult Propagator::run() {
  if (failed(readRequests()) || failed(forward()))
    return failure();
  size_t before = requests.arguments.size();
  backward();
  if (requests.arguments.size() != before && failed(forward()))
    return failure();
  meetOutputRequests();
  Operation *terminator = function.getBody().front().getTerminator();
  function.setType(FunctionType::get(function.getContext(), function.getBody().front().getArgumentTypes(),
                                     terminator->getOperandTypes()));
  return success();
}

LogicalResult Propagator::forward() {
  for (BlockArgument argument : function.getArguments()) {
    auto request = requests.arguments.find(argument);
    setSharding(argument, request == requests.arguments.end() ? replicated(argument) : request->second);
  }
  Operation *op = &function.getBody().front().front();
  while (op) {
    auto partitionable = dyn_cast<DefinitionOpInterface>(op);
    if (!partitionable) {
      op = op->getNextNode();
      continue;
    }
    FailureOr<Operation *> next = assign(partitionable);
    if (failed(next))
      return failure();
    op = *next;
  }
  return success();
}

SmallVector<StringAttr> Propagator::getPassedAxes(DefinitionOpInterface op) {
  SmallVector<StringAttr> axes;
  if (op.isReduction() && op->getNumOperands() > 1)
    return axes;
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  bool isPartial = false;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    ShardingAttr sharding = getSharding(operand);
    if (!sharding || !sharding.isPartial())
      continue;
    // Linear in one operand means with the others fixed: two partial ones would multiply.
    if (isPartial || sharding.getPartialKind() != ReduceKind::Sum || !op.isLinearIn(number) ||
        getByteSize(result) > getByteSize(cast<RankedTensorType>(operand.getType())))
      return {};
    isPartial = true;
    llvm::append_range(axes, sharding.getPartialAxes());
  }
  return axes;
}

FailureOr<Operation *> Propagator::assign(DefinitionOpInterface op) {
  if (auto sent = sentResults.find(op); sent != sentResults.end()) {
    sent->second.getResult().replaceAllUsesWith(op->getResult(0));
    sent->second.erase();
    sentResults.erase(sent);
  }
  OpRelation relation = op.getRelation();
  if (auto stated = requests.loops.find(op); stated != requests.loops.end()) {
    assignLoopShardings(op, relation, stated->second, meshName);
    return op->getNextNode();
  }
  bool isRequested = requests.results.contains(op->getResult(0));
  SmallVector<StringAttr> passedAxes;
  if (!isRequested)
    passedAxes = getPassedAxes(op);
  SmallVector<LoopCandidate> candidates = getCandidates(op, relation, passedAxes);
  LoopShardings loops = chooseLoops(op, relation, candidates);
  if (isRequested) {
    applyRequest(op, relation, loops);
    if (std::optional<LoopShardings> atOwners = lookUpAtOwners(op, relation, candidates, loops)) {
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      ShardingAttr wanted = getResultSharding(relation, type.getRank(), loops, meshName).withoutPartial();
      assignLoopShardings(op, relation, *atOwners, meshName);
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      auto sent = ReshardOp::create(builder, op.getLoc(), withSharding(type, wanted), op->getResult(0));
      op->getResult(0).replaceAllUsesExcept(sent, sent);
      sentResults[op] = sent;
      return sent->getNextNode();
    }
  }

  // An operation that is split where only it can combine terms, or a scan where it does not begin anew, gives way to
  // simpler ones, which are looked at next.
  for (auto [index, loop] : llvm::enumerate(relation.loops)) {
    if (!mustDecompose(op, loop, loops[index]))
      continue;
    OpBuilder builder(op);
    Operation *before = op->getPrevNode();
    FailureOr<SmallVector<Value>> replacement = op.decompose(builder, loops);
    if (failed(replacement)) {
      loops[index] = unsplit;
      op.emitRemark("is computed whole: ranks cannot divide dimension ")
          << index << ", along which it reduces or accumulates";
      continue;
    }
    if (isRequested) {
      if (replacement->front().getDefiningOp<DefinitionOpInterface>())
        requests.results.try_emplace(replacement->front(), requests.results.lookup(op->getResult(0)));
      requests.results.erase(op->getResult(0));
    }
    op->replaceAllUsesWith(*replacement);
    Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
    op->erase();
    return first;
  }

  assignLoopShardings(op, relation, loops, meshName);
  // What is linear in a sum adds up, too: its own sum over some axes joins the one that passes through.
  if (!passedAxes.empty()) {
    ShardingAttr sharding = getSharding(op->getResult(0));
    llvm::append_range(passedAxes, sharding.getPartialAxes());
    setSharding(op->getResult(0),
                ShardingAttr::get(op.getContext(), meshName, sharding.getDims(), passedAxes, ReduceKind::Sum));
  }
  return op->getNextNode();
}
