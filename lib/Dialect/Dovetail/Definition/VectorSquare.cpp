//===- VectorSquare.cpp - Transposing in registers ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines transposeSquare.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/VectorSquare.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dovetail;

SmallVector<Value> dovetail::transposeSquare(OpBuilder &builder, Location loc, SmallVector<Value> rows) {
  unsigned size = rows.size();
  unsigned bits = cast<VectorType>(rows.front().getType()).getElementTypeBitWidth();
  unsigned lane = std::min(size, 128 / bits), lanes = size / lane;
  auto shuffle = [&](Value a, Value b, function_ref<int64_t(unsigned place)> from) {
    SmallVector<int64_t> mask;
    for (unsigned place = 0; place < size; ++place)
      mask.push_back(from(place));
    return vector::ShuffleOp::create(builder, loc, a, b, mask).getResult();
  };
  for (unsigned first = 0; first < size; first += lane)
    for (unsigned done = 1; done < lane; done *= 2) {
      SmallVector<Value> next;
      for (unsigned row = first; row < first + lane / 2; ++row)
        for (unsigned half = 0; half < 2; ++half)
          next.push_back(shuffle(rows[row], rows[row + lane / 2], [&](unsigned place) {
            unsigned inLane = place % lane, other = inLane % 2;
            return place - inLane + half * lane / 2 + inLane / 2 + other * size;
          }));
      llvm::copy(next, rows.begin() + first);
    }
  if (lanes == 1)
    return rows;
  assert(lanes == 2 && "vectors of at most 256 bits");
  SmallVector<Value> columns;
  for (unsigned column = 0; column < size; ++column)
    columns.push_back(shuffle(rows[column % lane], rows[lane + column % lane], [&](unsigned place) {
      return place % lane + column / lane * lane + place / lane * size;
    }));
  return columns;
}
