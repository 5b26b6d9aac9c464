//===- UnswitchLoops.cpp - Conditions that no iteration changes -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines unswitchLoops.
//
//===----------------------------------------------------------------------===//

#include "SplitLoops.h"

#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;
using namespace dovetail;

/// Of one loop so many are made at most, and so many operations all of them may have together.
static constexpr size_t maxLoops = 16;
static constexpr size_t maxOperations = 1000;

/// A branch in `loop`, in no other branch, whose condition is the same in all iterations; null if there is none.
static scf::IfOp findInvariant(scf::ForOp loop) {
  for (auto branch : loop.getBody()->getOps<scf::IfOp>())
    if (loop.isDefinedOutsideOfLoop(branch.getCondition()))
      return branch;
  return nullptr;
}

/// Puts what `branch` does where its condition is `holds` in its place.
static void take(scf::IfOp branch, bool holds) {
  Block *block = holds ? branch.thenBlock() : branch.elseBlock();
  if (block) {
    Operation *terminator = block->getTerminator();
    branch->replaceAllUsesWith(terminator->getOperands());
    terminator->erase();
    branch->getBlock()->getOperations().splice(branch->getIterator(), block->getOperations());
  }
  branch.erase();
}

static bool unswitch(scf::ForOp loop) {
  bool changes = false;
  SmallVector<scf::ForOp> pending = {loop};
  size_t loops = 1;
  while (!pending.empty()) {
    scf::ForOp current = pending.pop_back_val();
    moveLoopInvariantCode(current);
    scf::IfOp branch = findInvariant(current);
    size_t operations = 0;
    current->walk([&](Operation *) { ++operations; });
    if (!branch || loops >= maxLoops || (loops + 1) * operations > maxOperations)
      continue;
    OpBuilder builder(current);
    Value condition = branch.getCondition();
    auto either = scf::IfOp::create(builder, current.getLoc(), current.getResultTypes(), condition,
                                    /*withElseRegion=*/true);
    size_t number = std::distance(current.getBody()->begin(), branch->getIterator());
    for (bool holds : {true, false}) {
      Block *block = holds ? either.thenBlock() : either.elseBlock();
      builder.setInsertionPointToStart(block);
      auto copy = cast<scf::ForOp>(builder.clone(*current));
      if (!copy.getResults().empty())
        scf::YieldOp::create(builder, copy.getLoc(), copy.getResults());
      take(cast<scf::IfOp>(*std::next(copy.getBody()->begin(), number)), holds);
      pending.push_back(copy);
    }
    current.replaceAllUsesWith(either.getResults());
    current.erase();
    ++loops;
    changes = true;
  }
  return changes;
}

bool dovetail::unswitchLoops(Operation *function) {
  bool changes = false;
  for (scf::ForOp loop : getInnermostLoops(function))
    changes |= unswitch(loop);
  return changes;
}
