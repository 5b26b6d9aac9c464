//===- SelectBoxesOp.cpp - Boxes that no better one overlaps --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.select_boxes`, a row program that goes through the boxes of a batch and class, the best one first.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
/// The operands, in order.
enum Operand : unsigned { Boxes, Scores, Order, Limit, Overlap, Threshold };
} // namespace

FailureOr<RankedTensorType> SelectBoxesOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType boxes = tensorType(adaptor.getBoxes()), scores = tensorType(adaptor.getScores()),
                   order = tensorType(adaptor.getOrder());
  auto isScalar = [](Value value) { return !value || tensorType(value).getRank() == 0; };
  bool fits = boxes.getRank() == 3 && scores.getRank() == 3 && boxes.getDimSize(2) == 4 &&
              boxes.getDimSize(0) == scores.getDimSize(0) && boxes.getDimSize(1) == scores.getDimSize(2) &&
              order.getShape() == scores.getShape() && order.getElementType().isInteger(64);
  if (!fits)
    return emitOptionalError(location, "'", getOperationName(), "' op cannot choose among boxes ", boxes, " by scores ",
                             scores, " in the order ", order);
  if (!isScalar(adaptor.getLimit()) || !isScalar(adaptor.getOverlap()) || !isScalar(adaptor.getThreshold()) ||
      !tensorType(adaptor.getLimit()).getElementType().isInteger(64))
    return emitOptionalError(location, "'", getOperationName(),
                             "' op needs a scalar of i64 as limit, and scalars as overlap and threshold");
  auto size = static_cast<int64_t>(adaptor.getSize());
  if (size < 0)
    return emitOptionalError(location, "'", getOperationName(), "' op chooses ", size, " boxes");
  return RankedTensorType::get({scores.getDimSize(0), scores.getDimSize(1), size}, order.getElementType());
}

Definition SelectBoxesOp::getDefinition() {
  Definition definition = Definition::over(getType());
  definition.loops[2].kind = LoopKind::Whole;
  definition.lines.push_back(2);
  SmallVector<layout::AccessDim> boxes = {Definition::at(0), IndexExpr::unknown(0), IndexExpr::unknown(1)};
  SmallVector<layout::AccessDim> ranked = {Definition::at(0), Definition::at(1), IndexExpr::unknown(0)};
  definition.addRead(Boxes) = boxes;
  definition.addRead(Scores) = ranked;
  definition.addRead(Order) = ranked;
  for (unsigned scalar = Limit; scalar < getNumOperands(); ++scalar)
    definition.addRead(scalar);
  return definition;
}

bool SelectBoxesOp::isCheapElement() { return false; }

namespace {
/// Emits the choice of a line.
class BoxSelection {
public:
  BoxSelection(SelectBoxesOp op, LineBuilder &line) : op(op), line(line), elements(line.elements) {}

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
  Value negate(Value a) { return elements.create<arith::XOrIOp>(a, elements.boolean(true)); }
  Value toIndex(Value a) { return elements.create<arith::IndexCastOp>(elements.getBuilder().getIndexType(), a); }
  SmallVector<Value> at(Value position) { return {line.getLoop(0), line.getLoop(1), position}; }

  SelectBoxesOp op;
  LineBuilder &line;
  ElementBuilder &elements;
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

void BoxSelection::emit() {
  Value zero = elements.index(0), size = elements.index(op.getSize());
  Value numBoxes = elements.index(tensorType(op.getBoxes()).getDimSize(1));
  Value limit = elements.minI(toIndex(line.read(Limit)), size), most = line.read(Overlap);
  Value threshold = op.getThreshold() ? line.read(Threshold) : Value();
  Value yes = elements.boolean(true), no = elements.boolean(false);
  Value none = elements.constantInt(elements.getBuilder().getI64Type(), -1);
  elements.forEach(zero, size, [&](Value position) { line.write(0, at(position), none); });
  // The next box, how many there are so far, and whether a score may still be good enough.
  elements.whileLoop(
      {zero, zero, yes},
      [&](ValueRange carried) {
        Value isNext = elements.andB(elements.compareI(arith::CmpIPredicate::slt, carried[0], numBoxes),
                                     elements.compareI(arith::CmpIPredicate::slt, carried[1], limit));
        return elements.andB(isNext, carried[2]);
      },
      [&](ValueRange carried) -> SmallVector<Value> {
        Value isGood = yes, goesOn = yes;
        if (threshold) {
          // What is no number is not good, but comes before all others.
          Value score = line.read(Scores, carried[0]);
          isGood = elements.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, score, threshold);
          goesOn = negate(elements.create<arith::CmpFOp>(arith::CmpFPredicate::OLE, score, threshold));
        }
        Value number = line.read(Order, carried[0]);
        Value isTaken = elements.ifElse(
            isGood, no.getType(),
            [&] {
              Box box = readBox(toIndex(number));
              SmallVector<Value> found = elements.whileLoop(
                  {zero, yes},
                  [&](ValueRange inner) {
                    return elements.andB(elements.compareI(arith::CmpIPredicate::slt, inner[0], carried[1]), inner[1]);
                  },
                  [&](ValueRange inner) -> SmallVector<Value> {
                    Box better = readBox(toIndex(line.readBack(0, at(inner[0]))));
                    return {elements.addI(inner[0], 1), negate(overlap(box, better, most))};
                  });
              return found[1];
            },
            [&] { return no; });
        elements.runIf(isTaken, [&] { line.write(0, at(carried[1]), number); });
        Value next = elements.select(isTaken, elements.addI(carried[1], 1), carried[1]);
        return {elements.addI(carried[0], 1), next, goesOn};
      });
}

void SelectBoxesOp::emitLine(LineBuilder &line) { BoxSelection(*this, line).emit(); }
