//===- FoldConstants.cpp - Compute constant operations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Replaces operations on constants by their results.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Evaluation/Evaluate.h"
#include "dovetail/Transforms/Passes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace dovetail {
#define GEN_PASS_DEF_FOLDCONSTANTS
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// The results of an operation on constants; none if they cannot be computed.
static SmallVector<ElementsAttr> fold(Operation *op, int64_t maxElements) {
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    if (!matchPattern(operand, m_Constant(&operands.emplace_back())))
      return {};
  // Folders do without copies what they can, whatever the size.
  SmallVector<OpFoldResult> results;
  if (succeeded(op->fold(operands, results)) && results.size() == 1)
    if (auto attribute = dyn_cast<Attribute>(results.front()))
      if (auto elements = dyn_cast<ElementsAttr>(attribute))
        return {elements};
  FailureOr<SmallVector<DenseElementsAttr>> values = evaluate(op, operands, maxElements);
  return succeeded(values) ? llvm::to_vector_of<ElementsAttr>(*values) : SmallVector<ElementsAttr>();
}

namespace {
struct FoldConstants : dovetail::impl::FoldConstantsBase<FoldConstants> {
  using FoldConstantsBase::FoldConstantsBase;

  void runOnOperation() override {
    // In order, so that what was folded serves what follows.
    SmallVector<Operation *> ops, constants;
    getOperation()->walk([&](Operation *op) {
      if (isa<ConstantOp>(op))
        constants.push_back(op);
      else if (isa<DefinitionOpInterface>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      OpBuilder builder(op);
      for (auto [value, result] : llvm::zip(fold(op, maxElements), op->getResults()))
        if (value.getType() == result.getType()) {
          constants.push_back(ConstantOp::create(builder, op->getLoc(), value));
          result.replaceAllUsesWith(constants.back()->getResult(0));
        }
    }
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
    for (Operation *op : constants)
      if (isOpTriviallyDead(op))
        op->erase();
  }
};
} // namespace
