//===- AssignmentOptions.cpp - What operations and arguments can choose ---===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the options of operations, and leaves out those that are not even where they are to be.
//
//===----------------------------------------------------------------------===//

#include "AssignmentProblem.h"

#include "llvm/ADT/STLExtras.h"

#include <map>
#include <set>

using namespace mlir;
using namespace dovetail;

/// Options of one operation: of more, for each set of mesh axes some with few changes from axis to axis, and of these
/// the most even ones.
static constexpr size_t kMaxOptions = 64;

double AssignmentProblem::getCost(const LoopOption &option) const {
  switch (goal.objective) {
  case Objective::Time:
    return option.seconds + getCost(option.inner);
  case Objective::Memory:
    return goal.weightFactor * option.weightBytes + option.resultBytes + kBytesPerSecond * option.seconds +
           getCost(option.inner);
  case Objective::Bytes:
    // Time decides between what moves as much: all of it is less than a byte for each rank.
    return getCost(option.inner) + (totalWork > 0 ? option.seconds / totalWork : 0);
  }
  llvm_unreachable("covered switch");
}

void AssignmentProblem::stateCuts() {
  auto state = [&](Value value, ArrayRef<DimShardingAttr> dims, bool isStated = true) {
    std::optional<unsigned> place = families.getPlace(value);
    if (!place)
      return;
    for (auto [index, dim] : llvm::enumerate(dims))
      if (dim.isSplit() && dim.getPieces().empty())
        families.stateOpen(*place + index, dim.getAxes());
      else if (dim.isSplit())
        families.state(*place + index, dim, isStated);
  };
  for (auto [operand, argument] : requests.feedback)
    families.feedBack(operand->get(), argument);
  for (BlockArgument argument : function.getArguments())
    if (auto request = requests.arguments.find(argument); request != requests.arguments.end())
      state(argument, request->second);
  for (Operation &op : function.getBody().front()) {
    if (auto entry = decided.find(&op); entry != decided.end())
      state(op.getResult(0), entry->second.loops, /*isStated=*/false);
    else if (auto loops = requests.loops.find(&op); loops != requests.loops.end())
      state(op.getResult(0), loops->second);
    else if (isa<ReshardOp>(op))
      state(op.getResult(0), getStated(op.getResult(0)).getDims());
    else if (op.getNumResults() > 0)
      if (auto request = requests.results.find(op.getResult(0)); request != requests.results.end())
        state(op.getResult(0), request->second);
  }
  for (const auto &[operand, request] : requests.outputs)
    state(operand->get(), request);
}

std::vector<LoopOption> AssignmentProblem::getOptions(SplitOpInterface op) {
  OpRelation relation = op.getRelation();
  OpCosts work(op, relation, constants);
  bool isWeight = constants.contains(op->getResult(0)) && !requests.loops.contains(op);
  if (!isWeight) {
    workOf[op] = work.getSeconds(goal.cluster.getDevice(0));
    totalWork += workOf[op];
  }
  if (auto entry = decided.find(op); entry != decided.end())
    return {entry->second};
  // Every rank computes weights as it needs them, once.
  if (isWeight) {
    LoopShardings whole(relation.loops.size(), DimShardingAttr::getUnsplit(op.getContext()));
    LoopOption option = loopOptions->get(op, relation, work, whole);
    option.seconds = option.weightBytes = option.resultBytes = 0;
    return {option};
  }
  if (auto loops = requests.loops.find(op); loops != requests.loops.end())
    return {loopOptions->get(op, relation, work, loops->second)};
  // Operands that sums may pass through: each alone, while the others are complete, or all of them together. Where sums
  // of 16 bits pass, operations are computed in a wider type. Code in regions is not. Sums are complete before a
  // conversion.
  auto mayPass = [&](Value operand) {
    Type type = getElementTypeOrSelf(operand.getType());
    return mayBePartial.contains(operand) && type == getElementTypeOrSelf(op->getResult(0).getType()) &&
           (op->getNumRegions() == 0 || type.getIntOrFloatBitWidth() >= 32);
  };
  SmallVector<SmallVector<unsigned>> passing;
  SmallVector<unsigned> all;
  if (!op.isReduction() || op->getNumOperands() == 1)
    for (unsigned number = 0; number < op->getNumOperands(); ++number) {
      if (!mayPass(op->getOperand(number)))
        continue;
      all.push_back(number);
      if (op.isLinearIn(number))
        passing.push_back({number});
    }
  if (all.size() > 1 && op.isLinearIn(all))
    passing.push_back(all);
  bool adds = llvm::any_of(relation.loops, [](const Loop &loop) {
    return loop.kind == LoopKind::Reduction && loop.reduction == ReduceKind::Sum && loop.extent > 1;
  });
  if (adds || !passing.empty())
    mayBePartial.insert(op->result_begin(), op->result_end());
  std::vector<LoopOption> found = loopOptions->get(op, relation, work, passing);
  double &least = leastSeconds[op] = found.front().seconds;
  for (const LoopOption &option : found)
    least = std::min(least, option.seconds);
  numLimited += found.size() > kMaxOptions || !loopOptions->hasFoundAll();
  return found.size() > kMaxOptions ? keepSome(std::move(found)) : std::move(found);
}

std::vector<LoopOption> AssignmentProblem::keepSome(std::vector<LoopOption> found) {
  // Options that use more axes are more even, but not always faster, so that some of each set of axes stay.
  std::map<std::set<StringRef>, std::vector<size_t>> byAxes;
  for (auto [number, option] : llvm::enumerate(found)) {
    std::set<StringRef> axes;
    for (DimShardingAttr loop : option.loops)
      for (StringAttr axis : loop.getAxes())
        axes.insert(axis.getValue());
    byAxes[axes].push_back(number);
  }
  // Those that are not among the first of their axes come later.
  std::vector<std::pair<bool, size_t>> order;
  auto getKey = [&](size_t number) {
    const LoopOption &option = found[number];
    return std::tuple(option.changes > LoopOptions::kMaxChanges, option.share / option.imbalance, option.changes,
                      number);
  };
  size_t share = kMaxOptions / byAxes.size();
  for (auto &[axes, numbers] : byAxes) {
    llvm::sort(numbers, [&](size_t a, size_t b) { return getKey(a) < getKey(b); });
    // Not to split is an option on any mesh.
    size_t first = axes.empty() ? std::max<size_t>(share, 1) : share;
    for (auto [place, number] : llvm::enumerate(numbers))
      order.push_back({place >= first, number});
  }
  llvm::sort(order, [&](auto a, auto b) {
    return std::tuple(a.first, getKey(a.second)) < std::tuple(b.first, getKey(b.second));
  });
  order.resize(kMaxOptions);
  std::vector<LoopOption> kept;
  for (auto [isLater, number] : order)
    kept.push_back(std::move(found[number]));
  return kept;
}

void AssignmentProblem::findOptions() {
  for (auto op : function.getBody().front().getOps<SplitOpInterface>())
    options[op] = getOptions(op);
}

void AssignmentProblem::findLight() {
  // Of equal ones the first.
  std::vector<std::tuple<double, size_t, Operation *>> byWork;
  for (const auto &[op, list] : options)
    byWork.push_back({workOf.lookup(op), byWork.size(), op});
  llvm::sort(byWork);
  double together = 0;
  for (auto [work, number, op] : byWork) {
    together += work;
    if (work <= kLightShare * totalWork && together <= (kEvenTolerance - 1) * totalWork)
      light.insert(op);
  }
}

void AssignmentProblem::keepEven() {
  // Else computing everything everywhere would move least. Time has a price for that.
  if (goal.objective == Objective::Time)
    return;
  for (auto &[op, list] : options) {
    if (list.size() == 1 || light.contains(op))
      continue;
    double least = list.front().share;
    for (const LoopOption &option : list)
      least = std::min(least, option.share);
    llvm::erase_if(list,
                   [&](const LoopOption &option) { return option.share > kEvenTolerance * least * option.imbalance; });
  }
}

std::vector<ShardingAttr> AssignmentProblem::close(Value value, const ShardingRequest &request) {
  std::vector<SmallVector<DimShardingAttr>> ways = {SmallVector<DimShardingAttr>(request)};
  std::optional<unsigned> place = families.getPlace(value);
  auto type = cast<RankedTensorType>(value.getType());
  for (auto [index, dim] : llvm::enumerate(request)) {
    if (!dim.isSplit() || !dim.getPieces().empty())
      continue;
    std::vector<SmallVector<DimShardingAttr>> closed;
    for (SmallVector<DimShardingAttr> &way : ways) {
      if (!place) {
        closed.push_back(closeCuts(way, costs.getMesh(), type.getShape()));
        continue;
      }
      for (const CutFamilies::Cuts &cuts : families.get(*place + index, dim.getAxes())) {
        closed.push_back(way);
        closed.back()[index] = cuts.sharding;
      }
    }
    ways = std::move(closed);
  }
  std::vector<ShardingAttr> shardings;
  for (const SmallVector<DimShardingAttr> &way : ways)
    shardings.push_back(ShardingAttr::get(value.getContext(), meshName, way, {}, ReduceKind::Sum));
  return shardings;
}
