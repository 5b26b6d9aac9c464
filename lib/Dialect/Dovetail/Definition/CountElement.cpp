//===- CountElement.cpp - What an element takes to compute ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements countElement and readsOnly.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/CountElement.h"

#include "ScratchCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dovetail;

// How many additions take the time of something else, in code that vectors are made of. Of functions these are the
// polynomials of vector libraries.
static constexpr double kDivision = 5;
static constexpr double kRoot = 5;
static constexpr double kExponential = 10;
static constexpr double kFunction = 14;
static constexpr double kPower = 40;
/// Iterations of loops that end when data say so: a heap of some hundred elements is that deep.
static constexpr double kUnknownIterations = 8;

/// Coordinates, and whether they are inside of tensors, are found in few instructions for many elements.
static double getWeight(Operation &op) {
  auto isIndex = [](Type type) { return isa<IndexType>(type); };
  auto isTruth = [](Type type) { return type.isInteger(1); };
  if (llvm::any_of(op.getOperandTypes(), isIndex) || llvm::any_of(op.getResultTypes(), isIndex) ||
      llvm::all_of(op.getOperandTypes(), isTruth))
    return 0;
  return TypeSwitch<Operation *, double>(&op)
      // A comparison and the selection that it is for are one, a maximum, or a mask.
      .Case<arith::ConstantOp, arith::BitcastOp, arith::CmpFOp, arith::CmpIOp>([](auto) { return 0; })
      .Case<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp>(
          [](auto) { return kDivision; })
      .Case<math::SqrtOp, math::RsqrtOp>([](auto) { return kRoot; })
      .Case<math::ExpOp, math::Exp2Op>([](auto) { return kExponential; })
      .Case<math::AbsFOp, math::AbsIOp, math::CeilOp, math::FloorOp, math::RoundEvenOp, math::RoundOp, math::TruncOp,
            math::CopySignOp, math::FmaOp, math::IsNaNOp, math::IsInfOp, math::IsFiniteOp>([](auto) { return 1; })
      .Case<math::PowFOp, math::FPowIOp>([](auto) { return kPower; })
      .Default([](Operation *other) -> double {
        StringRef dialect = other->getName().getDialectNamespace();
        return dialect == "arith" ? 1 : dialect == "math" ? kFunction : 0;
      });
}

/// The weighed operations of a block that depend on what is read, directly or not, which `values` are. Others depend on
/// coordinates alone, as weights of interpolation do: they stand outside of the innermost loop. Loops whose ends are
/// not known have `otherwise` iterations.
static double count(Block &block, double otherwise, DenseSet<Value> &values) {
  double total = 0;
  for (Operation &op : block) {
    double times = 1, inner = 0;
    for (Region &region : op.getRegions())
      for (Block &body : region)
        for (BlockArgument argument : body.getArguments())
          if (!argument.getType().isIndex())
            values.insert(argument);
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      APInt lo, hi, step;
      bool isKnown = matchPattern(loop.getLowerBound(), m_ConstantInt(&lo)) &&
                     matchPattern(loop.getUpperBound(), m_ConstantInt(&hi)) &&
                     matchPattern(loop.getStep(), m_ConstantInt(&step));
      times = isKnown ? std::max(0.0, double(hi.getSExtValue() - lo.getSExtValue()) / double(step.getSExtValue()))
                      : otherwise;
      inner = count(*loop.getBody(), otherwise, values);
    } else if (isa<scf::IfOp>(op)) {
      // The dearer side is the one inside of tensors and ranges.
      for (Region &region : op.getRegions())
        for (Block &side : region)
          inner = std::max(inner, count(side, otherwise, values));
    } else {
      times = isa<scf::WhileOp>(op) ? kUnknownIterations : 1;
      for (Region &region : op.getRegions())
        for (Block &body : region)
          inner += count(body, otherwise, values);
    }
    total += times * inner;
    bool isRead = isa<UnrealizedConversionCastOp>(op) || op.getNumRegions() > 0 ||
                  llvm::any_of(op.getOperands(), [&](Value operand) { return values.contains(operand); });
    if (!isRead)
      continue;
    total += getWeight(op);
    values.insert_range(op.getResults());
  }
  return total;
}

double dovetail::countElement(DefinitionOpInterface op, const Definition &definition, ArrayRef<int64_t> ends,
                              double otherwise) {
  Block block;
  emitScratch(block, op, definition, ends);
  DenseSet<Value> values;
  return count(block, otherwise, values);
}

double dovetail::countElement(DefinitionOpInterface op, const Definition &definition, ArrayRef<int64_t> ends) {
  return countElement(op, definition, ends, kUnknownIterations);
}

bool dovetail::readsOnly(DefinitionOpInterface op, const Definition &definition, unsigned loop) {
  Block block;
  emitScratch(block, op, definition, getExtents(definition.loops));
  return block.getArgument(loop).use_empty();
}
