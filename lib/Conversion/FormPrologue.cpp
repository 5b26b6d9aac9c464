//===- FormPrologue.cpp - Find what runs once -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Marks what depends on constants alone: it runs once, when a session starts.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Plan/IR/PackedWeights.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"

namespace dovetail {
#define GEN_PASS_DEF_FORMPROLOGUE
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct FormPrologue : dovetail::impl::FormPrologueBase<FormPrologue> {
  using FormPrologueBase::FormPrologueBase;

  void runOnOperation() override;
};
} // namespace

void FormPrologue::runOnOperation() {
  if (getOperation().isDeclaration())
    return;
  auto isConstant = [](Value value) {
    Operation *producer = value.getDefiningOp();
    return producer && (isa<ConstantOp>(producer) || producer->hasAttr(plan::kPrologueAttrName));
  };
  // What is written over in each iteration begins anew in each run.
  auto isCarried = [](Operation &op) { return llvm::any_of(op.getUsers(), llvm::IsaPred<plan::EndLoopOp>); };
  for (Operation &op : getOperation().getBody().front().without_terminator()) {
    auto reshard = dyn_cast<ReshardOp>(op);
    if (isa<ConstantOp>(op) || op.getNumResults() == 0 || isCarried(op) || op.hasAttr(plan::kEachRunAttrName) ||
        (reshard && isGather(reshard)) || !llvm::all_of(op.getOperands(), isConstant))
      continue;
    op.setAttr(plan::kPrologueAttrName, UnitAttr::get(&getContext()));
  }
}
