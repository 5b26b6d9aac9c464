//===- JoinChecks.cpp - One report for a loop -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines joinChecks.
//
//===----------------------------------------------------------------------===//

#include "JoinChecks.h"

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dovetail;

static bool isInnermost(scf::ForOp loop) {
  return !loop.getBody()
              ->walk([](Operation *op) {
                return isa<LoopLikeOpInterface>(op) ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

static void joinChecks(scf::ForOp loop) {
  auto checks = llvm::to_vector(loop.getBody()->getOps<plan::CheckIndexOp>());
  if (checks.empty())
    return;
  IRRewriter rewriter(loop);
  Location loc = loop.getLoc();
  // 0 is never out of range.
  Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
  auto yieldWorst = [&](OpBuilder &builder, Location loc, ArrayRef<BlockArgument> carried) {
    SmallVector<Value> worst;
    for (auto [check, before] : llvm::zip_equal(checks, carried)) {
      Value wrong = arith::SelectOp::create(builder, loc, check.getIsWrong(), check.getGiven(), zero);
      worst.push_back(arith::MaxUIOp::create(builder, loc, before, wrong));
    }
    return worst;
  };
  SmallVector<Value> init(checks.size(), zero);
  FailureOr<LoopLikeOpInterface> joined =
      loop.replaceWithAdditionalYields(rewriter, init, /*replaceInitOperandUsesInLoop=*/false, yieldWorst);
  assert(succeeded(joined) && "loops may carry more");
  rewriter.setInsertionPointAfter(*joined);
  for (auto [check, worst] :
       llvm::zip_equal(checks, (*joined)->getResults().take_back(static_cast<unsigned>(checks.size())))) {
    Value isWrong = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, worst, zero);
    plan::CheckIndexOp::create(rewriter, loc, isWrong, worst, check.getRecords(), check.getNumber());
    check.erase();
  }
}

void dovetail::joinChecks(Operation *root) {
  SmallVector<scf::ForOp> loops;
  root->walk([&](scf::ForOp loop) {
    if (isInnermost(loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops)
    ::joinChecks(loop);
}
