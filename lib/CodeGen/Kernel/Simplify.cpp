//===- Simplify.cpp - What all generated kernels go through -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines checkKernel and simplifyKernels.
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"

#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;
using namespace dovetail;

LogicalResult dovetail::checkKernel(plan::KernelOp kernel) {
  if (kernel.getLoopExtents().size() > KernelAnalysis::maxLoops)
    return kernel.emitOpError("has ") << kernel.getLoopExtents().size() << " loops, but at most "
                                      << KernelAnalysis::maxLoops << " can be generated";
  auto isSupported = [](Type type) {
    Type element = cast<RankedTensorType>(type).getElementType();
    if (isNarrow(element))
      return true;
    if (auto integer = dyn_cast<IntegerType>(element))
      return llvm::is_contained({1, 8, 16, 32, 64}, static_cast<int>(integer.getWidth()));
    return isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(element);
  };
  for (BlockArgument argument : kernel.getArguments())
    if (!isSupported(argument.getType()))
      return kernel.emitOpError("has an argument of type ") << argument.getType() << ", which kernels cannot read";
  for (Operation &op : kernel.getBlock()->without_terminator())
    for (Type type : op.getResultTypes())
      if (!isSupported(type))
        return op.emitOpError("has a result of type ") << type << ", which kernels cannot compute";
  return success();
}

//===----------------------------------------------------------------------===//
// What may be assumed of arithmetic
//===----------------------------------------------------------------------===//

static void addFlags(arith::ArithFastMathInterface op, arith::FastMathFlags flags) {
  arith::FastMathFlagsAttr old = op.getFastMathFlagsAttr();
  op->setAttr(
      op.getFastMathAttrName(),
      arith::FastMathFlagsAttr::get(op->getContext(), (old ? old.getValue() : arith::FastMathFlags::none) | flags));
}

/// Lets the operations that lead from the accumulator `carried` to `value` be reordered, so that a loop may keep
/// several accumulators. Returns true if `value` depends on `carried` through such operations.
static bool allowReassociation(Value value, Value carried) {
  if (value == carried)
    return true;
  Operation *op = value.getDefiningOp();
  if (auto branch = dyn_cast_if_present<scf::IfOp>(op)) {
    unsigned number = cast<OpResult>(value).getResultNumber();
    bool onThen = allowReassociation(branch.thenYield()->getOperand(number), carried);
    bool onElse = allowReassociation(branch.elseYield()->getOperand(number), carried);
    return onThen || onElse;
  }
  if (!isa_and_present<arith::AddFOp, arith::MulFOp>(op))
    return false;
  for (Value operand : op->getOperands()) {
    if (!allowReassociation(operand, carried))
      continue;
    addFlags(cast<arith::ArithFastMathInterface>(op), arith::FastMathFlags::reassoc);
    return true;
  }
  return false;
}

/// Contraction of multiplications and additions everywhere, reassociation in folds, and coordinates that do not
/// overflow. What is converted to a narrower type and back is rounded: conversions are not contracted.
static void setFlags(Operation *root) {
  root->walk([](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      for (auto [carried, yielded] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
        allowReassociation(yielded, carried);
    } else if (auto floatOp = dyn_cast<arith::ArithFastMathInterface>(op);
               floatOp && !isa<arith::ExtFOp, arith::TruncFOp>(op)) {
      addFlags(floatOp, arith::FastMathFlags::contract);
    } else if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) && op->getResult(0).getType().isIndex()) {
      // Coordinates and offsets of elements lie in memory, or next to it where a guard refuses them.
      auto flags = arith::IntegerOverflowFlagsAttr::get(op->getContext(), arith::IntegerOverflowFlags::nsw);
      op->setAttr(cast<arith::ArithIntegerOverflowFlagsInterface>(op).getIntegerOverflowAttrName(), flags);
    }
  });
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// Moves out of `loop` what does not change in it. Loads, and checks of what they have read, leave only a loop that
/// surely runs: where a rank holds nothing of a tensor, the ranges are empty and there is nothing to read.
static void moveInvariantCode(scf::ForOp loop) {
  std::optional<int64_t> lo = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> hi = getConstantIntValue(loop.getUpperBound());
  bool runs = lo && hi && *lo < *hi;
  moveLoopInvariantCode(
      {&loop.getRegion()}, [&](Value value, Region *) { return loop.isDefinedOutsideOfLoop(value); },
      [&](Operation *op, Region *) {
        return runs ? isMemoryEffectFree(op) || isa<plan::CheckIndexOp>(op)
                    : isMemoryEffectFree(op) && isSpeculatable(op);
      },
      [&](Operation *op, Region *) { loop.moveOutOfLoop(op); });
}

void dovetail::simplifyKernels(Operation *code) {
  // Elements are emitted where they are used; loops then lose what does not change in them.
  code->walk(moveInvariantCode);
  IRRewriter rewriter(code->getContext());
  DominanceInfo dominance(code);
  eliminateCommonSubExpressions(rewriter, dominance, code);
  setFlags(code);
}
