//===- Linearity.cpp - Operands that results are linear in ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements deriveLinearity: emits an element into a block that nobody runs, and follows what is read through it.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/Linearity.h"

#include "ScratchCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// How a value depends on the elements of the operand.
enum class Dependence { Zero, None, Linear, Other };

/// Follows the operand's elements through emitted code.
class Follower {
public:
  explicit Follower(const DenseSet<Value> &marked) : marked(marked) {}

  void follow(Block &block) {
    for (Operation &op : block)
      follow(op);
  }
  Dependence get(Value value) const { return known.lookup_or(value, Dependence::None); }

private:
  void follow(Operation &op);
  void follow(scf::ForOp loop);
  void follow(scf::IfOp branch);
  /// Of a result that is computed of operands alone.
  Dependence compute(Operation &op) const;

  static Dependence join(Dependence a, Dependence b);
  static Dependence multiply(Dependence a, Dependence b);
  static bool isFree(Dependence each) { return each == Dependence::Zero || each == Dependence::None; }

  const DenseSet<Value> &marked;
  DenseMap<Value, Dependence> known;
};
} // namespace

/// Of a value that is one or the other, and of their sum.
Dependence Follower::join(Dependence a, Dependence b) {
  if (a == b || b == Dependence::Zero)
    return a;
  return a == Dependence::Zero ? b : Dependence::Other;
}

Dependence Follower::multiply(Dependence a, Dependence b) {
  if (a == Dependence::Zero || b == Dependence::Zero)
    return Dependence::Zero;
  if (a == Dependence::None || b == Dependence::None)
    return a == Dependence::None ? b : a;
  return Dependence::Other;
}

Dependence Follower::compute(Operation &op) const {
  auto of = [&](unsigned operand) { return get(op.getOperand(operand)); };
  return TypeSwitch<Operation *, Dependence>(&op)
      .Case<arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp>([&](auto) { return join(of(0), of(1)); })
      .Case<arith::MulFOp, arith::MulIOp>([&](auto) { return multiply(of(0), of(1)); })
      .Case<math::FmaOp>([&](auto) { return join(multiply(of(0), of(1)), of(2)); })
      .Case<arith::NegFOp, arith::ExtFOp, arith::TruncFOp>([&](auto) { return of(0); })
      .Case<arith::DivFOp>([&](auto) { return of(1) == Dependence::None ? of(0) : Dependence::Other; })
      .Case<arith::SelectOp>([&](auto) { return isFree(of(0)) ? join(of(1), of(2)) : Dependence::Other; })
      .Case<arith::ConstantOp>([&](auto) {
        bool isZero = matchPattern(op.getResult(0), m_AnyZeroFloat()) || matchPattern(op.getResult(0), m_Zero());
        return isZero ? Dependence::Zero : Dependence::None;
      })
      .Default([&](Operation *) {
        bool isOfOthers = llvm::all_of(op.getOperands(), [&](Value operand) { return isFree(get(operand)); });
        return isOfOthers ? Dependence::None : Dependence::Other;
      });
}

void Follower::follow(scf::ForOp loop) {
  bool hasFreeEnds = llvm::all_of(ArrayRef<Value>{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()},
                                  [&](Value each) { return isFree(get(each)); });
  SmallVector<Dependence> carried = llvm::map_to_vector(loop.getInitArgs(), [&](Value each) { return get(each); });
  // Each round makes something of more, at most three times.
  for (bool changes = true; changes;) {
    for (auto [argument, each] : llvm::zip_equal(loop.getRegionIterArgs(), carried))
      known[argument] = each;
    follow(*loop.getBody());
    changes = false;
    for (auto [yielded, each] : llvm::zip_equal(loop.getYieldedValues(), carried)) {
      Dependence joined = join(each, get(yielded));
      changes |= joined != each;
      each = joined;
    }
  }
  for (auto [result, each] : llvm::zip_equal(loop.getResults(), carried))
    known[result] = hasFreeEnds ? each : Dependence::Other;
}

void Follower::follow(scf::IfOp branch) {
  for (Region &region : branch->getRegions())
    for (Block &block : region)
      follow(block);
  for (OpResult result : branch.getResults()) {
    unsigned number = result.getResultNumber();
    Dependence joined = join(get(branch.thenYield().getOperand(number)), get(branch.elseYield().getOperand(number)));
    known[result] = isFree(get(branch.getCondition())) ? joined : Dependence::Other;
  }
}

void Follower::follow(Operation &op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return follow(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return follow(branch);
  if (op.getNumRegions() > 0) {
    // Loops that end when data say so.
    for (Value result : op.getResults())
      known[result] = Dependence::Other;
    return;
  }
  for (Value result : op.getResults()) {
    Dependence computed = compute(op);
    // Where an element is read may depend on others.
    known[result] = marked.contains(result) && isFree(computed) ? Dependence::Linear : computed;
  }
}

bool dovetail::deriveLinearity(DefinitionOpInterface op, const Definition &definition, ArrayRef<unsigned> operands) {
  // Floats are extended as they are.
  auto mayRound = [&](unsigned operand) {
    Type type = getElementTypeOrSelf(op->getOperand(operand).getType());
    return llvm::any_of(op->getResultTypes(), [&](Type result) {
      Type element = getElementTypeOrSelf(result);
      bool isExtended = isa<FloatType>(type) && element.isF32() && (type.isF16() || type.isBF16());
      return element != type && !isExtended;
    });
  };
  if (!definition.lines.empty() || llvm::any_of(operands, mayRound))
    return false;
  Block block;
  ReadMarks marks{operands, {}};
  SmallVector<Value> results = emitScratch(block, op, definition, getExtents(definition.loops), &marks);
  Follower follower(marks.found);
  follower.follow(block);
  return llvm::all_of(results, [&](Value result) {
    return follower.get(result) == Dependence::Zero || follower.get(result) == Dependence::Linear;
  });
}
