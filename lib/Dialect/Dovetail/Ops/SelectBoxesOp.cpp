//===- SelectBoxesOp.cpp - Boxes that no better one overlaps --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.select_boxes`, a row program that takes the boxes of a batch and class from a heap, the best one
// first, so that those which it does not get to are not put in order. Heap and boxes that were chosen share the memory
// of the result: each box that is taken from the beginning leaves a place at the end.
//
//===----------------------------------------------------------------------===//

#include "LineHeap.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
/// The operands, in order.
enum Operand : unsigned { Boxes, Scores, Limit, Overlap, Threshold };
} // namespace

FailureOr<RankedTensorType> SelectBoxesOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType boxes = tensorType(adaptor.getBoxes()), scores = tensorType(adaptor.getScores());
  auto isScalar = [](Value value) { return !value || tensorType(value).getRank() == 0; };
  bool fits = boxes.getRank() == 3 && scores.getRank() == 3 && boxes.getDimSize(2) == 4 &&
              boxes.getDimSize(0) == scores.getDimSize(0) && boxes.getDimSize(1) == scores.getDimSize(2) &&
              scores.getElementTypeBitWidth() <= 32;
  if (!fits)
    return emitOptionalError(location, "'", getOperationName(), "' op cannot choose among boxes ", boxes, " by scores ",
                             scores);
  if (!isScalar(adaptor.getLimit()) || !isScalar(adaptor.getOverlap()) || !isScalar(adaptor.getThreshold()) ||
      !tensorType(adaptor.getLimit()).getElementType().isInteger(64))
    return emitOptionalError(location, "'", getOperationName(),
                             "' op needs a scalar of i64 as limit, and scalars as overlap and threshold");
  return scores.clone(IntegerType::get(scores.getContext(), 64));
}

Definition SelectBoxesOp::getDefinition() {
  Definition definition = Definition::over(getType());
  definition.loops[2].kind = LoopKind::Whole;
  definition.lines.push_back(2);
  SmallVector<layout::AccessDim> boxes = {Definition::at(0), IndexExpr::unknown(0), IndexExpr::unknown(1)};
  SmallVector<layout::AccessDim> ranked = {Definition::at(0), Definition::at(1), IndexExpr::unknown(0)};
  definition.addRead(Boxes) = boxes;
  definition.addRead(Scores) = ranked;
  for (unsigned scalar = Limit; scalar < getNumOperands(); ++scalar)
    definition.addRead(scalar);
  return definition;
}

namespace {
/// Emits the choice of a line. An entry of the heap is a score and the number of its box; the best one comes first.
class BoxSelection : public LineHeap {
public:
  BoxSelection(SelectBoxesOp op, LineBuilder &line)
      : LineHeap(line.elements), op(op), line(line), numBoxes(op.getType().getDimSize(2)) {}

  void emit();

private:
  /// Both corners.
  struct Box {
    Value top, left, bottom, right;
  };
  Box readBox(Value number);
  Value getArea(const Box &box) {
    return elements.mul(elements.sub(box.bottom, box.top), elements.sub(box.right, box.left));
  }
  /// i1
  Value overlap(const Box &a, const Box &b, Value most);
  Value isPositive(Value a) {
    return elements.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, a, elements.zero(a.getType()));
  }
  Entry read(Value position) override { return {line.readBack(0, at(position))}; }
  void write(Value position, const Entry &entry) override { line.write(0, at(position), entry.front()); }
  Value isBefore(const Entry &a, const Entry &b) override {
    return elements.create<arith::CmpIOp>(arith::CmpIPredicate::slt, a.front(), b.front());
  }
  /// Makes a heap of the boxes that are good enough, and returns how many those are.
  Value collect();
  /// The place of a box by how many were chosen before.
  Value chosenAt(Value before) { return elements.subI(elements.index(numBoxes - 1), before); }
  /// Moves chosen boxes to the beginning, with -1 behind them.
  void arrange(Value numChosen);
  Value negate(Value a) { return elements.create<arith::XOrIOp>(a, elements.boolean(true)); }
  Value toIndex(Value a) { return elements.create<arith::IndexCastOp>(elements.getBuilder().getIndexType(), a); }
  SmallVector<Value> at(Value position) { return {line.getLoop(0), line.getLoop(1), position}; }

  SelectBoxesOp op;
  LineBuilder &line;
  int64_t numBoxes;
};
} // namespace

BoxSelection::Box BoxSelection::readBox(Value number) {
  SmallVector<Value, 4> given;
  for (int64_t i = 0; i < 4; ++i)
    given.push_back(line.read(Boxes, {number, elements.index(i)}));
  if (!op.getCenter())
    return {elements.min(given[0], given[2]), elements.min(given[1], given[3]), elements.max(given[0], given[2]),
            elements.max(given[1], given[3])};
  Value half = elements.constant(given[0].getType(), 0.5);
  Value width = elements.mul(given[2], half), height = elements.mul(given[3], half);
  return {elements.sub(given[1], height), elements.sub(given[0], width), elements.add(given[1], height),
          elements.add(given[0], width)};
}

Value BoxSelection::overlap(const Box &a, const Box &b, Value most) {
  Box common = {elements.max(a.top, b.top), elements.max(a.left, b.left), elements.min(a.bottom, b.bottom),
                elements.min(a.right, b.right)};
  Value meets = elements.andB(isPositive(elements.sub(common.bottom, common.top)),
                              isPositive(elements.sub(common.right, common.left)));
  Value first = getArea(a), second = getArea(b), shared = getArea(common);
  Value all = elements.sub(elements.add(first, second), shared);
  Value isBox = elements.andB(elements.andB(isPositive(first), isPositive(second)), isPositive(all));
  Value isMuch = elements.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, elements.div(shared, all), most);
  return elements.andB(elements.andB(meets, isBox), isMuch);
}

Value BoxSelection::collect() {
  Type type = getElementTypeOrSelf(op.getScores().getType());
  Value zero = elements.index(0), threshold = op.getThreshold() ? line.read(Threshold) : Value();
  Value size = elements
                   .forLoop(zero, elements.index(numBoxes), zero,
                            [&](Value number, ValueRange carried) -> SmallVector<Value> {
                              Value score = line.read(Scores, number), next = elements.addI(carried[0], 1);
                              Value index = elements.create<arith::IndexCastOp>(op.getType().getElementType(), number);
                              write(carried[0], {packRank(elements, rankElement(elements, score, type), index)});
                              if (!threshold)
                                return {next};
                              // What is no number is not good.
                              Value isGood =
                                  elements.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, score, threshold);
                              return {elements.select(isGood, next, carried[0])};
                            })
                   .front();
  build(size);
  return size;
}

void BoxSelection::arrange(Value numChosen) {
  elements.forEach(elements.index(0), elements.index(numBoxes / 2), [&](Value i) {
    Value mirrored = chosenAt(i);
    Entry first = read(i), last = read(mirrored);
    write(i, last);
    write(mirrored, first);
  });
  Value none = elements.constantInt(op.getType().getElementType(), -1);
  elements.forEach(numChosen, elements.index(numBoxes), [&](Value position) { write(position, {none}); });
}

void BoxSelection::emit() {
  Value zero = elements.index(0), one = elements.index(1), yes = elements.boolean(true);
  Value limit = toIndex(line.read(Limit)), most = line.read(Overlap);
  // How many are in the heap, and how many are chosen.
  SmallVector<Value> end = elements.whileLoop(
      {collect(), zero},
      [&](ValueRange carried) {
        Value isNext = elements.compareI(arith::CmpIPredicate::sgt, carried[0], zero);
        return elements.andB(isNext, elements.compareI(arith::CmpIPredicate::slt, carried[1], limit));
      },
      [&](ValueRange carried) -> SmallVector<Value> {
        Value number = unpackIndex(elements, read(zero).front()), left = elements.subI(carried[0], one);
        sift(read(left), zero, left);
        Box box = readBox(toIndex(number));
        Value isTaken = elements.whileLoop(
            {zero, yes},
            [&](ValueRange inner) {
              return elements.andB(elements.compareI(arith::CmpIPredicate::slt, inner[0], carried[1]), inner[1]);
            },
            [&](ValueRange inner) -> SmallVector<Value> {
              Box better = readBox(toIndex(read(chosenAt(inner[0])).front()));
              return {elements.addI(inner[0], 1), negate(overlap(box, better, most))};
            })[1];
        elements.runIf(isTaken, [&] { write(chosenAt(carried[1]), {number}); });
        return {left, elements.select(isTaken, elements.addI(carried[1], 1), carried[1])};
      });
  arrange(end[1]);
}

void SelectBoxesOp::emitLine(LineBuilder &line) { BoxSelection(*this, line).emit(); }
