//===- TopKOp.cpp - The largest elements of a line ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.top_k`, a row program: a heap of the best elements so far, which is then sorted, in the memory of
// the results.
//
//===----------------------------------------------------------------------===//

#include "LineHeap.h"
#include "dovetail/Dialect/Dovetail/Ops/SelectionOps.h"

using namespace mlir;
using namespace dovetail;

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  auto axis = static_cast<int64_t>(adaptor.getAxis()), k = static_cast<int64_t>(adaptor.getK());
  if (axis < 0 || axis >= operand.getRank())
    return emitOptionalError(location, "'", getOperationName(), "' op has axis ", axis, ", which ", operand,
                             " does not have");
  if (k < 0 || k > operand.getDimSize(axis))
    return emitOptionalError(location, "'", getOperationName(), "' op chooses ", k, " elements of ",
                             operand.getDimSize(axis), " in dimension ", axis);
  SmallVector<int64_t> shape(operand.getShape());
  shape[axis] = k;
  types.push_back(RankedTensorType::get(shape, operand.getElementType()));
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 64)));
  return success();
}

Definition TopKOp::getDefinition() {
  unsigned axis = getAxis();
  Definition definition = Definition::over(cast<RankedTensorType>(getValues().getType()));
  definition.loops[axis].kind = LoopKind::Whole;
  definition.lines.push_back(axis);
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    dims.push_back(Definition::at(dim));
  dims[axis] = layout::IndexExpr::unknown(0);
  return definition;
}

bool TopKOp::isCheapElement() { return false; }

namespace {
/// Emits the choice of one line: an entry is an element, and where it is in the operand.
class Selection : public LineHeap {
public:
  Selection(TopKOp op, LineBuilder &line) : LineHeap(line.elements), op(op), line(line) {}

  void emit();

private:
  Entry readOperand(Value position);
  Entry read(Value position) override;
  void write(Value position, const Entry &entry) override;
  /// i1: value `a` comes before `b` in the result, and they are not equal.
  Value isGreater(Value a, Value b);
  Value isBefore(const Entry &a, const Entry &b) override;

  SmallVector<Value> at(Value position) {
    SmallVector<Value> index(line.getResultIndex());
    index[op.getAxis()] = position;
    return index;
  }

  TopKOp op;
  LineBuilder &line;
};
} // namespace

Selection::Entry Selection::readOperand(Value position) {
  return {line.read(0, position), elements.create<arith::IndexCastOp>(elements.getBuilder().getI64Type(), position)};
}

Selection::Entry Selection::read(Value position) {
  return {line.readBack(0, at(position)), line.readBack(1, at(position))};
}

void Selection::write(Value position, const Entry &entry) {
  line.write(0, at(position), entry[0]);
  line.write(1, at(position), entry[1]);
}

Value Selection::isGreater(Value a, Value b) {
  if (!op.getLargest())
    std::swap(a, b);
  bool isUnsigned = isUnsignedElement(op.getValues().getType());
  auto predicate = isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
  if (!isa<FloatType>(a.getType()))
    return elements.create<arith::CmpIOp>(predicate, a, b);
  // Also where one is no number, unless it is b.
  Value isGreater = elements.create<arith::CmpFOp>(arith::CmpFPredicate::UGT, a, b);
  return elements.andB(isGreater, elements.create<arith::CmpFOp>(arith::CmpFPredicate::ORD, b, b));
}

Value Selection::isBefore(const Entry &a, const Entry &b) {
  Value isFirst = elements.create<arith::CmpIOp>(arith::CmpIPredicate::slt, a[1], b[1]);
  Value isNotLess = elements.create<arith::XOrIOp>(isGreater(b[0], a[0]), elements.boolean(true));
  return elements.create<arith::OrIOp>(isGreater(a[0], b[0]), elements.andB(isNotLess, isFirst));
}

void Selection::emit() {
  int64_t k = op.getK(), extent = cast<RankedTensorType>(op.getOperand().getType()).getDimSize(op.getAxis());
  Value size = elements.index(k), zero = elements.index(0);
  elements.forEach(zero, size, [&](Value i) { write(i, readOperand(i)); });
  build(k);
  if (k > 0)
    elements.forLoop(size, elements.index(extent), read(zero)[0], [&](Value i, ValueRange carried) {
      // Of equal elements the later one never counts. Few get here, so the comparison is all that there is to do.
      Entry entry = readOperand(i);
      Value last = carried.front();
      auto enter = [&]() -> SmallVector<Value> {
        sift(entry, zero, size);
        return {read(zero)[0]};
      };
      return elements.ifElse(isGreater(entry[0], last), last.getType(), enter,
                             [&]() -> SmallVector<Value> { return {last}; });
    });
  sort(k);
}

void TopKOp::emitLine(LineBuilder &line) { Selection(*this, line).emit(); }
