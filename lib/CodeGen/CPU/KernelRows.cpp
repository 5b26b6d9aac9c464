//===- KernelRows.cpp - Reductions that accumulate rows -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how reductions accumulate rows along a dimension that is contiguous in memory, so that they vectorise.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dovetail;

/// Elements of a row that accumulate together: four vectors of 512 bits of f32, which stay in registers.
static constexpr int64_t tileSize = 64;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

void KernelEmitter::emitTiles() {
  unsigned loop = order[rowDepth];
  auto [lo, hi] = ranges[loop];
  if (isStatic(loop) && extents[loop] <= tileSize)
    return emitTile({lo, hi});
  OpBuilder::InsertionGuard guard(builder);
  Location loc = kernel.getLoc();
  auto tiles = scf::ForOp::create(builder, loc, lo, hi, elements.index(tileSize));
  builder.setInsertionPointToStart(tiles.getBody());
  Value first = tiles.getInductionVar();
  Value fullEnd = elements.addI(first, tileSize);
  if (isStatic(loop) && extents[loop] % tileSize == 0)
    return emitTile({first, fullEnd});
  // Full tiles have a constant width, so that their accumulators stay in registers.
  Value isFull = elements.compareI(arith::CmpIPredicate::sle, fullEnd, hi);
  auto branch = scf::IfOp::create(builder, loc, isFull, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  emitTile({first, fullEnd});
  builder.setInsertionPointToStart(branch.elseBlock());
  emitTile({first, hi});
}

void KernelEmitter::emitTile(Tile tile) {
  for (Operation *op : rowReductions) {
    if (auto momentsOp = dyn_cast<MomentsOp>(op)) {
      moments[op] = emitMoments(momentsOp, tile);
      continue;
    }
    auto reduction = cast<DefinitionOpInterface>(op);
    SmallVector<unsigned> loops = analysis.getFoldOrder(op).loops;
    SmallVector<Value> foldIndex(index);
    foldIndex.append(loops.size(), Value());
    Row row = createRow(tile, emitInit(reduction).getType());
    emitRow(reduction, loops, row, tile, foldIndex);
    rows[op] = row;
  }
  forEach(tile.first, tile.end, [&](Value iv) {
    index[order[rowDepth]] = iv;
    emitLoops(rowDepth + 1);
  });
  rows.clear();
  moments.clear();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

KernelEmitter::Row KernelEmitter::createRow(Tile tile, Type type) {
  return {createBuffer(type, tileSize), tile.first, type};
}

Value KernelEmitter::loadRow(const Row &row, Value coordinate) {
  return loadFrom(row.buffer, row.type, elements.subI(coordinate, row.first));
}

void KernelEmitter::storeRow(const Row &row, Value coordinate, Value value) {
  storeTo(row.buffer, elements.subI(coordinate, row.first), value);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Folds over `loops` into `row`. Each loop has its own accumulators, so that errors of sums grow with the extents of
/// the loops and not with their product.
void KernelEmitter::emitRow(DefinitionOpInterface op, ArrayRef<unsigned> loops, const Row &row, Tile tile,
                            SmallVector<Value> &foldIndex) {
  auto accumulate = [&](function_ref<Value(Value)> term) {
    forEach(tile.first, tile.end, [&](Value iv) { storeRow(row, iv, emitCombine(op, loadRow(row, iv), term(iv))); });
  };
  auto accumulateTerms = [&] {
    accumulate([&](Value iv) {
      foldIndex[order[rowDepth]] = iv;
      return emitTerm(op, foldIndex);
    });
  };
  forEach(tile.first, tile.end, [&](Value iv) { storeRow(row, iv, emitInit(op)); });
  if (loops.empty())
    return accumulateTerms();
  unsigned loop = loops.front();
  unsigned position = getFoldPosition(op, loop);
  if (loops.size() > 1 && isStatic(loop) && extents[loop] == 1) {
    foldIndex[position] = ranges[loop].lo;
    return emitRow(op, loops.drop_front(), row, tile, foldIndex);
  }
  Row inner = loops.size() > 1 ? createRow(tile, row.type) : Row();
  forEach(ranges[loop].lo, ranges[loop].hi, [&](Value iv) {
    foldIndex[position] = iv;
    if (loops.size() == 1)
      return accumulateTerms();
    emitRow(op, loops.drop_front(), inner, tile, foldIndex);
    accumulate([&](Value j) { return loadRow(inner, j); });
  });
}

//===----------------------------------------------------------------------===//
// Moments
//===----------------------------------------------------------------------===//

/// Takes the moments of one run of the innermost loop at a time, in two passes over memory that is then in a cache, and
/// combines them by Chan's formula: exact means make the deviations small, so that no digits cancel.
KernelEmitter::MomentsRows KernelEmitter::emitMoments(MomentsOp op, Tile tile) {
  Type type = op.getType().getElementType();
  Location loc = kernel.getLoc();
  auto create = [&]() -> MomentsRows { return {createBuffer(type, 1), createRow(tile, type), createRow(tile, type)}; };
  MomentsRows total = create(), block = create();
  Value zero = elements.zero(type);
  LLVM::StoreOp::create(builder, loc, zero, total.count);
  forEach(tile.first, tile.end, [&](Value iv) {
    storeRow(total.mean, iv, zero);
    storeRow(total.deviations, iv, zero);
  });

  SmallVector<unsigned> loops = analysis.getFoldOrder(op).loops;
  unsigned first = kernel.getFirstReductionLoop(op);
  SmallVector<Value> foldIndex(index);
  foldIndex.append(loops.size(), Value());
  std::function<void(ArrayRef<unsigned>)> emitBlocks = [&](ArrayRef<unsigned> left) {
    if (left.size() > 1) {
      forEach(ranges[left.front()].lo, ranges[left.front()].hi, [&](Value iv) {
        foldIndex[rank + left.front() - first] = iv;
        emitBlocks(left.drop_front());
      });
      return;
    }
    emitMomentsOfBlock(op, left.front(), block, tile, foldIndex);
    combineMoments(total, block, tile);
  };
  if (loops.empty()) {
    // The moments of one element.
    Value one = elements.create<arith::ConstantOp>(builder.getFloatAttr(type, 1.0));
    LLVM::StoreOp::create(builder, loc, one, total.count);
    forEach(tile.first, tile.end,
            [&](Value iv) { storeRow(total.mean, iv, readMomentsOperand(op, type, iv, foldIndex)); });
    return total;
  }
  // Nothing divides by the number of elements of an empty range.
  Range inner = ranges[loops.back()];
  auto branch = scf::IfOp::create(builder, loc, elements.compareI(arith::CmpIPredicate::slt, inner.lo, inner.hi),
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenYield());
  emitBlocks(loops);
  return total;
}

/// The operand's element as `type`, at the row's coordinate `iv`; the other coordinates are those of the result, with
/// the reduced ones from the fold.
Value KernelEmitter::readMomentsOperand(MomentsOp op, Type type, Value iv, SmallVector<Value> &foldIndex) {
  foldIndex[order[rowDepth]] = iv;
  return emitMomentsOperand(op, type, foldIndex);
}

/// The moments over `loop`, which is not empty.
void KernelEmitter::emitMomentsOfBlock(MomentsOp op, unsigned loop, const MomentsRows &block, Tile tile,
                                       SmallVector<Value> &foldIndex) {
  Type type = block.mean.type;
  unsigned position = getFoldPosition(op, loop);
  auto read = [&](Value iv) { return readMomentsOperand(op, type, iv, foldIndex); };
  auto sum = [&](const Row &row, function_ref<Value(Value)> term) {
    forEach(tile.first, tile.end, [&](Value iv) { storeRow(row, iv, elements.zero(type)); });
    forEach(ranges[loop].lo, ranges[loop].hi, [&](Value at) {
      foldIndex[position] = at;
      forEach(tile.first, tile.end, [&](Value iv) { storeRow(row, iv, elements.add(loadRow(row, iv), term(iv))); });
    });
  };
  Value extent =
      elements.create<arith::IndexCastOp>(builder.getI64Type(), elements.subI(ranges[loop].hi, ranges[loop].lo));
  Value count = elements.create<arith::SIToFPOp>(type, extent);
  LLVM::StoreOp::create(builder, kernel.getLoc(), count, block.count);
  sum(block.mean, read);
  forEach(tile.first, tile.end,
          [&](Value iv) { storeRow(block.mean, iv, elements.div(loadRow(block.mean, iv), count)); });
  sum(block.deviations, [&](Value iv) {
    Value deviation = elements.sub(read(iv), loadRow(block.mean, iv));
    return elements.mul(deviation, deviation);
  });
}

void KernelEmitter::combineMoments(const MomentsRows &total, const MomentsRows &block, Tile tile) {
  Location loc = kernel.getLoc();
  Type type = total.mean.type;
  Value before = LLVM::LoadOp::create(builder, loc, type, total.count);
  Value added = LLVM::LoadOp::create(builder, loc, type, block.count);
  Value after = elements.add(before, added);
  Value weight = elements.div(added, after);
  Value between = elements.mul(before, weight);
  forEach(tile.first, tile.end, [&](Value iv) {
    Value mean = loadRow(total.mean, iv);
    Value delta = elements.sub(loadRow(block.mean, iv), mean);
    storeRow(total.mean, iv, elements.add(mean, elements.mul(delta, weight)));
    Value deviations = elements.add(loadRow(total.deviations, iv), loadRow(block.deviations, iv));
    storeRow(total.deviations, iv, elements.add(deviations, elements.mul(elements.mul(delta, delta), between)));
  });
  LLVM::StoreOp::create(builder, loc, after, total.count);
}
