//===- SplitFacts.cpp - What moves where a dimension is split -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements getSplitFacts.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Sharding/SplitFacts.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace dovetail;
using layout::DimMap;
using layout::Interval;

StringRef dovetail::stringifySplitFact(SplitFact fact) {
  switch (fact) {
  case SplitFact::Halo:
    return "halo";
  case SplitFact::Order:
    return "order";
  case SplitFact::Sum:
    return "sum";
  case SplitFact::Parts:
    return "parts";
  case SplitFact::Carry:
    return "carry";
  case SplitFact::Owner:
    return "owner";
  case SplitFact::Whole:
    return "whole";
  }
  llvm_unreachable("covered switch");
}

/// What a loop of so many `iterations` needs, through `map`, of a dimension of `extent` elements beyond its cuts,
/// wherever these are; none if there are cuts at which that is nothing.
static std::optional<SplitFact> getMapFact(const DimMap &map, int64_t extent, int64_t iterations) {
  for (int64_t cut = 1; cut < extent; ++cut) {
    std::optional<std::vector<int64_t>> followed = map.follow(std::vector<int64_t>{0, cut, extent}, iterations);
    if (!followed)
      return SplitFact::Order;
    auto isHeld = [&](Interval loop, Interval held) {
      Interval need = map.needClipped(loop, extent);
      return loop.lo >= loop.hi || need.lo >= need.hi || held.contains(need);
    };
    int64_t place = (*followed)[1];
    if (isHeld({0, place}, {0, cut}) && isHeld({place, iterations}, {cut, extent}))
      return std::nullopt;
  }
  return SplitFact::Halo;
}

static SplitFact getReductionFact(const Loop &loop) {
  if (!loop.reduction)
    return SplitFact::Parts;
  return *loop.reduction == ReduceKind::Owner ? SplitFact::Owner : SplitFact::Sum;
}

std::set<SplitFact> dovetail::getSplitFacts(Value value, int64_t dim) {
  std::set<SplitFact> facts;
  DenseSet<std::pair<Value, int64_t>> seen;
  SmallVector<std::pair<Value, int64_t>> worklist = {{value, dim}};
  while (!worklist.empty()) {
    auto [current, currentDim] = worklist.pop_back_val();
    if (!seen.insert({current, currentDim}).second)
      continue;
    int64_t extent = cast<RankedTensorType>(current.getType()).getDimSize(currentDim);
    if (extent <= 1)
      continue;
    for (OpOperand &use : current.getUses()) {
      auto op = dyn_cast<DefinitionOpInterface>(use.getOwner());
      if (!op)
        continue;
      OpRelation relation = op.getRelation();
      const DimRelation &own = relation.operands[use.getOperandNumber()][currentDim];
      if (own.loop < 0) {
        facts.insert(SplitFact::Whole);
        continue;
      }
      const Loop &loop = relation.loops[own.loop];
      if (loop.isLookup()) {
        facts.insert(getReductionFact(loop));
        continue;
      }
      switch (loop.kind) {
      case LoopKind::Reduction:
        facts.insert(getReductionFact(loop));
        continue;
      case LoopKind::Part:
        facts.insert(SplitFact::Parts);
        continue;
      case LoopKind::Whole:
      case LoopKind::Tap:
        facts.insert(SplitFact::Whole);
        continue;
      case LoopKind::Scan:
        facts.insert(SplitFact::Carry);
        break;
      case LoopKind::Parallel:
        if (std::optional<SplitFact> fact = getMapFact(own.map, extent, loop.extent))
          facts.insert(*fact);
        break;
      }
      for (Value result : op->getResults())
        if (own.loop < cast<RankedTensorType>(result.getType()).getRank())
          worklist.push_back({result, own.loop});
    }
  }
  return facts;
}
