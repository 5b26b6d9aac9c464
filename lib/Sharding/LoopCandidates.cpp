//===- LoopCandidates.cpp - Ways to split the loops of an operation -------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds how the loops of an operation may be split as its operands are, and chooses what moves fewest bytes.
//
//===----------------------------------------------------------------------===//

#include "Propagator.h"

#include "dovetail/Layout/Cuts.h"
#include "dovetail/Layout/ExchangeKind.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dovetail;

/// Assignments tried for one operation, at most 2 to this power.
static constexpr size_t kMaxCandidates = 8;

/// The cuts of a loop for which ranks need only what they hold of an operand dimension in windows, as far as there are
/// such: they are in the middle of where neighbours hold enough for the same indices. Else those that follow the
/// owners.
static std::optional<std::vector<int64_t>> followWindows(const layout::DimMap &map, DimShardingAttr held,
                                                         int64_t operandExtent, int64_t loopExtent) {
  SmallVector<layout::Interval> within;
  for (unsigned i = 0; i < held.getNumPieces(); ++i) {
    layout::Interval served{0, 0};
    for (int64_t index = 0; index < loopExtent; ++index) {
      // An index that needs nothing, such as padding, says nothing about who should have it.
      layout::Interval need = map.needClipped({index, index + 1}, operandExtent);
      if (!need.empty() && held.getPiece(i).contains(need))
        served = served.hull({index, index + 1});
    }
    within.push_back(served);
  }
  if (auto cuts = getCutPositions(DimShardingAttr::getWindows(held.getAxes(), within), loopExtent))
    return std::vector<int64_t>(cuts->begin(), cuts->end());
  auto owners = getCutPositions(held, operandExtent);
  return owners ? map.follow(*owners, loopExtent) : std::nullopt;
}

SmallVector<LoopCandidate> Propagator::getCandidates(DefinitionOpInterface op, const OpRelation &relation,
                                                     ArrayRef<StringAttr> passedAxes) {
  SmallVector<LoopCandidate> candidates;
  auto add = [&](unsigned loop, DimShardingAttr sharding) {
    LoopCandidate candidate{loop, sharding};
    if (llvm::any_of(sharding.getAxes(), [&](StringAttr axis) { return llvm::is_contained(passedAxes, axis); }))
      return;
    if (!llvm::is_contained(candidates, candidate))
      candidates.push_back(candidate);
  };
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    ShardingAttr sharding = getSharding(operand);
    if (!sharding)
      continue;
    auto type = cast<RankedTensorType>(operand.getType());
    for (auto [dim, entry] : llvm::enumerate(relation.operands[number])) {
      DimShardingAttr held = sharding.getDims()[dim];
      if (!held.isSplit() || entry.loop < 0)
        continue;
      const Loop &loop = relation.loops[entry.loop];
      // What all ranks need whole, as it is indexed or combined, may come to them, who then divide what they make of
      // it.
      auto addScattered = [&] {
        int64_t parts = getNumParts(mesh, held.getAxes());
        for (unsigned to = 0, rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank(); to < rank; ++to)
          if (relation.loops[to].kind == LoopKind::Parallel && canScatter(op, to, parts))
            return add(
                to, DimShardingAttr::getCuts(held.getAxes(), layout::balancedCuts(relation.loops[to].extent, parts)));
      };
      if (loop.kind == LoopKind::Whole && entry.loop >= cast<RankedTensorType>(op->getResult(0).getType()).getRank())
        addScattered();
      // To split a reduction over one element would leave all ranks but one without work, and without the operand.
      if (loop.kind == LoopKind::Whole || (loop.kind != LoopKind::Parallel && loop.extent <= 1))
        continue;
      // What the parts of a scan come to is scanned once more: no more of them than there are elements.
      if (loop.kind == LoopKind::Scan && loop.extent <= held.getNumPieces())
        continue;
      int64_t extent = type.getDimSize(dim);
      auto cuts = held.coversOnce(extent) ? entry.map.follow(*getCutPositions(held, extent), loop.extent)
                                          : followWindows(entry.map, held, extent, loop.extent);
      if (cuts)
        add(entry.loop, DimShardingAttr::getCuts(held.getAxes(), *cuts));
      if (loop.isLookup())
        addScattered();
    }
    // A large partial operand that must be reduced here may be scattered over a dimension; a small one is reduced
    // whole.
    if (sharding.isPartial() && passedAxes.empty() && getByteSize(type) >= layout::minScatterBytes) {
      int64_t parts = getNumParts(mesh, sharding.getPartialAxes());
      for (auto [dim, entry] : llvm::enumerate(relation.operands[number])) {
        if (entry.loop < 0 || !entry.map.isIdentity() || sharding.getDims()[dim].isSplit())
          continue;
        const Loop &loop = relation.loops[entry.loop];
        if (loop.kind == LoopKind::Parallel && loop.extent >= parts)
          add(entry.loop,
              DimShardingAttr::getCuts(sharding.getPartialAxes(), layout::balancedCuts(loop.extent, parts)));
      }
    }
  }
  if (candidates.size() > kMaxCandidates)
    candidates.resize(kMaxCandidates);
  return candidates;
}

int64_t Propagator::getOperandBytes(DefinitionOpInterface op, const OpRelation &relation,
                                    ArrayRef<DimShardingAttr> loops) {
  int64_t bytes = 0;
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    if (ShardingAttr held = getSharding(operand)) {
      auto type = cast<RankedTensorType>(operand.getType());
      bytes += getExchangeBytes(type, held, getNeededSharding(relation, number, type, loops, meshName), mesh);
    }
  return bytes;
}

/// Of all results.
static int64_t getResultBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getResultTypes())
    bytes += getByteSize(cast<RankedTensorType>(type));
  return bytes;
}

bool Propagator::canScatter(DefinitionOpInterface op, unsigned dim, int64_t parts) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return getResultBytes(op) >= layout::minScatterBytes && type.getDimSize(dim) >= parts &&
         llvm::any_of(op->getUsers(), llvm::IsaPred<DefinitionOpInterface>);
}

int64_t Propagator::getCost(DefinitionOpInterface op, const OpRelation &relation, ArrayRef<DimShardingAttr> loops) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t cost = getOperandBytes(op, relation, loops);
  llvm::SmallSetVector<StringAttr, 4> operandAxes;
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    if (ShardingAttr held = getSharding(operand))
      for (auto [dim, entry] : llvm::zip_equal(held.getDims(), relation.operands[number]))
        // To look up costs no more than to move what was found.
        if (entry.loop < 0 || !relation.loops[entry.loop].isLookup())
          operandAxes.insert(dim.getAxes().begin(), dim.getAxes().end());
  int64_t unused = 1;
  for (StringAttr axis : operandAxes)
    if (llvm::none_of(loops, [&](DimShardingAttr loop) { return llvm::is_contained(loop.getAxes(), axis); }))
      unused *= getNumParts(mesh, axis);
  // What is not split is computed, and held, by every rank.
  cost += (unused - 1) * getResultBytes(op);
  for (auto [loop, sharding] : llvm::zip_equal(relation.loops, loops)) {
    if (!sharding.isSplit())
      continue;
    int64_t parts = getNumParts(mesh, sharding.getAxes());
    if (loop.isLookup()) {
      // Whole for all ranks, or scattered.
      bool isScattered = llvm::any_of(llvm::seq<unsigned>(0, result.getRank()), [&](unsigned dim) {
        return !loops[dim].isSplit() && canScatter(op, dim, parts);
      });
      cost += (isScattered ? 1 : 2) * (parts - 1) * getResultBytes(op);
    } else if (loop.kind == LoopKind::Reduction)
      cost += 2 * (parts - 1) * getResultBytes(op);
    else if (loop.kind == LoopKind::Scan)
      cost += 2 * (parts - 1) * getResultBytes(op) / std::max<int64_t>(loop.extent, 1);
  }
  return cost;
}

LoopShardings Propagator::chooseLoops(DefinitionOpInterface op, const OpRelation &relation,
                                      ArrayRef<LoopCandidate> candidates) {
  LoopShardings none(relation.loops.size(), unsplit);
  if (candidates.empty())
    return none;
  LoopShardings best;
  int64_t bestCost = 0;
  for (unsigned chosen = (1u << candidates.size()); chosen-- > 0;) {
    LoopShardings loops = none;
    llvm::SmallSetVector<StringAttr, 4> used;
    bool isValid = true;
    for (auto [index, candidate] : llvm::enumerate(candidates)) {
      if (!(chosen >> index & 1))
        continue;
      isValid &= !loops[candidate.loop].isSplit();
      for (StringAttr axis : candidate.sharding.getAxes())
        isValid &= used.insert(axis);
      loops[candidate.loop] = candidate.sharding;
    }
    // Partial values combine in one way only.
    std::optional<ReduceKind> kind;
    for (auto [loop, sharding] : llvm::zip_equal(relation.loops, loops)) {
      if (loop.kind != LoopKind::Reduction || !sharding.isSplit())
        continue;
      isValid &= !kind || *kind == loop.reduction;
      kind = loop.reduction;
    }
    if (!isValid)
      continue;
    if (candidates.size() == 1 && relation.loops[candidates[0].loop].kind == LoopKind::Parallel)
      return loops;
    int64_t cost = getCost(op, relation, loops);
    if (best.empty() || cost < bestCost) {
      best = loops;
      bestCost = cost;
    }
  }
  return best;
}

std::optional<LoopShardings> Propagator::lookUpAtOwners(DefinitionOpInterface op, const OpRelation &relation,
                                                        ArrayRef<LoopCandidate> candidates,
                                                        ArrayRef<DimShardingAttr> requested) {
  LoopShardings loops(requested);
  llvm::SmallSetVector<StringAttr, 4> axes;
  for (const LoopCandidate &candidate : candidates) {
    bool isFree = llvm::none_of(candidate.sharding.getAxes(), [&](StringAttr axis) { return axes.contains(axis); });
    if (!relation.loops[candidate.loop].isLookup() || !isFree)
      continue;
    loops[candidate.loop] = candidate.sharding;
    axes.insert(candidate.sharding.getAxes().begin(), candidate.sharding.getAxes().end());
  }
  if (axes.empty())
    return std::nullopt;
  // Partial values combine in one way only.
  for (auto [loop, sharding] : llvm::zip_equal(relation.loops, loops))
    if (loop.kind == LoopKind::Reduction && !loop.isLookup())
      sharding = unsplit;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  for (DimShardingAttr &dim : MutableArrayRef(loops).take_front(type.getRank()))
    if (llvm::any_of(dim.getAxes(), [&](StringAttr axis) { return axes.contains(axis); }))
      dim = unsplit;
  int64_t bytes = getOperandBytes(op, relation, loops) +
                  getExchangeBytes(type, getResultSharding(relation, type.getRank(), loops, meshName),
                                   getResultSharding(relation, type.getRank(), requested, meshName), mesh);
  return bytes < getOperandBytes(op, relation, requested) ? std::optional(loops) : std::nullopt;
}
