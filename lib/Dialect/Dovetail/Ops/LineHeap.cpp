//===- LineHeap.cpp - Heaps in the memory of a line -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements LineHeap.
//
//===----------------------------------------------------------------------===//

#include "LineHeap.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

#include <limits>

using namespace mlir;
using namespace dovetail;

/// The bits of an index in a packed rank.
static constexpr int64_t indexMask = 0xffffffff;

/// Ranks of floats are their bits, with all but the sign inverted where that is set.
Value dovetail::rankElement(ElementBuilder &elements, Value element, Type type, bool reverse) {
  OpBuilder &builder = elements.getBuilder();
  IntegerType rank = builder.getI32Type();
  Type scalar = ElementBuilder::scalarType(type);
  auto constant = [&](int64_t value) { return elements.constantInt(rank, value); };
  Value bits = element;
  if (isa<FloatType>(scalar)) {
    FloatType f32 = builder.getF32Type();
    Value number = elements.convertFloat(element, f32), zero = elements.zero(f32);
    Value isZero = elements.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, number, zero),
          isNaN = elements.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, number, number);
    Value whole = elements.create<arith::BitcastOp>(rank, elements.select(isZero, zero, number));
    Value sign = elements.create<arith::ShRSIOp>(whole, constant(31));
    bits = elements.create<arith::XOrIOp>(whole, elements.create<arith::AndIOp>(sign, constant(0x7fffffff)));
    bits = elements.select(isNaN, constant(0x7fffffff), bits);
  } else if (isUnsignedElement(type)) {
    bits = scalar == rank ? elements.create<arith::XOrIOp>(bits, constant(std::numeric_limits<int32_t>::min()))
                          : elements.create<arith::ExtUIOp>(rank, bits);
  } else if (scalar != rank) {
    bits = elements.create<arith::ExtSIOp>(rank, bits);
  }
  return reverse ? elements.create<arith::XOrIOp>(bits, constant(-1)) : bits;
}

Value dovetail::packRank(ElementBuilder &elements, Value rank, Value index) {
  Type i64 = elements.getBuilder().getI64Type();
  Value high =
      elements.create<arith::ShLIOp>(elements.create<arith::ExtSIOp>(i64, rank), elements.constantInt(i64, 32));
  return elements.create<arith::OrIOp>(high,
                                       elements.create<arith::XOrIOp>(index, elements.constantInt(i64, indexMask)));
}

Value dovetail::unpackRank(ElementBuilder &elements, Value packed) {
  Value high = elements.create<arith::ShRSIOp>(packed, elements.constantInt(packed.getType(), 32));
  return elements.create<arith::TruncIOp>(elements.getBuilder().getI32Type(), high);
}

Value dovetail::unpackIndex(ElementBuilder &elements, Value packed) {
  Value mask = elements.constantInt(packed.getType(), indexMask);
  return elements.create<arith::XOrIOp>(elements.create<arith::AndIOp>(packed, mask), mask);
}

/// Most entries belong near the bottom. So children move up, all the way, which of two is chosen without a branch, and
/// then the entry goes up from there (Floyd's way, as in Wegener, "Bottom-up-heapsort", 1993).
void LineHeap::sift(const Entry &entry, Value position, Value size) {
  auto getChild = [&](Value parent) { return elements.addI(elements.mulI(parent, 2), 1); };
  auto isInside = [&](Value place) { return elements.compareI(arith::CmpIPredicate::slt, place, size); };
  Value free = elements
                   .whileLoop(
                       {position}, [&](ValueRange carried) { return isInside(elements.addI(getChild(carried[0]), 1)); },
                       [&](ValueRange carried) -> SmallVector<Value> {
                         // Of two children, the one that comes last.
                         Value left = getChild(carried[0]), right = elements.addI(left, 1);
                         Entry a = read(left), b = read(right), last;
                         Value isRight = isBefore(a, b);
                         for (auto [ofLeft, ofRight] : llvm::zip_equal(a, b))
                           last.push_back(elements.select(isRight, ofRight, ofLeft));
                         write(carried[0], last);
                         return {elements.select(isRight, right, left)};
                       })
                   .front();
  // The last of all may be the only child.
  Value only = getChild(free);
  free = elements.ifElse(
      isInside(only), free.getType(),
      [&] {
        write(free, read(only));
        return only;
      },
      [&] { return free; });
  SmallVector<Value> end = elements.whileLoop(
      {free, elements.boolean(true)},
      [&](ValueRange carried) {
        Value isBelow = elements.compareI(arith::CmpIPredicate::sgt, carried[0], position);
        return elements.andB(carried[1], isBelow);
      },
      [&](ValueRange carried) -> SmallVector<Value> {
        Value parent = elements.create<arith::ShRUIOp>(elements.subI(carried[0], elements.index(1)), elements.index(1));
        Entry upper = read(parent);
        Value isAbove = isBefore(upper, entry);
        Value next = elements.ifElse(
            isAbove, parent.getType(),
            [&] {
              write(carried[0], upper);
              return parent;
            },
            [&] { return carried[0]; });
        return {next, isAbove};
      });
  write(end[0], entry);
}

void LineHeap::build(Value size) {
  Value half = elements.create<arith::ShRUIOp>(size, elements.index(1));
  elements.forEach(elements.index(0), half, [&](Value i) {
    Value parent = elements.subI(elements.subI(half, elements.index(1)), i);
    sift(read(parent), parent, size);
  });
}

void LineHeap::sort(int64_t size) {
  Value zero = elements.index(0), end = elements.index(size);
  elements.forEach(elements.index(1), end, [&](Value i) {
    Value last = elements.subI(end, i);
    Entry moved = read(last);
    write(last, read(zero));
    sift(moved, zero, last);
  });
}
