//===- FormChoices.cpp - Find what need not be computed -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the operations on which only one side of a choice depends, and puts them between two that say when they are
// needed.
//
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/Ops/ControlOps.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace dovetail {
#define GEN_PASS_DEF_FORMCHOICES
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// One choice: operations that choose between two sides, by one condition.
class ChoiceFormer {
public:
  ChoiceFormer(Block &block, ArrayRef<IfOp> chooses, int64_t leastWork)
      : block(block), chooses(chooses), leastWork(leastWork), loops(findLoops(block)) {}

  void run();

private:
  bool isChoosing(Operation *op) const { return llvm::is_contained(chooses, op); }
  /// Finds what only one side depends on.
  void findSides();
  /// Whether something of the sides is more than kernels compute for each element of what is chosen.
  bool isWorthIt() const;
  /// What of [first, last] reads what has been chosen.
  DenseSet<Operation *> findReaders(Operation *first, Operation *last) const;

  Block &block;
  ArrayRef<IfOp> chooses;
  int64_t leastWork;
  DenseMap<Operation *, Operation *> loops;
  DenseSet<Operation *> sides[2]; ///< Where the condition holds, and where it does not.
};

struct FormChoices : dovetail::impl::FormChoicesBase<FormChoices> {
  using FormChoicesBase::FormChoicesBase;

  void runOnOperation() override {
    if (getOperation().isDeclaration())
      return;
    Block &block = getOperation().getBody().front();
    llvm::MapVector<uint64_t, SmallVector<IfOp>> choices;
    for (auto choose : block.getOps<IfOp>())
      choices[choose.getChoice()].push_back(choose);
    // What a choice is inside of comes later.
    for (auto &[number, chooses] : llvm::reverse(choices))
      ChoiceFormer(block, chooses, leastWork).run();
  }
};

} // namespace

void ChoiceFormer::findSides() {
  Operation *last = chooses.back(), *loop = loops.lookup(last);
  for (Operation *op = last->getPrevNode(); op; op = op->getPrevNode()) {
    if (loops.lookup(op) != loop || !isa<DefinitionOpInterface, ReshardOp>(op) ||
        isa<IterArgOp, YieldOp, LoopResultOp>(op) || op->use_empty())
      continue;
    for (unsigned side : {0u, 1u})
      if (llvm::all_of(op->getUses(), [&](OpOperand &use) {
            return sides[side].contains(use.getOwner()) ||
                   (isChoosing(use.getOwner()) && use.getOperandNumber() == 1 + side);
          }))
        sides[side].insert(op);
  }
}

/// See `dovetail-form-choices`.
static uint64_t getWork(Operation *op) {
  uint64_t work = 0;
  for (Type type : llvm::concat<Type>(op->getOperandTypes(), op->getResultTypes()))
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      work = llvm::SaturatingAdd<uint64_t>(work, tensor.getNumElements());
  auto defined = dyn_cast<DefinitionOpInterface>(op);
  if (!defined)
    return work;
  uint64_t iterations = 1;
  for (const Loop &loop : defined.getRelation().loops)
    iterations = llvm::SaturatingMultiply<uint64_t>(iterations, loop.extent);
  return llvm::SaturatingAdd<uint64_t>(work, iterations / 16);
}

bool ChoiceFormer::isWorthIt() const {
  bool isEnough = llvm::any_of(sides, [&](const DenseSet<Operation *> &side) {
    uint64_t work = 0;
    for (Operation *op : side)
      work = llvm::SaturatingAdd(work, getWork(op));
    return work >= static_cast<uint64_t>(leastWork);
  });
  return isEnough && llvm::any_of(sides, [](const DenseSet<Operation *> &side) {
           return llvm::any_of(side, [](Operation *op) {
             auto defined = dyn_cast<DefinitionOpInterface>(op);
             return !defined || !defined.isCheapElement() || defined.isReduction();
           });
         });
}

DenseSet<Operation *> ChoiceFormer::findReaders(Operation *first, Operation *last) const {
  DenseSet<Operation *> readers;
  for (Operation *op = first; op != last->getNextNode(); op = op->getNextNode())
    if (isChoosing(op) ||
        llvm::any_of(op->getOperands(), [&](Value operand) { return readers.contains(operand.getDefiningOp()); }))
      readers.insert(op);
  return readers;
}

void ChoiceFormer::run() {
  IfOp any = chooses.front();
  Value condition = any.getCondition();
  Operation *loop = loops.lookup(any);
  for (IfOp choose : chooses)
    if (choose.getCondition() != condition || loops.lookup(choose) != loop)
      return;
  findSides();
  if (!isWorthIt())
    return;
  Operation *first = chooses.front(), *last = chooses.back();
  for (const DenseSet<Operation *> &side : sides)
    for (Operation *op : side)
      first = op->isBeforeInBlock(first) ? op : first;
  DenseSet<Operation *> readers = findReaders(first, last);
  SmallVector<Operation *> before, chosen[2], behind;
  for (Operation *op = first; op != last->getNextNode(); op = op->getNextNode()) {
    bool isReader = readers.contains(op);
    // What stands between two such operations stays there. Both sides are computed, which is right, too.
    if (isa<plan::BeginChoiceOp, plan::EndChoiceOp>(op) || (isReader && loops.lookup(op) != loop))
      return;
    unsigned side = sides[1].contains(op) ? 1 : 0;
    bool isOfSide = sides[side].contains(op);
    if (isOfSide && isReader)
      return;
    (isOfSide ? chosen[side] : isReader ? behind : before).push_back(op);
  }
  OpBuilder builder(last->getNextNode());
  auto move = [&](ArrayRef<Operation *> ops) {
    for (Operation *op : ops)
      op->moveBefore(&block, builder.getInsertionPoint());
  };
  move(before);
  for (unsigned side : {0u, 1u}) {
    if (chosen[side].empty())
      continue;
    plan::BeginChoiceOp::create(builder, any.getLoc(), condition, /*negated=*/side == 1);
    move(chosen[side]);
    plan::EndChoiceOp::create(builder, any.getLoc());
  }
  move(behind);
}
