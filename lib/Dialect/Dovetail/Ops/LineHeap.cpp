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

void LineHeap::sift(const Entry &entry, Value position, Value size) {
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
