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

#include "GraphMatch.h"
#include "dovetail/Dialect/Dovetail/Evaluation/Evaluate.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
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

/// Whether a product reads what is computed of `value`, which is constant, by steps that dequantise and move it.
static bool isFactor(Value value, int depth = 0) {
  constexpr int maxDepth = 16;
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isa<MatMulOp, ConvOp>(user))
      return true;
    return depth < maxDepth && isa<CastOp, SubOp, MulOp, TransposeOp, SliceOp, ReshapeOp>(user) &&
           isConstantOnly(user->getResult(0)) && isFactor(user->getResult(0), depth + 1);
  });
}

/// Whether `op` converts a constant matrix of integers, or more than a matrix, of which a factor is computed. Integers
/// of 8 bits take less memory than what they are converted to, and `legalize` finds them where a target multiplies
/// them. An import may have extended them to i32.
static bool convertsFactor(Operation *op) {
  auto cast = dyn_cast<CastOp>(op);
  if (!cast || !cast.getOperand().getDefiningOp<ConstantOp>() || cast.getOperand().getType().getRank() < 2)
    return false;
  Type from = cast.getOperand().getType().getElementType();
  return (from.isInteger(8) || from.isSignlessInteger(32)) && isFactor(op->getResult(0));
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
      if (keepFactors && convertsFactor(op))
        continue;
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
