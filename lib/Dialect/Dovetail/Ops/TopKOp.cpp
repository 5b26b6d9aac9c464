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
/// Emits the choice of one line.
class Selection {
public:
  Selection(TopKOp op, LineBuilder &line) : op(op), line(line), elements(line.elements) {}

  void emit();

private:
  /// An element, and where it is in the operand.
  struct Entry {
    Value value, index;
  };
  Entry readOperand(Value position);
  Entry read(Value position);
  void write(Value position, Entry entry);
  /// i1: value `a` comes before `b` in the result, and they are not equal.
  Value isGreater(Value a, Value b);
  /// i1: `a` comes before `b` in the result.
  Value isBefore(Entry a, Entry b);
  /// Puts `entry` into the heap of the first `size` entries, of which the one at `position` is free and all below it
  /// are in order. The last entry of all comes first in the heap.
  void sift(Entry entry, Value position, Value size);

  SmallVector<Value> at(Value position) {
    SmallVector<Value> index(line.getResultIndex());
    index[op.getAxis()] = position;
    return index;
  }

  TopKOp op;
  LineBuilder &line;
  ElementBuilder &elements;
};
} // namespace

Selection::Entry Selection::readOperand(Value position) {
  return {line.read(0, position), elements.create<arith::IndexCastOp>(elements.getBuilder().getI64Type(), position)};
}

Selection::Entry Selection::read(Value position) {
  return {line.readBack(0, at(position)), line.readBack(1, at(position))};
}

void Selection::write(Value position, Entry entry) {
  line.write(0, at(position), entry.value);
  line.write(1, at(position), entry.index);
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

Value Selection::isBefore(Entry a, Entry b) {
  Value isFirst = elements.create<arith::CmpIOp>(arith::CmpIPredicate::slt, a.index, b.index);
  Value isNotLess = elements.create<arith::XOrIOp>(isGreater(b.value, a.value), elements.boolean(true));
  return elements.create<arith::OrIOp>(isGreater(a.value, b.value), elements.andB(isNotLess, isFirst));
}

void Selection::sift(Entry entry, Value position, Value size) {
  auto getChild = [&](Value parent) { return elements.addI(elements.mulI(parent, 2), 1); };
  SmallVector<Value> end = elements.whileLoop(
      {position, elements.boolean(true)},
      [&](ValueRange carried) {
        Value hasChild = elements.compareI(arith::CmpIPredicate::slt, getChild(carried[0]), size);
        return elements.andB(carried[1], hasChild);
      },
      [&](ValueRange carried) -> SmallVector<Value> {
        // Of two children, the one that comes last.
        Value left = getChild(carried[0]), right = elements.addI(left, 1);
        Value hasRight = elements.compareI(arith::CmpIPredicate::slt, right, size);
        Value child = elements.ifElse(
            hasRight, left.getType(), [&] { return elements.select(isBefore(read(left), read(right)), right, left); },
            [&] { return left; });
        Entry lower = read(child);
        Value isAbove = isBefore(entry, lower);
        Value next = elements.ifElse(
            isAbove, child.getType(),
            [&] {
              write(carried[0], lower);
              return child;
            },
            [&] { return carried[0]; });
        return {next, isAbove};
      });
  write(end[0], entry);
}

void Selection::emit() {
  int64_t k = op.getK(), extent = cast<RankedTensorType>(op.getOperand().getType()).getDimSize(op.getAxis());
  Value size = elements.index(k), zero = elements.index(0);
  elements.forEach(zero, size, [&](Value i) { write(i, readOperand(i)); });
  elements.forEach(zero, elements.index(k / 2), [&](Value i) {
    Value parent = elements.subI(elements.index(k / 2 - 1), i);
    sift(read(parent), parent, size);
  });
  if (k > 0)
    elements.forLoop(size, elements.index(extent), read(zero).value, [&](Value i, ValueRange carried) {
      // Of equal elements the later one never counts. Few get here, so the comparison is all that there is to do.
      Entry entry = readOperand(i);
      Value last = carried.front();
      auto enter = [&]() -> SmallVector<Value> {
        sift(entry, zero, size);
        return {read(zero).value};
      };
      return elements.ifElse(isGreater(entry.value, last), last.getType(), enter,
                             [&]() -> SmallVector<Value> { return {last}; });
    });
  elements.forEach(elements.index(1), size, [&](Value i) {
    Value last = elements.subI(size, i);
    Entry moved = read(last);
    write(last, read(zero));
    sift(moved, zero, last);
  });
}

void TopKOp::emitLine(LineBuilder &line) { Selection(*this, line).emit(); }
