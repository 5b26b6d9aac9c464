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
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace dovetail;
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

static SplitFact getReductionFact(const Loop &loop) {
  if (!loop.reduction)
    return SplitFact::Parts;
  return *loop.reduction == ReduceKind::Owner ? SplitFact::Owner : SplitFact::Sum;
}

namespace {
/// A dimension of an operand that is cut.
struct Read {
  const DimRelation *relation;
  int64_t extent, cut;
};

/// Follows a cut of one dimension of a value through its block.
class Follower {
public:
  SplitFacts follow(Value value, int64_t dim, int64_t cut);

private:
  void visit(SplitOpInterface op);
  /// Where a loop of so many iterations is cut between two ranks, if what is read along it is. Notes what moves then.
  std::optional<int64_t> cutLoop(Operation *op, int64_t iterations, ArrayRef<Read> reads);
  void note(SplitFact fact, Operation *op) { facts.try_emplace(fact, op); }

  DenseMap<std::pair<Value, int64_t>, int64_t> cuts;
  /// The values of these.
  DenseSet<Value> cutValues;
  SplitFacts facts;
};
} // namespace

std::optional<int64_t> Follower::cutLoop(Operation *op, int64_t iterations, ArrayRef<Read> reads) {
  // As the largest part of what is read asks for.
  const Read *first = nullptr;
  std::optional<int64_t> place;
  for (const Read &read : reads) {
    auto followed = read.relation->map.follow(std::vector<int64_t>{0, read.cut, read.extent}, iterations);
    if (!followed) {
      note(SplitFact::Order, op);
    } else if (!first || read.extent > first->extent) {
      first = &read;
      place = (*followed)[1];
    }
  }
  if (!place)
    return iterations / 2;
  for (const Read &read : reads) {
    for (auto [loop, held] : {std::pair(Interval{0, *place}, Interval{0, read.cut}),
                              std::pair(Interval{*place, iterations}, Interval{read.cut, read.extent})}) {
      Interval need = read.relation->map.needClipped(loop, read.extent);
      if (loop.empty() || need.empty() || held.contains(need))
        continue;
      // What lies next to what a rank has are windows' halos.
      bool isNext = !held.intersect(need).empty() || need.lo == held.hi || need.hi == held.lo;
      note(isNext && !held.empty() ? SplitFact::Halo : SplitFact::Order, op);
    }
  }
  return place;
}

void Follower::visit(SplitOpInterface op) {
  auto isCut = [&](Value operand) { return cutValues.contains(operand); };
  if (llvm::none_of(op->getOperands(), isCut))
    return;
  OpRelation relation = op.getRelation();
  std::map<int, SmallVector<Read>> byLoop;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(operand.getType()).getShape();
    for (auto [dim, own] : llvm::enumerate(relation.operands[number])) {
      auto cut = cuts.find({operand, static_cast<int64_t>(dim)});
      if (cut == cuts.end())
        continue;
      if (own.loop >= 0)
        byLoop[own.loop].push_back({&own, shape[dim], cut->second});
      else if (shape[dim] > 1)
        note(SplitFact::Whole, op);
    }
  }
  for (const auto &[number, reads] : byLoop) {
    const Loop &loop = relation.loops[number];
    std::optional<int64_t> place;
    if (loop.isLookup() || loop.kind == LoopKind::Reduction) {
      if (loop.extent > 1 || loop.isLookup())
        note(getReductionFact(loop), op);
      continue;
    }
    switch (loop.kind) {
    case LoopKind::Part:
      note(SplitFact::Parts, op);
      continue;
    case LoopKind::Whole:
    case LoopKind::Tap:
      note(SplitFact::Whole, op);
      continue;
    case LoopKind::Scan:
      note(SplitFact::Carry, op);
      place = cutLoop(op, loop.extent, reads);
      break;
    case LoopKind::Parallel:
      place = cutLoop(op, loop.extent, reads);
      break;
    case LoopKind::Reduction:
      llvm_unreachable("seen to above");
    }
    for (Value result : op->getResults())
      if (place && number < cast<RankedTensorType>(result.getType()).getRank()) {
        cuts.try_emplace({result, number}, *place);
        cutValues.insert(result);
      }
  }
}

SplitFacts Follower::follow(Value value, int64_t dim, int64_t cut) {
  cuts[{value, dim}] = cut;
  cutValues.insert(value);
  for (Operation &each : *value.getParentBlock())
    if (auto op = dyn_cast<SplitOpInterface>(each))
      visit(op);
  return std::move(facts);
}

/// Compares by the worst that is in both, as `SplitFact` lists them, then by the next.
static std::vector<SplitFact> getSeverity(const SplitFacts &facts) {
  std::vector<SplitFact> severity;
  for (const auto &[fact, op] : llvm::reverse(facts))
    severity.push_back(fact);
  return severity;
}

SplitFacts dovetail::getSplitFacts(Value value, int64_t dim) {
  int64_t extent = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  // Cuts that strides and groups divide need not move what others do.
  static constexpr int64_t kMultiples[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64};
  std::optional<SplitFacts> least;
  DenseSet<int64_t> seen;
  for (int64_t multiple : kMultiples) {
    int64_t cut = extent / 2 / multiple * multiple;
    if (cut < 1)
      continue;
    if (!seen.insert(cut).second)
      continue;
    SplitFacts facts = Follower().follow(value, dim, cut);
    if (!least || getSeverity(facts) < getSeverity(*least))
      least = std::move(facts);
  }
  return least.value_or(SplitFacts());
}
