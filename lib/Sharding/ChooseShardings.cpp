//===- ChooseShardings.cpp - Decide how everything is split ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds how everything is split, and gives operations, types and requested values what was found.
//
//===----------------------------------------------------------------------===//

#include "ShardingMessages.h"
#include "dovetail/Cost/PassCluster.h"

#include "dovetail/Dialect/Dovetail/IR/MeshPass.h"
#include "dovetail/Dialect/Dovetail/Ops/ControlOps.h"
#include "dovetail/Layout/Exchange.h"
#include "dovetail/Sharding/Passes.h"
#include "llvm/ADT/SetVector.h"

namespace dovetail {
#define GEN_PASS_DEF_CHOOSESHARDINGS
#include "dovetail/Sharding/Passes.h.inc"
} // namespace dovetail

#include <cmath>

using namespace mlir;
using namespace dovetail;

namespace {

struct ChooseShardings : MeshPass<dovetail::impl::ChooseShardingsBase<ChooseShardings>> {
  using MeshPass::MeshPass;
  ChooseShardings(ChooseShardingsOptions options, std::shared_ptr<const Cluster> found)
      : MeshPass(std::move(options)), found(std::move(found)) {}

  LogicalResult run(MeshOp op) override {
    for (auto function : getGraphs(getOperation()))
      if (failed(runOnFunction(function, op)))
        return failure();
    return success();
  }

  LogicalResult initialize(MLIRContext *context) override { return findCluster(found, cluster, context); }
  LogicalResult runOnFunction(func::FuncOp function, MeshOp mesh);

  std::shared_ptr<const Cluster> found;
};

/// Gives a function the shardings of an assignment.
class Commit {
public:
  Commit(func::FuncOp function, MeshOp meshOp, const ShardingAssignment &assignment, const Goal &goal)
      : function(function), mesh(meshOp.getMesh()), meshName(FlatSymbolRefAttr::get(meshOp)), assignment(assignment),
        costs(mesh, goal.cluster, goal.engine), objective(goal.objective) {}

  void run();

  /// What was decided, of operations that are still there.
  DenseMap<Operation *, LoopOption> decided;
  /// Operations gave way to others, which are to be decided.
  bool isOpen = false;

private:
  /// Replaces an operation that ranks cannot divide by itself as `option` says; else leaves such loops whole.
  bool decompose(SplitOpInterface op, const OpRelation &relation, LoopOption &option);
  /// Has the loops of an operation split as those of the one that gives its first operand.
  void follow(SplitOpInterface op, const OpRelation &relation, LoopOption &option);
  void setLoops(SplitOpInterface op, const OpRelation &relation, LoopOption &option, LoopShardings loops);
  void assign(SplitOpInterface op);
  void meet(Value value, ShardingAttr wanted);
  /// What a user needs of a value; null for a result of the function that is to be split in no certain way.
  ShardingAttr getNeed(OpOperand &use) const;
  /// Brings a value to its users in the form that was found for all of them.
  void bring(Value value, ShardingAttr form);
  /// Combines operands that are partial and are to be whole sums.
  void combine(SplitOpInterface op);
  /// Gathers a constant of which ranks store so much for the operations that need more.
  void gather(Value constant, ShardingAttr stored);

  func::FuncOp function;
  layout::Mesh mesh;
  FlatSymbolRefAttr meshName;
  const ShardingAssignment &assignment;
  ExchangeCosts costs;
  Objective objective;
  /// What users read in place of values whose sharding is requested.
  DenseMap<Value, Value> met;
};

} // namespace

static void setSharding(Value value, ShardingAttr sharding) {
  value.setType(withSharding(cast<RankedTensorType>(value.getType()), sharding));
}

bool Commit::decompose(SplitOpInterface op, const OpRelation &relation, LoopOption &option) {
  for (auto [index, loop] : llvm::enumerate(relation.loops)) {
    if (!mustDecompose(op, loop, option.loops[index]))
      continue;
    OpBuilder builder(op);
    FailureOr<SmallVector<Value>> replacement = op.decompose(builder, option.loops);
    if (succeeded(replacement)) {
      op->replaceAllUsesWith(*replacement);
      // What is requested of a result is requested of what takes its place.
      for (auto [result, value] : llvm::zip_equal(op->getResults(), *replacement))
        if (ShardingAttr wanted = assignment.values.lookup(result))
          meet(value, wanted);
      op->erase();
      return isOpen = true;
    }
    LoopShardings loops(option.loops);
    loops[index] = DimShardingAttr::getUnsplit(op.getContext());
    setLoops(op, relation, option, std::move(loops));
    op.emitRemark("is computed whole: ranks cannot divide dimension ")
        << index << ", along which it reduces or accumulates";
  }
  return false;
}

void Commit::setLoops(SplitOpInterface op, const OpRelation &relation, LoopOption &option, LoopShardings loops) {
  option.loops = std::move(loops);
  option.passedAxes.clear();
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    option.needs[number] =
        getNeededSharding(relation, number, cast<RankedTensorType>(operand.getType()), option.loops, meshName);
}

void Commit::follow(SplitOpInterface op, const OpRelation &relation, LoopOption &option) {
  Operation *first = op->getOperand(0).getDefiningOp();
  while (auto reshard = dyn_cast_if_present<ReshardOp>(first))
    first = reshard.getOperand().getDefiningOp();
  if (auto entry = decided.find(first); entry != decided.end())
    setLoops(op, relation, option, LoopShardings(entry->second.loops));
}

void Commit::meet(Value value, ShardingAttr wanted) {
  Value sent = reshardAfter(value, wanted);
  value.replaceAllUsesExcept(sent, sent.getDefiningOp());
  met[value] = sent;
}

ShardingAttr Commit::getNeed(OpOperand &use) const {
  if (auto reshard = dyn_cast<ReshardOp>(use.getOwner()))
    return getSharding(reshard.getResult());
  if (auto option = decided.find(use.getOwner()); option != decided.end())
    return option->second.needs[use.getOperandNumber()];
  return assignment.outputs.lookup(&use);
}

void Commit::bring(Value value, ShardingAttr form) {
  ShardingAttr held = getSharding(value);
  if (!held || held == form)
    return;
  auto type = cast<RankedTensorType>(value.getType());
  layout::Sharding from = toLayout(form, mesh, type.getRank());
  SmallVector<OpOperand *> uses;
  llvm::SmallSetVector<ShardingAttr, 4> needs;
  for (OpOperand &use : value.getUses()) {
    ShardingAttr need = getNeed(use);
    if (need ? covers(held, need, type, mesh) : !held.isPartial())
      continue;
    if (!need)
      need = held.withoutPartial();
    // The windows of a user may leave out what others read.
    if (!layout::verifyExchange(mesh, type.getShape(), from, toLayout(need, mesh, type.getRank())))
      return;
    uses.push_back(&use);
    needs.insert(need);
  }
  // Else partitioning gives each user what it needs, which costs no more.
  auto getCost = [&](ShardingAttr some, ShardingAttr other) {
    std::optional<ExchangeCost> cost = costs.get(type, some, other);
    return cost ? cost->get(objective) : std::numeric_limits<double>::infinity();
  };
  double direct = 0, brought = getCost(held, form);
  for (ShardingAttr need : needs) {
    direct += getCost(held, need);
    brought += getCost(form, need);
  }
  if (brought >= direct)
    return;
  Value sent = reshardAfter(value, form);
  for (OpOperand *use : uses)
    use->set(sent);
}

void Commit::assign(SplitOpInterface op) {
  OpRelation relation = op.getRelation();
  LoopOption option = assignment.operations.lookup(op);
  if (op->hasTrait<SplitAsFirst>())
    follow(op, relation, option);
  if (decompose(op, relation, option))
    return;
  assignLoopShardings(op, relation, option.loops, meshName);
  // What is linear in a sum adds up, too: its own sum over some axes joins the one that passes through.
  if (!option.passedAxes.empty())
    for (Value result : op->getResults())
      setSharding(result, option.result);
  decided[op] = option;
  for (Value result : op->getResults())
    if (ShardingAttr wanted = assignment.values.lookup(result); wanted && wanted != getSharding(result))
      meet(result, wanted);
}

void Commit::combine(SplitOpInterface op) {
  auto option = decided.find(op);
  if (option == decided.end())
    return;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    ShardingAttr needed = option->second.needs[operand.getOperandNumber()];
    if (!isPartial(value) || needed.isPartial())
      continue;
    // Partitioning would let it pass, as the operation is linear in it, or not know which operands are to pass
    // together.
    if (!op.isLinearIn(operand.getOperandNumber()) && option->second.passedAxes.empty())
      continue;
    operand.set(reshardBefore(op, value, needed));
  }
}

void Commit::gather(Value constant, ShardingAttr stored) {
  auto type = cast<RankedTensorType>(constant.getType());
  Value pieces;
  for (OpOperand &use : llvm::make_early_inc_range(constant.getUses())) {
    ShardingAttr need = getNeed(use);
    // What they store is stated by partitioning for all others.
    if (!need || covers(stored, need, type, mesh))
      continue;
    if (!pieces)
      pieces = reshardAfter(constant, stored);
    use.set(reshardBefore(use.getOwner(), pieces, need));
  }
}

void Commit::run() {
  for (BlockArgument argument : function.getArguments())
    setSharding(argument, assignment.arguments.lookup(argument));
  for (auto op : llvm::make_early_inc_range(function.getBody().front().getOps<SplitOpInterface>()))
    if (assignment.operations.contains(op))
      assign(op);
  // What is still to be decided may change what operations read.
  if (isOpen)
    return;
  SmallVector<Value> values(function.getArguments());
  for (Operation &op : function.getBody().front())
    llvm::append_range(values, op.getResults());
  for (Value value : values)
    if (ShardingAttr form = assignment.forms.lookup(value)) {
      Value read = met.lookup(value);
      bring(read ? read : value, form);
    }
  for (auto op : function.getBody().front().getOps<SplitOpInterface>())
    combine(op);
  for (const auto &[constant, stored] : assignment.stored)
    gather(constant, stored);
}

/// Says of a function what is expected of how it was split.
static void setExpectation(func::FuncOp function, const Expectation &expected) {
  Builder builder(function.getContext());
  auto getCount = [&](double value) { return builder.getI64IntegerAttr(std::llround(value)); };
  function->setAttr(
      kExpectationAttrName,
      builder.getDictionaryAttr({builder.getNamedAttr("bytes", getCount(expected.bytes)),
                                 builder.getNamedAttr("cost", builder.getF64FloatAttr(expected.cost)),
                                 builder.getNamedAttr("memory", getCount(expected.getMemory())),
                                 builder.getNamedAttr("seconds", builder.getF64FloatAttr(expected.seconds)),
                                 builder.getNamedAttr("weights", getCount(expected.weightBytes))}));
}

LogicalResult ChooseShardings::runOnFunction(func::FuncOp function, MeshOp meshOp) {
  FailureOr<FunctionRequests> requests = readRequests(function, meshOp);
  if (failed(requests))
    return failure();
  auto numRanks = static_cast<size_t>(meshOp.getMesh().numRanks());
  for (ArrayRef<double> list : {ArrayRef<double>(mostShares), ArrayRef<double>(slowness)})
    if (!list.empty() && list.size() < numRanks)
      return meshOp.emitError("'most-shares' and 'slowness' take a number for each of ") << numRanks << " ranks";
  auto meshName = FlatSymbolRefAttr::get(meshOp);
  bool isStated = !requests->arguments.empty() || !requests->results.empty() || !requests->loops.empty() ||
                  !requests->outputs.empty();
  std::vector<bool> givenNothing = findGivenNothing(*requests, meshOp.getMesh());
  DenseMap<Operation *, LoopOption> decided;
  FailureOr<ShardingAssignment> assignment;
  bool isAsked = true;
  // What operations give way to is decided with all else as it is.
  for (bool isOpen = true; isOpen;) {
    Goal goal{objective,  *found,   engine,          memory ? std::optional<double>(memory) : std::nullopt,
              mostShares, slowness, weightFactor,    gather,
              work,       explain,  following,       isAsked,
              follow,     seed,     defersDepartures};
    assignment = findAssignment(function, meshOp.getMesh(), meshName, *requests, goal, decided);
    if (failed(assignment))
      return failure();
    emitGap(function, *assignment, goal);
    if (DictionaryAttr departures = describeDepartures(*assignment, goal, &getContext())) {
      if (defersDepartures) {
        function->setAttr(kDeparturesAttrName, departures);
      } else {
        emitDepartures(departures);
        emitUnaligned(*assignment);
      }
    }
    emitEnd(*assignment);
    if (explain) {
      emitExplanations(function, *assignment, goal);
      if (isStated)
        emitSlow(*assignment);
      emitStored(*assignment);
    }
    Commit commit(function, meshOp, *assignment, goal);
    commit.run();
    decided = std::move(commit.decided);
    setExpectation(function, assignment->expected);
    requests->results.clear();
    requests->loops.clear();
    for (const auto &[argument, sharding] : assignment->arguments)
      requests->arguments[argument] = ShardingRequest(sharding.getDims());
    for (auto &[operand, dims] : requests->outputs)
      dims = ShardingRequest(assignment->outputs.lookup(operand).getDims());
    // From now on arguments are stated that nobody asked for.
    isAsked = false;
    isOpen = commit.isOpen;
  }
  emitIdle(function, *assignment, givenNothing, !found->isUniform() && memory == 0);
  auto bringTo = [](OpOperand &operand, ShardingAttr wanted) {
    ShardingAttr held = getSharding(operand.get());
    if (wanted != held && (held || !wanted.isReplicated()))
      operand.set(reshardBefore(operand.getOwner(), operand.get(), wanted));
  };
  for (auto &[operand, dims] : requests->outputs)
    bringTo(*operand, ShardingAttr::get(&getContext(), meshName, dims, {}, ReduceKind::Sum));
  for (auto &[operand, argument] : requests->feedback)
    bringTo(*operand, getSharding(argument));
  // What takes the place of an operation may be split as was requested of that.
  for (auto reshard : llvm::make_early_inc_range(function.getBody().front().getOps<ReshardOp>()))
    if (reshard.getOperand().getType() == reshard.getType()) {
      reshard.getResult().replaceAllUsesWith(reshard.getOperand());
      reshard.erase();
    }
  Block &block = function.getBody().front();
  function.setType(
      FunctionType::get(&getContext(), block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
  return success();
}

std::unique_ptr<Pass> dovetail::createChooseShardings(ChooseShardingsOptions options,
                                                      std::shared_ptr<const Cluster> cluster) {
  return std::make_unique<ChooseShardings>(std::move(options), std::move(cluster));
}
