//===- JoinResidues.cpp - Loops whose iterations take turns ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines joinResidues.
//
//===----------------------------------------------------------------------===//

#include "SplitLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"

#include <numeric>

using namespace mlir;
using namespace dovetail;

/// So many iterations are gone through at once at most, and so many operations they may have together.
static constexpr int64_t maxResidues = 4;
static constexpr int64_t maxOperations = 1000;

/// The factor of the iteration in `value`, a sum of multiples of it and of what does not depend on it; none if it is
/// something else.
static std::optional<int64_t> getFactor(scf::ForOp loop, Value value) {
  if (value == loop.getInductionVar())
    return 1;
  Operation *op = value.getDefiningOp();
  if (!op || !loop->isProperAncestor(op))
    return loop.isDefinedOutsideOfLoop(value) ? std::optional<int64_t>(0) : std::nullopt;
  if (isa<arith::ConstantOp>(op))
    return 0;
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op))
    return std::nullopt;
  std::optional<int64_t> a = getFactor(loop, op->getOperand(0)), b = getFactor(loop, op->getOperand(1));
  if (!a || !b)
    return std::nullopt;
  constexpr int64_t limit = int64_t(1) << 30;
  if (std::max(std::abs(*a), std::abs(*b)) > limit)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *a + *b;
  if (isa<arith::SubIOp>(op))
    return *a - *b;
  std::optional<int64_t> left = getConstantIntValue(op->getOperand(0)), right = getConstantIntValue(op->getOperand(1));
  if (left && std::abs(*left) <= limit)
    return *left * *b;
  if (right && std::abs(*right) <= limit)
    return *a * *right;
  return *a == 0 && *b == 0 ? std::optional<int64_t>(0) : std::nullopt;
}

/// Whether a comparison depends on a quotient: on itself or a multiple of it.
static bool decidesComparison(Operation *division) {
  auto isComparison = [](Operation *op) { return isa<arith::CmpIOp>(op); };
  return llvm::any_of(division->getUsers(), [&](Operation *user) {
    return isComparison(user) || (isa<arith::MulIOp>(user) && llvm::any_of(user->getUsers(), isComparison));
  });
}

static bool joinResidues(scf::ForOp loop) {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound()),
                         end = getConstantIntValue(loop.getUpperBound());
  if (!first || !end || getConstantIntValue(loop.getStep()) != 1 || !loop.getInitArgs().empty() || *first >= *end)
    return false;
  int64_t residues = 1, operations = 0;
  loop.getBody()->walk([&](Operation *op) {
    ++operations;
    if (!isa<arith::FloorDivSIOp, arith::DivUIOp, arith::DivSIOp, arith::RemUIOp, arith::RemSIOp>(op) ||
        !decidesComparison(op) || residues > maxResidues)
      return;
    std::optional<int64_t> factor = getFactor(loop, op->getOperand(0)),
                           divisor = getConstantIntValue(op->getOperand(1));
    if (!factor || !divisor || *divisor <= 0)
      return;
    int64_t turns = *divisor / std::gcd(*divisor, *factor);
    residues = turns > maxResidues ? turns : std::lcm(residues, turns);
  });
  int64_t rounds = (*end - *first) / residues;
  if (residues == 1 || residues > maxResidues || rounds < 2 || residues * operations > maxOperations)
    return false;

  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  auto index = [&](int64_t number) { return arith::ConstantIndexOp::create(builder, loc, number).getResult(); };
  auto flags = arith::IntegerOverflowFlags::nsw;
  auto joined = scf::ForOp::create(builder, loc, index(0), index(rounds), index(1));
  builder.setInsertionPointToStart(joined.getBody());
  Value start = arith::MulIOp::create(builder, loc, joined.getInductionVar(), index(residues), flags);
  for (int64_t residue = 0; residue < residues; ++residue) {
    IRMapping mapping;
    Value iteration = arith::AddIOp::create(builder, loc, start, index(*first + residue), flags);
    mapping.map(loop.getInductionVar(), iteration);
    for (Operation &op : loop.getBody()->without_terminator())
      builder.clone(op, mapping);
  }
  builder.setInsertionPoint(loop);
  int64_t rest = *first + rounds * residues;
  if (rest < *end)
    loop.setLowerBound(index(rest));
  else
    loop.erase();
  return true;
}

bool dovetail::joinResidues(Operation *function) {
  bool changes = false;
  for (scf::ForOp loop : getInnermostLoops(function))
    changes |= ::joinResidues(loop);
  return changes;
}
