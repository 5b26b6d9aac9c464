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

using namespace mlir;
using namespace dovetail;

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

void LineHeap::build(int64_t size) {
  elements.forEach(elements.index(0), elements.index(size / 2), [&](Value i) {
    Value parent = elements.subI(elements.index(size / 2 - 1), i);
    sift(read(parent), parent, elements.index(size));
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
