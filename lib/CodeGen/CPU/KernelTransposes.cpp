//===- KernelTransposes.cpp - Kernels that read across what they write -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the order of loops where neighbours in memory are read along another loop than the one along which they are
// written.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "PackTransposes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dovetail;

/// Loops of at most so many iterations are unrolled rather than divided into tiles.
static constexpr int64_t shortest = 4;

void KernelEmitter::chooseTransposedLoop() {
  bool hasRow = !analysis.getRow().empty();
  bool isElementwise = !analysis.getLineOp() && !hasRow && extents.size() == rank && order.size() == rank && rank > 1;
  if (!isElementwise || order.back() != static_cast<unsigned>(kernel.getResultLayout(0).getOrder().back()) ||
      llvm::any_of(order, [&](unsigned loop) { return analysis.countShared(loop) > 0; }) ||
      extents[order.back()] <= shortest)
    return;
  int64_t most = 0;
  for (Value value : kernel.getYield().getValues())
    for (auto &[argument, index] : analysis.getReads(value, analysis.getResultIndex())) {
      int64_t size = cast<RankedTensorType>(argument.getType()).getNumElements();
      if (size <= most || analysis.getStride(argument, index, order.back()) <= 1)
        continue;
      for (unsigned loop : order)
        if (loop != order.back() && extents[loop] > 1 && analysis.getStride(argument, index, loop) == 1) {
          transposedLoop = loop;
          most = size;
        }
    }
  if (transposedLoop < 0 || extents[transposedLoop] > shortest)
    return;
  // All that lies together is read together, and goes to a few places.
  llvm::erase(order, static_cast<unsigned>(transposedLoop));
  order.push_back(transposedLoop);
  transposedLoop = -1;
}

void KernelEmitter::emitTilesOf(unsigned loop, int64_t size, function_ref<void(Tile)> body) {
  auto [lo, hi] = ranges[loop];
  if (isStatic(loop) && extents[loop] <= size)
    return body({lo, hi});
  OpBuilder::InsertionGuard guard(builder);
  auto tiles = scf::ForOp::create(builder, kernel.getLoc(), lo, hi, elements.index(size));
  builder.setInsertionPointToStart(tiles.getBody());
  Value first = tiles.getInductionVar();
  body({first, elements.minI(elements.addI(first, size), hi)});
}

void KernelEmitter::emitTransposedTiles() {
  unsigned row = order.back();
  emitTilesOf(row, transposedExtent, [&](Tile tile) {
    auto emit = [&](Tile rows) {
      auto loop = scf::ForOp::create(builder, kernel.getLoc(), transposed.first, transposed.end, elements.index(1));
      markTransposed(loop, transposedExtent);
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(loop.getBody()->getTerminator());
      index[transposedLoop] = loop.getInductionVar();
      elements.forEach(rows.first, rows.end, [&](Value iv) {
        index[row] = iv;
        emitStores();
      });
    };
    if (elements.getConstantIndex(tile.end) || (isStatic(row) && extents[row] % transposedExtent == 0))
      return emit(
          {tile.first, elements.getConstantIndex(tile.end) ? tile.end : elements.addI(tile.first, transposedExtent)});
    // Full tiles have rows of a constant length.
    Value fullEnd = elements.addI(tile.first, transposedExtent);
    Value isFull = elements.compareI(arith::CmpIPredicate::sle, fullEnd, ranges[row].hi);
    auto branch = scf::IfOp::create(builder, kernel.getLoc(), isFull, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    emit({tile.first, fullEnd});
    builder.setInsertionPointToStart(branch.elseBlock());
    emit({tile.first, ranges[row].hi});
  });
}
