//===- LoopOptions.cpp - Ways to split the loops of operations ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements LoopOptions.
//
//===----------------------------------------------------------------------===//

#include "LoopOptions.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

#include <cmath>
#include <set>

using namespace mlir;
using namespace dovetail;

/// So many ways to give the mesh's axes to loops are all tried.
static constexpr double kMaxAssignments = 512;
/// Of more axes over which a sum might stay partial, not all subsets are.
static constexpr size_t kMaxFreeAxes = 3;

LoopOptions::LoopOptions(ExchangeCosts &costs, FlatSymbolRefAttr meshName, CutFamilies &families)
    : costs(costs), mesh(costs.getMesh()), meshName(meshName), families(families),
      unsplit(DimShardingAttr::getUnsplit(meshName.getContext())) {
  // An axis of one rank divides nothing, unless it is stated to.
  for (const layout::MeshAxis &axis : mesh.getAxes()) {
    auto name = StringAttr::get(meshName.getContext(), axis.name);
    if (axis.size > 1 || llvm::any_of(families.getStatedAxes(),
                                      [&](ArrayRef<StringAttr> stated) { return llvm::is_contained(stated, name); }))
      axisNames.push_back(name);
  }
}

SmallVector<SmallVector<StringAttr>, 1> LoopOptions::getOrders(ArrayRef<StringAttr> axes) const {
  SmallVector<SmallVector<StringAttr>, 1> orders = {SmallVector<StringAttr>(axes)};
  for (const SmallVector<StringAttr> &stated : families.getStatedAxes())
    if (stated != orders.front() && std::is_permutation(stated.begin(), stated.end(), axes.begin(), axes.end()))
      orders.push_back(stated);
  return orders;
}

unsigned LoopOptions::countChanges(ArrayRef<unsigned> assignment, function_ref<bool(unsigned loop)> isCounted) {
  unsigned changes = 0;
  std::optional<unsigned> before;
  for (unsigned loop : assignment)
    if (isCounted(loop)) {
      changes += before && *before != loop;
      before = loop;
    }
  return changes;
}

std::vector<LoopOptions::Assignment> LoopOptions::getAssignments(unsigned place, ArrayRef<unsigned> loops) {
  size_t numAxes = axisNames.size();
  unsigned mostChanges = numAxes;
  bool areAll = std::pow(loops.size() + 1, numAxes) <= kMaxAssignments;
  if (!areAll) {
    mostChanges = kMaxChanges;
    isComplete = false;
  }
  std::set<Assignment, std::less<>> found;
  // Loops that are cut as is stated, then what the other axes split.
  auto addOthers = [&](auto &&self, Assignment &assignment, const llvm::SmallBitVector &isFixed, size_t axis) -> void {
    auto isCounted = [&](unsigned loop) { return loop == kNone || !isFixed.test(loop); };
    while (axis < numAxes && assignment[axis] != kNone)
      ++axis;
    if (countChanges(ArrayRef(assignment).take_front(axis), isCounted) > mostChanges)
      return;
    if (axis == numAxes) {
      found.insert(Assignment(llvm::reverse(assignment)));
      return;
    }
    for (unsigned loop : loops) {
      if (isFixed.test(loop))
        continue;
      assignment[axis] = loop;
      self(self, assignment, isFixed, axis + 1);
    }
    assignment[axis] = kNone;
    self(self, assignment, isFixed, axis + 1);
  };
  auto addStated = [&](auto &&self, Assignment &assignment, llvm::SmallBitVector &isFixed, size_t number) -> void {
    if (number == loops.size()) {
      Assignment extended = assignment;
      addOthers(addOthers, extended, isFixed, 0);
      return;
    }
    unsigned loop = loops[number];
    self(self, assignment, isFixed, number + 1);
    if (areAll)
      return;
    for (ArrayRef<StringAttr> stated : families.getStatedAxes()) {
      Assignment extended = assignment;
      bool isFree = true;
      for (StringAttr axis : stated) {
        unsigned &entry = extended[llvm::find(axisNames, axis) - axisNames.begin()];
        isFree &= entry == kNone;
        entry = loop;
      }
      if (!isFree || llvm::none_of(families.get(place + loop, stated), [](const auto &cuts) { return cuts.isStated; }))
        continue;
      isFixed.set(loop);
      self(self, extended, isFixed, number + 1);
      isFixed.reset(loop);
    }
  };
  Assignment assignment(numAxes, kNone);
  llvm::SmallBitVector isFixed(loops.empty() ? 0 : loops.back() + 1);
  addStated(addStated, assignment, isFixed, 0);
  // Of two, that with the lower loop for the last axis comes first, and that without splits last.
  std::vector<Assignment> assignments;
  for (const Assignment &reversed : found)
    assignments.push_back(Assignment(llvm::reverse(reversed)));
  return assignments;
}

std::vector<LoopOptions::Split> LoopOptions::getSplits(unsigned place, size_t count,
                                                       function_ref<bool(unsigned loop, int64_t parts)> maySplit) {
  std::vector<Split> splits;
  SmallVector<unsigned> loops;
  for (unsigned loop = 0; loop < count; ++loop)
    if (maySplit(loop, 1))
      loops.push_back(loop);
  for (const Assignment &assignment : getAssignments(place, loops)) {
    std::vector<Split> ways = {{LoopShardings(count, unsplit), assignment, SmallVector<bool>(count, true)}};
    for (unsigned loop : loops) {
      SmallVector<StringAttr> axes;
      for (auto [axis, to] : llvm::zip_equal(axisNames, assignment))
        if (to == loop)
          axes.push_back(axis);
      if (axes.empty() || ways.empty())
        continue;
      std::vector<Split> extended;
      if (maySplit(loop, getNumParts(mesh, axes)))
        for (ArrayRef<StringAttr> order : getOrders(axes))
          for (const CutFamilies::Cuts &cuts : families.get(place + loop, order))
            for (const Split &way : ways) {
              extended.push_back(way);
              extended.back().loops[loop] = cuts.sharding;
              extended.back().isStated[loop] = cuts.isStated;
              extended.back().imbalance *= cuts.imbalance;
            }
      ways = std::move(extended);
    }
    llvm::append_range(splits, ways);
  }
  return splits;
}

/// Whether the only iteration of loop `number` reads one element of a dimension that has several. One rank may have
/// that, such as an end that another rank continues its part with.
static bool takesOneOfMany(SplitOpInterface op, const OpRelation &relation, unsigned number) {
  for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), relation.operands))
    for (auto [dim, entry] : llvm::enumerate(dims))
      if (entry.loop == static_cast<int>(number) && entry.map.hasLoop() && entry.map.need({0, 1}).size() == 1 &&
          cast<RankedTensorType>(operand.getType()).getDimSize(dim) > 1)
        return true;
  return false;
}

/// Whether loop `number` can be split into so many parts.
static bool maySplitLoop(SplitOpInterface op, const OpRelation &relation, unsigned number, int64_t parts) {
  const Loop &loop = relation.loops[number];
  bool hasParts = llvm::any_of(relation.loops, [](const Loop &other) { return other.kind == LoopKind::Part; });
  switch (loop.kind) {
  case LoopKind::Parallel:
    return loop.extent > 1 || (loop.extent == 1 && takesOneOfMany(op, relation, number));
  case LoopKind::Reduction:
    // What finds parts is not divided again.
    return loop.extent > 1 && (loop.reduction || (op.dividesTerms() && !hasParts));
  case LoopKind::Scan:
    // What the parts of a scan come to is scanned once more: no more of them than there are elements.
    return loop.extent > parts;
  case LoopKind::Part:
  case LoopKind::Whole:
  case LoopKind::Tap:
    return false;
  }
  llvm_unreachable("covered switch");
}

/// Whether what ranks have of a reduction is less precise than what it is made of.
static bool roundsParts(SplitOpInterface op, ReduceKind kind) {
  Type type = cast<RankedTensorType>(op->getResult(0).getType()).getElementType();
  return (kind == ReduceKind::Sum || kind == ReduceKind::Prod) && isa<FloatType>(type) &&
         type.getIntOrFloatBitWidth() < 32;
}

/// The part of a loop that the rank with most of it has.
static double getLargestShare(DimShardingAttr loop, int64_t extent) {
  int64_t largest = 0;
  for (unsigned piece = 0; piece < loop.getNumPieces(); ++piece)
    largest = std::max(largest, loop.getPiece(piece).size());
  return static_cast<double>(largest) / static_cast<double>(std::max<int64_t>(extent, 1));
}

LoopOption LoopOptions::get(SplitOpInterface op, const OpRelation &relation, const OpCosts &work, LoopShardings loops) {
  LoopOption option;
  option.seconds = work.getSeconds(costs.getCluster(), mesh, loops);
  option.share = work.getLargestShare(costs.getCluster(), mesh, loops);
  option.weightBytes = work.getWeightBytes(loops);
  option.resultBytes = work.getResultBytes(loops);
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  unsigned rank = type.getRank();
  // Where only the operation can combine what ranks have, each gets what all others of its group have found, and has
  // the result. Whatever loops are divided so, they are told once.
  LoopShardings combined = loops;
  SmallVector<StringAttr> told;
  double bytes = 0;
  for (Type result : op->getResultTypes())
    bytes += static_cast<double>(getByteSize(cast<RankedTensorType>(result)));
  for (auto [index, loop] : llvm::enumerate(relation.loops)) {
    if (!mustDecompose(op, loop, loops[index])) {
      if (index < rank && loops[index].isSplit())
        bytes *= getLargestShare(loops[index], loop.extent);
      continue;
    }
    llvm::append_range(told, loops[index].getAxes());
    if (loop.kind == LoopKind::Scan)
      bytes /= static_cast<double>(std::max<int64_t>(loop.extent, 1));
    else
      combined[index] = unsplit;
  }
  if (!told.empty())
    option.inner = costs.getTelling(bytes, told);
  option.result = getResultSharding(relation, rank, combined, meshName);
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    option.needs.push_back(
        getNeededSharding(relation, number, cast<RankedTensorType>(operand.getType()), loops, meshName));
  option.loops = std::move(loops);
  return option;
}

/// The subsets of axes, but for the empty one; of many axes those that follow each other.
static std::vector<SmallVector<StringAttr>> getSubsets(ArrayRef<StringAttr> axes) {
  std::vector<SmallVector<StringAttr>> subsets;
  if (axes.size() > kMaxFreeAxes) {
    for (size_t begin = 0; begin < axes.size(); ++begin)
      for (size_t end = begin + 1; end <= axes.size(); ++end)
        subsets.emplace_back(axes.slice(begin, end - begin));
    return subsets;
  }
  for (unsigned chosen = 1; chosen < 1u << axes.size(); ++chosen) {
    SmallVector<StringAttr> &subset = subsets.emplace_back();
    for (auto [index, axis] : llvm::enumerate(axes))
      if (chosen >> index & 1)
        subset.push_back(axis);
  }
  return subsets;
}

std::vector<LoopOption> LoopOptions::get(SplitOpInterface op, const OpRelation &relation, const OpCosts &work,
                                         ArrayRef<SmallVector<unsigned>> mayBePartial) {
  isComplete = true;
  unsigned place = *families.getPlace(op->getResult(0));
  std::vector<LoopOption> options;
  auto maySplit = [&](unsigned loop, int64_t parts) { return maySplitLoop(op, relation, loop, parts); };
  for (Split &split : getSplits(place, relation.loops.size(), maySplit)) {
    // Partial values combine in one way only.
    std::optional<ReduceKind> kind;
    bool isValid = true;
    llvm::SmallSetVector<StringAttr, 4> used;
    for (auto [loop, sharding, isStated] : llvm::zip_equal(relation.loops, split.loops, split.isStated)) {
      if (!sharding.isSplit())
        continue;
      used.insert(sharding.getAxes().begin(), sharding.getAxes().end());
      if (loop.kind != LoopKind::Reduction || !loop.reduction)
        continue;
      isValid &= !kind || *kind == loop.reduction;
      // Parts of sums would be rounded before they are added.
      isValid &= isStated || !roundsParts(op, *loop.reduction);
      kind = loop.reduction;
    }
    if (!isValid)
      continue;
    LoopOption option = get(op, relation, work, split.loops);
    option.imbalance = split.imbalance;
    auto isCounted = [&](unsigned loop) { return loop >= kPartial || !split.isStated[loop]; };
    option.changes = countChanges(split.assignment, isCounted);
    // Sums may stay partial over axes that split nothing here.
    SmallVector<StringAttr> free;
    for (StringAttr axis : axisNames)
      if (!used.contains(axis))
        free.push_back(axis);
    if (!kind || kind == ReduceKind::Sum)
      for (ArrayRef<unsigned> operands : mayBePartial)
        for (const SmallVector<StringAttr> &axes : getSubsets(free)) {
          LoopOption passing = option;
          Assignment assignment = split.assignment;
          for (StringAttr axis : axes)
            assignment[llvm::find(axisNames, axis) - axisNames.begin()] = kPartial;
          passing.changes = countChanges(assignment, isCounted);
          passing.passedAxes = axes;
          for (unsigned number : operands)
            passing.needs[number] = ShardingAttr::get(op.getContext(), meshName, passing.needs[number].getDims(),
                                                      passing.passedAxes, ReduceKind::Sum);
          SmallVector<StringAttr> partial(passing.passedAxes);
          llvm::append_range(partial, option.result.getPartialAxes());
          passing.result =
              ShardingAttr::get(op.getContext(), meshName, option.result.getDims(), partial, ReduceKind::Sum);
          options.push_back(std::move(passing));
        }
    options.push_back(std::move(option));
  }
  return options;
}

std::vector<ShardingAttr> LoopOptions::get(unsigned place, RankedTensorType type) {
  std::vector<ShardingAttr> shardings;
  for (const Split &split :
       getSplits(place, type.getRank(), [&](unsigned dim, int64_t parts) { return type.getDimSize(dim) > 1; }))
    shardings.push_back(ShardingAttr::get(type.getContext(), meshName, split.loops, {}, ReduceKind::Sum));
  return shardings;
}
