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
static constexpr int64_t shortRow = 64;
/// Where terms stream from memory, so many as the nearest cache holds with room for the terms: what is read of each
/// line of the operand follows in memory.
static constexpr int64_t longRow = 1024;
/// Terms that are added to an accumulator of a long row each time that it is in a register.
static constexpr int64_t termsAtOnce = 8;
/// Folds of fewer terms do not stream.
static constexpr int64_t fewestTerms = 16;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

bool KernelEmitter::hasLongRows(Operation *op) {
  const KernelAnalysis::FoldOrder &fold = analysis.getFoldOrder(op);
  return getDefinition(op).passes.empty() && fold.readsRowsOnce && extents[fold.loops.back()] >= fewestTerms;
}

void KernelEmitter::emitTiles() {
  unsigned loop = order[rowDepth];
  auto [lo, hi] = ranges[loop];
  tileSize = llvm::all_of(rowReductions, [&](Operation *op) { return hasLongRows(op); }) ? longRow : shortRow;
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
  if (tileSize == longRow)
    return emitTile({first, elements.minI(fullEnd, hi)});
  // Full tiles have a constant width, so that their accumulators stay in registers.
  Value isFull = elements.compareI(arith::CmpIPredicate::sle, fullEnd, hi);
  auto branch = scf::IfOp::create(builder, loc, isFull, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  emitTile({first, fullEnd});
  builder.setInsertionPointToStart(branch.elseBlock());
  emitTile({first, hi});
}

void KernelEmitter::emitTile(Tile tile) {
  for (Operation *op : rowReductions)
    rows[op] = emitRows(cast<DefinitionOpInterface>(op), tile);
  forEach(tile.first, tile.end, [&](Value iv) {
    index[order[rowDepth]] = iv;
    emitLoops(rowDepth + 1);
  });
  rows.clear();
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

KernelEmitter::Rows KernelEmitter::createRows(Tile tile, ValueRange like) {
  Rows rows;
  for (Type type : like.getTypes())
    rows.push_back({createBuffer(type, tileSize), tile.first, type});
  return rows;
}

KernelEmitter::Values KernelEmitter::loadRows(const Rows &rows, Value coordinate) {
  return llvm::map_to_vector(
      rows, [&](const Row &row) { return loadFrom(row.buffer, row.type, elements.subI(coordinate, row.first)); });
}

void KernelEmitter::storeRows(const Rows &rows, Value coordinate, ValueRange values) {
  for (auto [row, value] : llvm::zip_equal(rows, values))
    storeTo(row.buffer, elements.subI(coordinate, row.first), value);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

KernelEmitter::Rows KernelEmitter::emitRows(DefinitionOpInterface op, Tile tile) {
  ArrayRef<unsigned> all = analysis.getFoldOrder(op).loops;
  SmallVector<Value> foldIndex(index);
  foldIndex.append(all.size(), Value());
  setPartRanges(op, index);
  SmallVector<unsigned> loops = dropSingles(op, all, foldIndex);
  Fold fold = getFold(op, foldIndex);
  if (getDefinition(op).passes.empty())
    return emitRows(op, fold, loops, tile, foldIndex);
  unsigned outer = countOuter(loops, tileSize);
  auto emitInner = [&] { return emitBlock(op, ArrayRef(loops).drop_front(outer), tile, foldIndex); };
  return outer == 0 ? emitInner() : emitRows(op, fold, ArrayRef(loops).take_front(outer), tile, foldIndex, emitInner);
}

KernelEmitter::Rows KernelEmitter::emitRows(Operation *op, const Fold &fold, ArrayRef<unsigned> loops, Tile tile,
                                            SmallVector<Value> &foldIndex, std::function<Rows()> emitInner) {
  Rows rows = createRows(tile, fold.emitInit());
  auto accumulate = [&](function_ref<Values(Value)> term) {
    forEach(tile.first, tile.end,
            [&](Value iv) { storeRows(rows, iv, fold.emitCombine(loadRows(rows, iv), term(iv))); });
  };
  auto accumulateTerms = [&] {
    accumulate([&](Value iv) {
      foldIndex[order[rowDepth]] = iv;
      return fold.emitTerm();
    });
  };
  forEach(tile.first, tile.end, [&](Value iv) { storeRows(rows, iv, fold.emitInit()); });
  if (loops.empty()) {
    accumulateTerms();
    return rows;
  }
  auto [lo, hi] = ranges[loops.front()];
  if (tileSize == longRow && loops.size() == 1 && !emitInner) {
    Value &term = foldIndex[getFoldPosition(op, loops.front())];
    Value count = elements.maxI(elements.subI(hi, lo), elements.index(0));
    Value rest = elements.create<arith::RemUIOp>(count, elements.index(termsAtOnce));
    Value last = elements.subI(hi, rest);
    auto groups = scf::ForOp::create(builder, kernel.getLoc(), lo, last, elements.index(termsAtOnce));
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(groups.getBody());
      forEach(tile.first, tile.end, [&](Value iv) {
        foldIndex[order[rowDepth]] = iv;
        Values sums = loadRows(rows, iv);
        for (int64_t i = 0; i < termsAtOnce; ++i) {
          term = elements.addI(groups.getInductionVar(), i);
          sums = fold.emitCombine(sums, fold.emitTerm());
        }
        storeRows(rows, iv, sums);
      });
    }
    forEach(last, hi, [&](Value iv) {
      term = iv;
      accumulateTerms();
    });
    return rows;
  }
  forEach(lo, hi, [&](Value iv) {
    foldIndex[getFoldPosition(op, loops.front())] = iv;
    bool isInnermost = loops.size() == 1;
    if (isInnermost && !emitInner)
      return accumulateTerms();
    Rows inner = isInnermost ? emitInner() : emitRows(op, fold, loops.drop_front(), tile, foldIndex, emitInner);
    accumulate([&](Value j) { return loadRows(inner, j); });
  });
  return rows;
}

KernelEmitter::Rows KernelEmitter::emitBlock(DefinitionOpInterface op, ArrayRef<unsigned> loops, Tile tile,
                                             SmallVector<Value> &foldIndex) {
  Value count = emitCount(loops);
  Rows found;
  for (unsigned pass = 0, passes = getDefinition(op).passes.size(); pass < passes; ++pass) {
    auto emitFound = [&] { return loadRows(found, foldIndex[order[rowDepth]]); };
    Rows folded = emitRows(op, getPass(op, pass, foldIndex, emitFound), loops, tile, foldIndex);
    forEach(tile.first, tile.end, [&](Value iv) {
      storeRows(folded, iv, op.emitFound(elements, pass, loadRows(folded, iv).front(), count));
    });
    found.push_back(folded.front());
  }
  Rows block;
  forEach(tile.first, tile.end, [&](Value iv) {
    Values values = op.emitBlock(elements, loadRows(found, iv), count);
    if (block.empty())
      block = createRows(tile, values);
    storeRows(block, iv, values);
  });
  return block;
}
