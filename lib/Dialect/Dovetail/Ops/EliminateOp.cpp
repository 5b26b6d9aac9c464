//===- EliminateOp.cpp - Gaussian elimination ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.eliminate`, a row program that works in the memory of its result.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/MatrixOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;

FailureOr<RankedTensorType> EliminateOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto type = cast<RankedTensorType>(adaptor.getOperand().getType());
  if (type.getRank() < 2 || type.getShape().back() != type.getShape().drop_back().back())
    return emitOptionalError(location, "'", getOperationName(), "' op has an operand ", type,
                             ", which is not of square matrices");
  return RankedTensorType::get(type.getShape(), type.getElementType());
}

Definition EliminateOp::getDefinition() {
  Definition definition = Definition::over(getType());
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned dim = 0; dim < definition.resultRank; ++dim) {
    dims.push_back(Definition::at(dim));
    if (dim + 2 < definition.resultRank)
      continue;
    definition.loops[dim].kind = LoopKind::Whole;
    definition.lines.push_back(dim);
    dims[dim] = layout::IndexExpr::unknown(dim + 2 - definition.resultRank);
  }
  return definition;
}

void EliminateOp::emitLine(LineBuilder &line) {
  ElementBuilder &elements = line.elements;
  Value zero = elements.index(0), size = elements.index(getType().getShape().back());
  auto at = [&](Value row, Value column) {
    SmallVector<Value> index(line.getResultIndex());
    index[index.size() - 2] = row;
    index.back() = column;
    return index;
  };
  auto read = [&](Value row, Value column) { return line.readBack(0, at(row, column)); };
  auto write = [&](Value row, Value column, Value element) { line.write(0, at(row, column), element); };

  elements.forEach(zero, size, [&](Value row) {
    elements.forEach(zero, size, [&](Value column) { write(row, column, line.read(0, {row, column})); });
  });
  elements.forEach(zero, size, [&](Value step) {
    Value next = elements.addI(step, 1), first = read(step, step);
    SmallVector<Value> found = elements.forLoop(
        next, size, {elements.create<math::AbsFOp>(first), step},
        [&](Value row, ValueRange best) -> SmallVector<Value> {
          Value magnitude = elements.create<math::AbsFOp>(read(row, step));
          Value isLarger = elements.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, magnitude, best[0]);
          return {elements.select(isLarger, magnitude, best[0]), elements.select(isLarger, row, best[1])};
        });
    Value chosen = found[1];
    Value moves = elements.compareI(arith::CmpIPredicate::ne, chosen, step);
    elements.runIf(moves, [&] {
      elements.forEach(step, size, [&](Value column) {
        Value upper = read(step, column), lower = read(chosen, column);
        write(step, column, lower);
        write(chosen, column, elements.create<arith::NegFOp>(upper));
      });
    });
    Value pivot = read(step, step);
    // Where a column has no pivot, its zero on the diagonal is all that counts.
    Value isThere = elements.create<arith::CmpFOp>(arith::CmpFPredicate::UNE, pivot, elements.zero(pivot.getType()));
    elements.runIf(isThere, [&] {
      elements.forEach(next, size, [&](Value row) {
        Value factor = elements.div(read(row, step), pivot);
        elements.forEach(next, size, [&](Value column) {
          write(row, column, elements.sub(read(row, column), elements.mul(factor, read(step, column))));
        });
      });
    });
  });
}
