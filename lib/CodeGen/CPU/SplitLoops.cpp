//===- SplitLoops.cpp - Loops whose iterations differ -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines splitLoops.
//
//===----------------------------------------------------------------------===//

#include "SplitLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;

/// Into so many loops a loop is split at most, and so many operations all of them may have together.
static constexpr size_t maxPieces = 8;
static constexpr size_t maxOperations = 2000;
/// Coordinates of tensors are smaller, so that nothing overflows.
static constexpr int64_t maxMagnitude = int64_t(1) << 40;

namespace {
/// `factor * iv + constant`.
struct Affine {
  int64_t factor = 0, constant = 0;

  int64_t at(int64_t iv) const { return factor * iv + constant; }
  friend bool operator==(const Affine &, const Affine &) = default;
};

/// From `begin` up to the next piece's.
struct Piece {
  int64_t begin;
  Affine value;
};

/// A value as a function of a loop's iteration, over a range of iterations that is not empty.
using Pieces = SmallVector<Piece, 4>;

/// Finds the values of a loop's body that depend on the iteration alone.
class IterationAnalysis {
public:
  IterationAnalysis(scf::ForOp loop, int64_t first, int64_t end) : loop(loop), first(first), end(end) {}

  /// Null: not known.
  const Pieces *get(Value value);

private:
  std::optional<Pieces> compute(Value value);
  std::optional<Pieces> compute(Operation *op);
  std::optional<Pieces> compare(arith::CmpIPredicate predicate, const Pieces &a, const Pieces &b);
  std::optional<Pieces> divide(const Pieces &a, const Pieces &b, bool rounds, bool isRemainder);

  /// Calls `visit` with the ranges of iterations in which both are affine, until it returns false. Returns whether it
  /// never did.
  bool forEach(const Pieces &a, const Pieces &b,
               function_ref<bool(int64_t begin, int64_t last, Affine a, Affine b)> visit);
  std::optional<Pieces> combine(const Pieces &a, const Pieces &b,
                                function_ref<std::optional<Affine>(Affine a, Affine b)> function);

  scf::ForOp loop;
  int64_t first, end;
  DenseMap<Value, std::optional<Pieces>> known;
};
} // namespace

/// The first iteration of [begin, last] at which `predicate` is what it is at `last`, if it changes once at most.
static int64_t findChange(int64_t begin, int64_t last, function_ref<bool(int64_t)> predicate) {
  bool atLast = predicate(last);
  while (begin < last) {
    int64_t middle = begin + (last - begin) / 2;
    if (predicate(middle) == atLast)
      last = middle;
    else
      begin = middle + 1;
  }
  return last;
}

/// Calls `visit` with the parts of [begin, last] in which `predicate`, which changes once at most, is the same.
static void split(int64_t begin, int64_t last, function_ref<bool(int64_t)> predicate,
                  function_ref<void(int64_t begin, int64_t last)> visit) {
  int64_t change = predicate(begin) == predicate(last) ? begin : findChange(begin, last, predicate);
  if (change > begin)
    visit(begin, change - 1);
  visit(change, last);
}

static void append(Pieces &pieces, int64_t begin, Affine value) {
  if (pieces.empty() || pieces.back().value != value)
    pieces.push_back({begin, value});
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const Pieces *IterationAnalysis::get(Value value) {
  auto found = known.find(value);
  if (found == known.end()) {
    std::optional<Pieces> pieces = compute(value);
    auto isLarge = [&](int64_t iv, Affine form) {
      return std::abs(form.factor) > maxMagnitude / std::max<int64_t>(end, 1) || std::abs(form.at(iv)) > maxMagnitude;
    };
    if (pieces && (pieces->size() > maxPieces ||
                   llvm::any_of(*pieces, [&](Piece piece) { return isLarge(piece.begin, piece.value); })))
      pieces = std::nullopt;
    found = known.insert({value, pieces}).first;
  }
  return found->second ? &*found->second : nullptr;
}

std::optional<Pieces> IterationAnalysis::compute(Value value) {
  if (value == loop.getInductionVar())
    return Pieces{{first, {1, 0}}};
  if (!value.getType().isIndex() && !value.getType().isInteger(1))
    return std::nullopt;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) && constant.getSignificantBits() <= 62)
    return Pieces{{first, {0, value.getType().isIndex() ? constant.getSExtValue() : int64_t(!constant.isZero())}}};
  Operation *op = value.getDefiningOp();
  return op && loop->isProperAncestor(op) ? compute(op) : std::nullopt;
}

std::optional<Pieces> IterationAnalysis::compute(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 || op->getNumOperands() < 2)
    return std::nullopt;
  // Pointers into the map do not outlive another look.
  SmallVector<Pieces, 3> operands;
  for (Value operand : op->getOperands()) {
    const Pieces *pieces = get(operand);
    if (!pieces)
      return std::nullopt;
    operands.push_back(*pieces);
  }
  const Pieces &a = operands[0], &b = operands[1];
  if (isa<arith::AddIOp>(op) && op->getResult(0).getType().isIndex())
    return combine(a, b, [](Affine a, Affine b) { return Affine{a.factor + b.factor, a.constant + b.constant}; });
  if (isa<arith::SubIOp>(op) && op->getResult(0).getType().isIndex())
    return combine(a, b, [](Affine a, Affine b) { return Affine{a.factor - b.factor, a.constant - b.constant}; });
  if (isa<arith::MulIOp>(op) && op->getResult(0).getType().isIndex())
    return combine(a, b, [](Affine a, Affine b) -> std::optional<Affine> {
      if (a.factor != 0)
        std::swap(a, b);
      Affine product;
      if (a.factor != 0 || llvm::MulOverflow(a.constant, b.factor, product.factor) ||
          llvm::MulOverflow(a.constant, b.constant, product.constant))
        return std::nullopt;
      return product;
    });
  if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) && op->getResult(0).getType().isInteger(1))
    return combine(a, b, [op](Affine a, Affine b) {
      bool both = a.constant && b.constant, one = a.constant || b.constant;
      return Affine{0, isa<arith::AndIOp>(op) ? both : isa<arith::OrIOp>(op) ? one : one && !both};
    });
  if (isa<arith::FloorDivSIOp, arith::DivUIOp, arith::DivSIOp>(op))
    return divide(a, b, isa<arith::FloorDivSIOp>(op), /*isRemainder=*/false);
  if (isa<arith::RemUIOp, arith::RemSIOp>(op))
    return divide(a, b, /*rounds=*/false, /*isRemainder=*/true);
  if (auto comparison = dyn_cast<arith::CmpIOp>(op))
    return compare(comparison.getPredicate(), a, b);
  auto choose = [&](const Pieces &condition, const Pieces &onTrue, const Pieces &onFalse) {
    Pieces chosen;
    forEach(onTrue, onFalse, [&](int64_t begin, int64_t last, Affine a, Affine b) {
      for (auto [number, piece] : llvm::enumerate(condition)) {
        int64_t from = std::max(begin, piece.begin);
        int64_t to = std::min(last, number + 1 < condition.size() ? condition[number + 1].begin - 1 : end - 1);
        if (from <= to)
          append(chosen, from, piece.value.constant ? a : b);
      }
      return true;
    });
    return chosen;
  };
  if (isa<arith::SelectOp>(op))
    return choose(a, b, operands[2]);
  if (isa<arith::MinSIOp, arith::MaxSIOp>(op)) {
    bool isMin = isa<arith::MinSIOp>(op);
    return choose(*compare(isMin ? arith::CmpIPredicate::sle : arith::CmpIPredicate::sge, a, b), a, b);
  }
  return std::nullopt;
}

bool IterationAnalysis::forEach(const Pieces &a, const Pieces &b,
                                function_ref<bool(int64_t begin, int64_t last, Affine a, Affine b)> visit) {
  auto endOf = [&](const Pieces &pieces, size_t number) {
    return number + 1 < pieces.size() ? pieces[number + 1].begin : end;
  };
  size_t i = 0, j = 0;
  for (int64_t begin = first; begin < end;) {
    int64_t next = std::min(endOf(a, i), endOf(b, j));
    if (!visit(begin, next - 1, a[i].value, b[j].value))
      return false;
    i += next == endOf(a, i);
    j += next == endOf(b, j);
    begin = next;
  }
  return true;
}

std::optional<Pieces> IterationAnalysis::combine(const Pieces &a, const Pieces &b,
                                                 function_ref<std::optional<Affine>(Affine a, Affine b)> function) {
  Pieces result;
  bool isKnown = forEach(a, b, [&](int64_t begin, int64_t, Affine a, Affine b) {
    std::optional<Affine> value = function(a, b);
    if (value)
      append(result, begin, *value);
    return value.has_value();
  });
  return isKnown ? std::optional(result) : std::nullopt;
}

std::optional<Pieces> IterationAnalysis::compare(arith::CmpIPredicate predicate, const Pieces &a, const Pieces &b) {
  using Predicate = arith::CmpIPredicate;
  Pieces result;
  // Where neither operand changes its sign, nor the two their order, all comparisons are the same.
  auto decide = [&](int64_t begin, Affine a, Affine b) {
    bool holds = arith::applyCmpPredicate(predicate, APInt(64, a.at(begin), /*isSigned=*/true),
                                          APInt(64, b.at(begin), /*isSigned=*/true));
    append(result, begin, {0, holds});
  };
  forEach(a, b, [&](int64_t begin, int64_t last, Affine a, Affine b) {
    auto isBelow = [&](int64_t iv) { return a.at(iv) < b.at(iv); };
    auto isAbove = [&](int64_t iv) { return a.at(iv) > b.at(iv); };
    auto isNegative = [](Affine value) { return [value](int64_t iv) { return value.at(iv) < 0; }; };
    bool isUnsigned = llvm::is_contained({Predicate::ult, Predicate::ule, Predicate::ugt, Predicate::uge}, predicate);
    split(begin, last, isBelow, [&](int64_t begin, int64_t last) {
      split(begin, last, isAbove, [&](int64_t begin, int64_t last) {
        if (!isUnsigned)
          return decide(begin, a, b);
        split(begin, last, isNegative(a), [&](int64_t begin, int64_t last) {
          split(begin, last, isNegative(b), [&](int64_t begin, int64_t) { decide(begin, a, b); });
        });
      });
    });
    return true;
  });
  return result;
}

/// `rounds`: toward negative infinity; otherwise operands must not be negative.
std::optional<Pieces> IterationAnalysis::divide(const Pieces &a, const Pieces &b, bool rounds, bool isRemainder) {
  Pieces result;
  bool isKnown = forEach(a, b, [&](int64_t begin, int64_t last, Affine a, Affine b) {
    int64_t divisor = b.constant;
    if (b.factor != 0 || divisor <= 0 || (!rounds && std::min(a.at(begin), a.at(last)) < 0))
      return false;
    if (a.factor % divisor == 0) {
      int64_t number = llvm::divideFloorSigned(a.constant, divisor);
      append(result, begin,
             isRemainder ? Affine{0, a.constant - number * divisor} : Affine{a.factor / divisor, number});
      return true;
    }
    auto quotient = [&](int64_t iv) { return llvm::divideFloorSigned(a.at(iv), divisor); };
    if (std::abs(quotient(last) - quotient(begin)) >= static_cast<int64_t>(maxPieces))
      return false;
    for (int64_t from = begin; from <= last;) {
      int64_t number = quotient(from);
      append(result, from, isRemainder ? Affine{a.factor, a.constant - number * divisor} : Affine{0, number});
      from = quotient(last) == number ? last + 1
                                      : findChange(from, last, [&](int64_t iv) { return quotient(iv) != number; });
    }
    return true;
  });
  return isKnown ? std::optional(result) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Bounds of a value of type index; none if they are not known.
static std::optional<std::pair<int64_t, int64_t>> getBounds(Value value, const IndexBounds &bounds) {
  if (auto known = bounds.find(value); known != bounds.end())
    return known->second;
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return std::pair(*constant, *constant);
  if (auto loop = scf::getForInductionVarOwner(value)) {
    auto lower = getBounds(loop.getLowerBound(), bounds), upper = getBounds(loop.getUpperBound(), bounds);
    if (lower && upper)
      return std::pair(lower->first, std::max(lower->first, upper->second - 1));
    return std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (!isa_and_present<arith::AddIOp, arith::MinSIOp, arith::MaxSIOp>(op))
    return std::nullopt;
  auto a = getBounds(op->getOperand(0), bounds), b = getBounds(op->getOperand(1), bounds);
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return std::pair(a->first + b->first, a->second + b->second);
  if (isa<arith::MinSIOp>(op))
    return std::pair(std::min(a->first, b->first), std::min(a->second, b->second));
  return std::pair(std::max(a->first, b->first), std::max(a->second, b->second));
}

namespace {
/// Copies a loop for some of its iterations.
class LoopCopy {
public:
  LoopCopy(scf::ForOp loop, IterationAnalysis &analysis, int64_t begin)
      : loop(loop), analysis(analysis), begin(begin) {}

  scf::ForOp create(OpBuilder &builder, Value lower, Value upper, ValueRange init);

private:
  /// `value` at iterations from `begin` on; none if it is not known.
  std::optional<Affine> find(Value value);
  void copy(OpBuilder &builder, Block *block);

  scf::ForOp loop;
  IterationAnalysis &analysis;
  int64_t begin;
  IRMapping mapping;
};
} // namespace

std::optional<Affine> LoopCopy::find(Value value) {
  const Pieces *pieces = analysis.get(value);
  Operation *op = value.getDefiningOp();
  if (!pieces && value.getType().isInteger(1) && isa_and_present<arith::AndIOp, arith::OrIOp>(op)) {
    // One of them may be enough.
    for (Value operand : op->getOperands())
      if (std::optional<Affine> known = find(operand); known && (known->constant != 0) == isa<arith::OrIOp>(op))
        return known;
    return std::nullopt;
  }
  if (!pieces)
    return std::nullopt;
  return std::prev(llvm::upper_bound(*pieces, begin, [](int64_t at, Piece piece) { return at < piece.begin; }))->value;
}

void LoopCopy::copy(OpBuilder &builder, Block *block) {
  for (Operation &op : block->without_terminator()) {
    Location loc = op.getLoc();
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (std::optional<Affine> condition = find(branch.getCondition())) {
        Block *chosen = condition->constant ? branch.thenBlock() : branch.elseBlock();
        if (!chosen)
          continue;
        copy(builder, chosen);
        for (auto [result, yielded] : llvm::zip_equal(branch.getResults(), chosen->getTerminator()->getOperands()))
          mapping.map(result, mapping.lookupOrDefault(yielded));
        continue;
      }
    }
    std::optional<Affine> value = op.getNumResults() == 1 ? find(op.getResult(0)) : std::nullopt;
    if (value && op.getResult(0).getType().isInteger(1)) {
      mapping.map(op.getResult(0), arith::ConstantIntOp::create(builder, loc, value->constant != 0, 1).getResult());
      continue;
    }
    if (value && !isa<arith::ConstantOp>(op)) {
      Value sum = mapping.lookup(loop.getInductionVar());
      auto index = [&](int64_t number) { return arith::ConstantIndexOp::create(builder, loc, number); };
      auto flags = arith::IntegerOverflowFlags::nsw;
      if (value->factor == 0)
        sum = index(value->constant);
      else if (value->factor != 1)
        sum = arith::MulIOp::create(builder, loc, sum, index(value->factor), flags);
      if (value->factor != 0 && value->constant != 0)
        sum = arith::AddIOp::create(builder, loc, sum, index(value->constant), flags);
      mapping.map(op.getResult(0), sum);
      continue;
    }
    Operation *clone = op.cloneWithoutRegions(mapping);
    builder.insert(clone);
    for (auto [region, target] : llvm::zip_equal(op.getRegions(), clone->getRegions())) {
      if (region.empty())
        continue;
      OpBuilder::InsertionGuard guard(builder);
      Block *body = builder.createBlock(&target);
      copy(builder, &region.front());
      builder.setInsertionPointToEnd(body);
      builder.clone(*region.front().getTerminator(), mapping);
    }
  }
}

scf::ForOp LoopCopy::create(OpBuilder &builder, Value lower, Value upper, ValueRange init) {
  auto created = scf::ForOp::create(builder, loop.getLoc(), lower, upper, loop.getStep(), init);
  mapping.map(loop.getInductionVar(), created.getInductionVar());
  mapping.map(loop.getRegionIterArgs(), created.getRegionIterArgs());
  OpBuilder::InsertionGuard guard(builder);
  if (init.empty())
    created.getBody()->getTerminator()->erase();
  builder.setInsertionPointToEnd(created.getBody());
  copy(builder, loop.getBody());
  builder.setInsertionPointToEnd(created.getBody());
  builder.clone(*loop.getBody()->getTerminator(), mapping);
  SmallVector<Operation *> operations;
  for (Operation &op : created.getBody()->without_terminator())
    operations.push_back(&op);
  for (Operation *op : llvm::reverse(operations))
    if (isOpTriviallyDead(op))
      op->erase();
  return created;
}

/// Whether copies of `loop` can be made: its body has but branches inside.
static bool isInnermost(scf::ForOp loop) {
  return !loop.getBody()
              ->walk([&](Operation *op) {
                return op->getNumRegions() > 0 && !isa<scf::IfOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

static bool splitLoop(scf::ForOp loop, const IndexBounds &bounds) {
  auto lower = getBounds(loop.getLowerBound(), bounds), upper = getBounds(loop.getUpperBound(), bounds);
  if (!lower || !upper || lower->first >= upper->second || getConstantIntValue(loop.getStep()) != 1)
    return false;
  int64_t first = lower->first, end = upper->second;
  IterationAnalysis analysis(loop, first, end);
  SmallVector<int64_t> begins = {first};
  bool isSimpler = false;
  size_t operations = 0;
  loop.getBody()->walk([&](Operation *op) {
    ++operations;
    const Pieces *pieces = op->getNumResults() == 1 ? analysis.get(op->getResult(0)) : nullptr;
    if (!pieces)
      return;
    isSimpler |= !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ConstantOp>(op);
    for (const Piece &piece : *pieces)
      begins.push_back(piece.begin);
  });
  llvm::sort(begins);
  begins.erase(llvm::unique(begins), begins.end());
  if (!isSimpler || begins.size() > maxPieces || begins.size() * operations > maxOperations)
    return false;

  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  SmallVector<Value> carried(loop.getInitArgs());
  for (auto [number, begin] : llvm::enumerate(begins)) {
    Value from = loop.getLowerBound(), to = loop.getUpperBound();
    auto index = [&](int64_t number) { return arith::ConstantIndexOp::create(builder, loc, number); };
    if (number > 0)
      from = begin >= lower->second ? Value(index(begin))
                                    : Value(arith::MaxSIOp::create(builder, loc, from, index(begin)));
    if (number + 1 < begins.size()) {
      int64_t next = begins[number + 1];
      to = next <= upper->first ? Value(index(next)) : Value(arith::MinSIOp::create(builder, loc, to, index(next)));
    }
    carried =
        llvm::to_vector_of<Value>(LoopCopy(loop, analysis, begin).create(builder, from, to, carried).getResults());
  }
  loop.replaceAllUsesWith(carried);
  loop.erase();
  return true;
}

SmallVector<scf::ForOp> dovetail::getInnermostLoops(Operation *function) {
  SmallVector<scf::ForOp> loops;
  function->walk([&](scf::ForOp loop) {
    if (isInnermost(loop))
      loops.push_back(loop);
  });
  return loops;
}

bool dovetail::splitLoops(Operation *function, const IndexBounds &bounds) {
  bool changes = joinResidues(function);
  for (scf::ForOp loop : getInnermostLoops(function))
    changes |= splitLoop(loop, bounds);
  return changes;
}
