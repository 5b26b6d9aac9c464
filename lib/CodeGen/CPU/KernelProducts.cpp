//===- KernelProducts.cpp - Products with a factor that is computed -------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the loops of products one of whose factors is computed where it is read, such as weights that lie in memory
// as they are stored: what is computed serves several rows of the result.
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dovetail;

/// Rows of a tile, which what is computed serves. Of each column's accumulators a few are in use at a time.
static constexpr int64_t mostRows = 128;
/// Columns of a tile: four vectors of 512 bits of f32.
static constexpr int64_t tileColumns = 64;
/// Terms of the factor that are computed together.
static constexpr int64_t termsAtOnce = 8;
/// So many terms before they are computed, what they read is asked for.
static constexpr int64_t termsAhead = 16;
/// Rows that use an element of the factor together, and terms of each that are in registers meanwhile.
static constexpr int64_t rowsAtOnce = 4, termsInRegisters = 4;
/// Folds of fewer terms gain nothing.
static constexpr int64_t fewestTerms = 16;
/// Ranges of columns shorter than this leave threads without work.
static constexpr int64_t fewestColumns = 256;

void KernelEmitter::chooseProduct() {
  auto yielded = kernel.getYield().getValues();
  auto op = yielded.front().getDefiningOp<DefinitionOpInterface>();
  if (!op || yielded.size() != 1 || order.size() < 2 || analysis.getLineOp() || !analysis.getRow().empty() ||
      kernel.getInPlace())
    return;
  const Definition &definition = getDefinition(op);
  if (!definition.isProduct || definition.getNumTaps() > 0 || definition.getNumReductions() == 0)
    return;
  calls::ContractionRoles roles = definition.getRoles();
  unsigned column = order.back();
  unsigned factor = roles[column] == calls::LoopRole::Row ? 0 : 1;
  Operation *producer = op->getOperand(definition.reads[factor].operand).getDefiningOp();
  const KernelAnalysis::FoldOrder &fold = analysis.getFoldOrder(op);
  if (extents[column] == 1 || !roles.differs(factor, column) || roles.differs(1 - factor, column) || !producer ||
      !isa<DefinitionOpInterface>(producer) || !fold.byRows || extents[fold.loops.back()] < fewestTerms)
    return;
  // What is read beyond a border is no term, but it would be computed.
  if (llvm::any_of(definition.reads[factor].dims,
                   [](const layout::AccessDim &dim) { return dim.border != layout::Border::None; }))
    return;
  int row = -1;
  for (unsigned loop : ArrayRef(order).drop_back())
    if (extents[loop] > 1 && !roles.differs(factor, loop) && (row < 0 || extents[loop] > extents[row]))
      row = static_cast<int>(loop);
  if (row < 0)
    return;
  llvm::erase(order, static_cast<unsigned>(row));
  order.insert(std::prev(order.end()), static_cast<unsigned>(row));
  product = Product{op, factor, static_cast<unsigned>(row)};
  // Each thread that has some of the rows would compute all of the factor.
  if (parallelLoop == row && extents[column] >= fewestColumns)
    parallelLoop = static_cast<int>(column);
}

void KernelEmitter::emitProduct() {
  tileSize = tileColumns;
  auto [lo, hi] = ranges[order.back()];
  OpBuilder::InsertionGuard guard(builder);
  auto tiles = scf::ForOp::create(builder, kernel.getLoc(), lo, hi, elements.index(tileSize));
  builder.setInsertionPointToStart(tiles.getBody());
  Value first = tiles.getInductionVar(), end = elements.addI(first, tileSize);
  if (isStatic(order.back()) && extents[order.back()] % tileSize == 0)
    return emitProductTile(first, elements.index(tileSize));
  // Full tiles have a constant width, so that all of them is done in vectors.
  Value isFull = elements.compareI(arith::CmpIPredicate::sle, end, hi);
  auto branch = scf::IfOp::create(builder, kernel.getLoc(), isFull, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(branch.thenBlock());
  emitProductTile(first, elements.index(tileSize));
  builder.setInsertionPointToStart(branch.elseBlock());
  emitProductTile(first, elements.subI(hi, first));
}

void KernelEmitter::emitProductTile(Value first, Value width) {
  int64_t size = std::min(mostRows, extents[product->row]);
  emitTilesOf(product->row, size, [&](Tile block) { emitProductTile(first, width, block, size); });
}

void KernelEmitter::emitProductTile(Value firstColumn, Value width, Tile block, int64_t size) {
  DefinitionOpInterface op = product->op;
  unsigned column = order.back();
  SmallVector<Value> foldIndex(index);
  ArrayRef<unsigned> all = analysis.getFoldOrder(op).loops;
  foldIndex.append(all.size(), Value());
  foldIndex[product->row] = block.first;
  SmallVector<unsigned> loops = dropSingles(op, all, foldIndex);
  Fold fold = getFold(op, foldIndex);

  // The accumulators of all rows of the block follow each other.
  SmallVector<Row> accumulators;
  for (Value init : fold.emitInit())
    accumulators.push_back({createBuffer(init.getType(), size * tileSize), firstColumn, init.getType()});
  auto getRows = [&](Value row) {
    Value first = elements.subI(firstColumn, elements.mulI(elements.subI(row, block.first), tileSize));
    return llvm::map_to_vector(accumulators, [&](const Row &each) { return Row{each.buffer, first, each.type}; });
  };
  auto forEachColumn = [&](function_ref<void(Value position)> body) {
    forEach(elements.index(0), width, [&](Value position) {
      foldIndex[column] = index[column] = elements.addI(firstColumn, position);
      body(position);
    });
  };
  forEach(block.first, block.end, [&](Value row) {
    Rows rows = getRows(row);
    forEachColumn([&](Value) { storeRows(rows, index[column], fold.emitInit()); });
  });

  const Access &access = getDefinition(op).reads[product->factor];
  Value factor = op->getOperand(access.operand);
  Type type = ElementBuilder::scalarType(cast<RankedTensorType>(factor.getType()).getElementType());
  Value panel = createBuffer(type, termsAtOnce * tileSize);
  Value &term = foldIndex[getFoldPosition(op, loops.back())];
  // Terms lie in lines of their own, far apart, where processors do not expect what comes next.
  auto prefetch = [&](Value first) {
    isPrefetching = true;
    foldIndex[column] = firstColumn;
    for (int64_t i = 0; i < termsAtOnce; ++i) {
      term = elements.addI(first, i);
      emitValue(factor, emitReadIndex(op, product->factor, foldIndex));
    }
    isPrefetching = false;
  };
  auto emitGroup = [&](Value first, int64_t count) {
    auto forEachTerm = [&](Value position, int64_t from, int64_t to, function_ref<void(Value place)> body) {
      for (int64_t i = from; i < to; ++i) {
        term = elements.addI(first, i);
        body(elements.addI(position, i * tileSize));
      }
    };
    foldIndex[product->row] = block.first;
    if (count > 1)
      prefetch(elements.addI(first, termsAhead));
    forEachColumn([&](Value position) {
      forEachTerm(position, 0, count, [&](Value place) {
        storeTo(panel, place, emitValue(factor, emitReadIndex(op, product->factor, foldIndex)));
      });
    });
    auto addTerms = [&](Value firstRow, int64_t numRows, int64_t from, int64_t to) {
      forEachColumn([&](Value position) {
        SmallVector<Value> coordinates;
        SmallVector<Rows> rows;
        SmallVector<Values> sums;
        for (int64_t i = 0; i < numRows; ++i) {
          coordinates.push_back(elements.addI(firstRow, i));
          rows.push_back(getRows(coordinates.back()));
          sums.push_back(loadRows(rows.back(), index[column]));
        }
        forEachTerm(position, from, to, [&](Value place) {
          computed = {factor.getDefiningOp(), loadFrom(panel, type, place)};
          for (int64_t i = 0; i < numRows; ++i) {
            foldIndex[product->row] = coordinates[i];
            sums[i] = fold.emitCombine(sums[i], fold.emitTerm());
          }
          computed = {};
        });
        for (int64_t i = 0; i < numRows; ++i)
          storeRows(rows[i], index[column], sums[i]);
      });
    };
    int64_t together = std::min(rowsAtOnce, size), terms = together == 1 ? count : std::min(termsInRegisters, count);
    Value rest = elements.create<arith::RemUIOp>(elements.subI(block.end, block.first), elements.index(together));
    Value last = elements.subI(block.end, rest);
    {
      OpBuilder::InsertionGuard guard(builder);
      auto groups = scf::ForOp::create(builder, kernel.getLoc(), block.first, last, elements.index(together));
      builder.setInsertionPointToStart(groups.getBody());
      for (int64_t from = 0; from < count; from += terms)
        addTerms(groups.getInductionVar(), together, from, from + terms);
    }
    forEach(last, block.end, [&](Value row) { addTerms(row, 1, 0, count); });
  };
  std::function<void(ArrayRef<unsigned>)> emitTerms = [&](ArrayRef<unsigned> left) {
    Range range = ranges[left.front()];
    if (left.size() > 1)
      return forEach(range.lo, range.hi, [&](Value iv) {
        foldIndex[getFoldPosition(op, left.front())] = iv;
        emitTerms(left.drop_front());
      });
    Value count = elements.maxI(elements.subI(range.hi, range.lo), elements.index(0));
    Value last = elements.subI(range.hi, elements.create<arith::RemUIOp>(count, elements.index(termsAtOnce)));
    {
      OpBuilder::InsertionGuard guard(builder);
      auto groups = scf::ForOp::create(builder, kernel.getLoc(), range.lo, last, elements.index(termsAtOnce));
      builder.setInsertionPointToStart(groups.getBody());
      emitGroup(groups.getInductionVar(), termsAtOnce);
    }
    elements.forEach(last, range.hi, [&](Value iv) { emitGroup(iv, 1); });
  };
  emitTerms(loops);

  forEach(block.first, block.end, [&](Value row) {
    index[product->row] = row;
    rows[op] = getRows(row);
    forEachColumn([&](Value) { emitStores(); });
  });
  rows.clear();
}
