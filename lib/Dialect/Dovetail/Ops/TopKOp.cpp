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

/// Elements that are compared at once, before any of them enters a heap.
static constexpr int64_t blockSize = 16;
/// As long as operands are whose entries are one number.
static constexpr int64_t mostPacked = int64_t(1) << 32;

namespace {
/// Emits the choice of one line. An entry is an element's rank, by which it is compared, and where it is in the
/// operand. Of elements of up to 32 bits the rank is an integer, and the entry one number, so that a comparison is one
/// instruction; their values are read again when all is in order. Of others it is the element itself.
class Selection : public LineHeap {
public:
  Selection(TopKOp op, LineBuilder &line)
      : LineHeap(line.elements), op(op), line(line), builder(elements.getBuilder()),
        type(ElementBuilder::scalarType(getElementTypeOrSelf(op.getValues().getType()))),
        extent(cast<RankedTensorType>(op.getOperand().getType()).getDimSize(op.getAxis())),
        isPacked(type.getIntOrFloatBitWidth() <= 32 && extent <= mostPacked) {}

  void emit();

private:
  Value getRank(Value position);
  Entry readOperand(Value position);
  Entry read(Value position) override;
  void write(Value position, const Entry &entry) override;
  /// The rank of the entry that comes last.
  Value readLast();
  /// i1: rank `a` comes before `b`, and they are not equal.
  Value isGreater(Value a, Value b);
  Value isBefore(const Entry &a, const Entry &b) override;
  /// Has the elements [lo, hi) enter the heap, of which `last` comes last; returns what does then.
  Value emitScan(Value lo, Value hi, Value last);
  /// Writes the elements and indices of entries that are one number.
  void unpack();

  SmallVector<Value> at(Value position) {
    SmallVector<Value> index(line.getResultIndex());
    index[op.getAxis()] = position;
    return index;
  }

  TopKOp op;
  LineBuilder &line;
  OpBuilder &builder;
  Type type; ///< Of elements.
  int64_t extent;
  bool isPacked;
};
} // namespace

Value Selection::getRank(Value position) {
  Value element = line.read(0, position);
  if (!isPacked)
    return element;
  return rankElement(elements, element, getElementTypeOrSelf(op.getValues().getType()), !op.getLargest());
}

Selection::Entry Selection::readOperand(Value position) {
  Value rank = getRank(position), index = elements.create<arith::IndexCastOp>(builder.getI64Type(), position);
  return isPacked ? Entry{packRank(elements, rank, index)} : Entry{rank, index};
}

Selection::Entry Selection::read(Value position) {
  Value index = line.readBack(1, at(position));
  return isPacked ? Entry{index} : Entry{line.readBack(0, at(position)), index};
}

void Selection::write(Value position, const Entry &entry) {
  if (!isPacked)
    line.write(0, at(position), entry.front());
  line.write(1, at(position), entry.back());
}

Value Selection::readLast() {
  Value last = read(elements.index(0)).front();
  return isPacked ? unpackRank(elements, last) : last;
}

Value Selection::isGreater(Value a, Value b) {
  if (isPacked)
    return elements.create<arith::CmpIOp>(arith::CmpIPredicate::sgt, a, b);
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
  if (isPacked)
    return isGreater(a[0], b[0]);
  Value isFirst = elements.create<arith::CmpIOp>(arith::CmpIPredicate::slt, a[1], b[1]);
  Value isNotLess = elements.create<arith::XOrIOp>(isGreater(b[0], a[0]), elements.boolean(true));
  return elements.create<arith::OrIOp>(isGreater(a[0], b[0]), elements.andB(isNotLess, isFirst));
}

Value Selection::emitScan(Value lo, Value hi, Value last) {
  Value zero = elements.index(0), size = elements.index(op.getK());
  return elements
      .forLoop(lo, hi, last,
               [&](Value i, ValueRange carried) -> SmallVector<Value> {
                 // Of equal elements the later one never counts.
                 return {elements.ifElse(
                     isGreater(getRank(i), carried[0]), last.getType(),
                     [&] {
                       sift(readOperand(i), zero, size);
                       return readLast();
                     },
                     [&] { return carried[0]; })};
               })
      .front();
}

void Selection::unpack() {
  elements.forEach(elements.index(0), elements.index(op.getK()), [&](Value i) {
    Value index = unpackIndex(elements, read(i).front());
    line.write(1, at(i), index);
    line.write(0, at(i), line.read(0, elements.create<arith::IndexCastOp>(builder.getIndexType(), index)));
  });
}

void Selection::emit() {
  int64_t k = op.getK();
  elements.forEach(elements.index(0), elements.index(k), [&](Value i) { write(i, readOperand(i)); });
  build(elements.index(k));
  if (k > 0 && k < extent) {
    // Few elements get in, so most blocks are done when all of them have been compared with the last one.
    int64_t blocks = (extent - k) / blockSize, behind = k + blocks * blockSize;
    auto compare = [&](Value first, Value last) {
      return elements
          .forLoop(
              elements.index(0), elements.index(blockSize), elements.boolean(false),
              [&](Value i, ValueRange any) -> SmallVector<Value> {
                Value enters = isGreater(getRank(elements.addI(first, i)), last);
                return {elements.create<arith::OrIOp>(any[0], enters)};
              },
              /*maxUnroll=*/blockSize)
          .front();
    };
    Value last = elements
                     .forLoop(elements.index(0), elements.index(blocks), readLast(),
                              [&](Value block, ValueRange carried) -> SmallVector<Value> {
                                Value first = elements.addI(elements.mulI(block, blockSize), k);
                                return {elements.ifElse(
                                    compare(first, carried[0]), carried[0].getType(),
                                    [&] { return emitScan(first, elements.addI(first, blockSize), carried[0]); },
                                    [&] { return carried[0]; })};
                              })
                     .front();
    emitScan(elements.index(behind), elements.index(extent), last);
  }
  sort(k);
  if (isPacked)
    unpack();
}

void TopKOp::emitLine(LineBuilder &line) { Selection(*this, line).emit(); }
