//===- PlaceGathers.cpp - Gather weights just in time ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves the gathers of constants that ranks store in pieces to where these are read.
//
//===----------------------------------------------------------------------===//

#include "Groups.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"

namespace dovetail {
#define GEN_PASS_DEF_PLACEGATHERS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

struct PlaceGathers : dovetail::impl::PlaceGathersBase<PlaceGathers> {
  using PlaceGathersBase::PlaceGathersBase;

  void runOnOperation() override;

private:
  /// Gives `users`, which follow each other, a copy of a gather at the place where it is to begin.
  void gatherFor(ReshardOp gather, ArrayRef<OpOperand *> uses);
};

} // namespace

/// Whether an operation becomes a step of each run.
static bool isStep(Operation &op) {
  return isa<plan::GroupOp, plan::ConvertFormatOp, ReshardOp>(op) && !op.hasAttr(plan::kPrologueAttrName);
}

/// Whether a step reads what depends on constants alone, gathered or not.
static bool readsWeights(Operation &op) {
  return isa<plan::GroupOp>(op) && llvm::any_of(op.getOperands(), [](Value operand) {
           Operation *producer = operand.getDefiningOp();
           auto reshard = dyn_cast_if_present<ReshardOp>(producer);
           return producer && (isa<ConstantOp>(producer) || producer->hasAttr(plan::kPrologueAttrName) ||
                               (reshard && isGather(reshard)));
         });
}

/// The step before which a gather for `user` begins: the last one before it that reads weights, or the first of all, or
/// of the loop or choice that it is in.
static Operation *getLayerBefore(Operation *user) {
  Operation *first = user;
  for (Operation *op = user->getPrevNode(); op; op = op->getPrevNode()) {
    if (isa<plan::BeginLoopOp, plan::EndLoopOp, plan::BeginChoiceOp, plan::EndChoiceOp>(op))
      break;
    if (!isStep(*op))
      continue;
    first = op;
    if (readsWeights(*op))
      break;
  }
  return first;
}

void PlaceGathers::gatherFor(ReshardOp gather, ArrayRef<OpOperand *> uses) {
  Operation *user = uses.front()->getOwner();
  OpBuilder builder(ahead ? getLayerBefore(user) : user);
  Operation *own = builder.clone(*gather);
  for (OpOperand *use : uses)
    use->set(own->getResult(0));
}

void PlaceGathers::runOnOperation() {
  if (getOperation().isDeclaration())
    return;
  Block &block = getOperation().getBody().front();
  SmallVector<ReshardOp> gathers;
  for (auto reshard : block.getOps<ReshardOp>())
    if (isGather(reshard))
      gathers.push_back(reshard);
  if (gathers.empty())
    return;
  // What ranks store is there from the beginning.
  Operation *first = &block.front();
  for (ReshardOp gather : gathers) {
    auto pieces = gather.getOperand().getDefiningOp<ReshardOp>();
    for (Operation *op : {pieces.getOperand().getDefiningOp(), pieces.getOperation()})
      if (op == first)
        first = first->getNextNode();
      else if (!op->isBeforeInBlock(first))
        op->moveBefore(first);
  }
  DenseMap<Operation *, unsigned> positions;
  unsigned number = 0;
  for (Operation &op : block) {
    auto reshard = dyn_cast<ReshardOp>(op);
    if (!(reshard && isGather(reshard)) && (isStep(op) || op.hasTrait<OpTrait::IsTerminator>()))
      positions[&op] = number++;
  }
  DenseMap<Operation *, Operation *> regions = findRegions(block);
  for (ReshardOp gather : gathers) {
    SmallVector<OpOperand *> uses = llvm::to_vector(llvm::make_pointer_range(gather->getUses()));
    llvm::sort(uses, [&](OpOperand *a, OpOperand *b) {
      return positions.lookup(a->getOwner()) < positions.lookup(b->getOwner());
    });
    for (auto begin = uses.begin(); begin != uses.end();) {
      auto end = std::next(begin);
      while (end != uses.end() && regions.lookup((*end)->getOwner()) == regions.lookup((*begin)->getOwner()) &&
             positions.lookup((*end)->getOwner()) <= positions.lookup((*std::prev(end))->getOwner()) + 1)
        ++end;
      gatherFor(gather, {begin, end});
      begin = end;
    }
    gather.erase();
  }
}
