//===- SortRowsOp.cpp - The order of rows ---------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.sort_rows`, a row program: a heap of the numbers of rows, in the memory of the result.
//
//===----------------------------------------------------------------------===//

#include "LineHeap.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

FailureOr<RankedTensorType> SortRowsOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType operand = tensorType(adaptor.getOperand());
  if (operand.getRank() != 2)
    return emitOptionalError(location, "'", getOperationName(), "' op needs a matrix, but its operand is ", operand);
  return RankedTensorType::get(operand.getShape().front(), IntegerType::get(operand.getContext(), 64));
}

Definition SortRowsOp::getDefinition() {
  Definition definition = Definition::over(getType());
  definition.loops[0].kind = LoopKind::Whole;
  definition.lines.push_back(0);
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  dims.push_back(IndexExpr::unknown(0));
  dims.push_back(IndexExpr::unknown(1));
  return definition;
}

namespace {
/// The numbers of rows, of type index.
class Sorting : public LineHeap {
public:
  Sorting(SortRowsOp op, LineBuilder &line)
      : LineHeap(line.elements), line(line), rows(op.getType().getDimSize(0)),
        columns(tensorType(op.getOperand()).getDimSize(1)), isUnsigned(isUnsignedElement(op.getOperand().getType())) {}

  void emit();

private:
  Entry read(Value position) override;
  void write(Value position, const Entry &row) override;
  /// i1: of two elements.
  Value isLess(Value a, Value b);
  Value isEqual(Value a, Value b);
  Value isBefore(const Entry &first, const Entry &second) override;

  LineBuilder &line;
  int64_t rows, columns;
  bool isUnsigned;
};
} // namespace

Sorting::Entry Sorting::read(Value position) {
  return {elements.create<arith::IndexCastOp>(elements.getBuilder().getIndexType(), line.readBack(0, position))};
}

void Sorting::write(Value position, const Entry &row) {
  line.write(0, position, elements.create<arith::IndexCastOp>(elements.getBuilder().getI64Type(), row.front()));
}

Value Sorting::isLess(Value a, Value b) {
  if (!isa<FloatType>(a.getType()))
    return elements.create<arith::CmpIOp>(isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt, a, b);
  // Also where one is no number, unless it is a.
  return elements.andB(elements.create<arith::CmpFOp>(arith::CmpFPredicate::ULT, a, b),
                       elements.create<arith::CmpFOp>(arith::CmpFPredicate::ORD, a, a));
}

Value Sorting::isEqual(Value a, Value b) {
  if (!isa<FloatType>(a.getType()))
    return elements.create<arith::CmpIOp>(arith::CmpIPredicate::eq, a, b);
  Value none = elements.andB(elements.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, a, a),
                             elements.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, b, b));
  return elements.create<arith::OrIOp>(elements.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, a, b), none);
}

Value Sorting::isBefore(const Entry &first, const Entry &second) {
  Value a = first.front(), b = second.front();
  Value isFirst = elements.compareI(arith::CmpIPredicate::slt, a, b);
  if (columns == 0)
    return isFirst;
  auto element = [&](Value row, Value column) { return line.read(0, {row, column}); };
  Value zero = elements.index(0), size = elements.index(columns);
  Value column = zero, differs = elements.boolean(true);
  if (columns > 1) {
    // The first column in which they differ.
    SmallVector<Value> found = elements.whileLoop(
        {zero, elements.boolean(false)},
        [&](ValueRange carried) {
          Value isColumn = elements.compareI(arith::CmpIPredicate::slt, carried[0], size);
          return elements.andB(isColumn, elements.create<arith::XOrIOp>(carried[1], elements.boolean(true)));
        },
        [&](ValueRange carried) -> SmallVector<Value> {
          Value same = isEqual(element(a, carried[0]), element(b, carried[0]));
          return {elements.select(same, elements.addI(carried[0], 1), carried[0]),
                  elements.create<arith::XOrIOp>(same, elements.boolean(true))};
        });
    column = found[0], differs = found[1];
  }
  return elements.ifElse(
      differs, isFirst.getType(),
      [&] {
        Value left = element(a, column), right = element(b, column);
        return elements.create<arith::OrIOp>(isLess(left, right), elements.andB(isEqual(left, right), isFirst));
      },
      [&] { return isFirst; });
}

void Sorting::emit() {
  elements.forEach(elements.index(0), elements.index(rows), [&](Value row) { write(row, {row}); });
  build(elements.index(rows));
  sort(rows);
}

void SortRowsOp::emitLine(LineBuilder &line) { Sorting(*this, line).emit(); }
