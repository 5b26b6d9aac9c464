//===- Tiles.cpp - Kernels that read in another order than they write -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how values pass through tiles in shared memory, so that neighbouring threads read neighbours and write
// neighbours.
//
//===----------------------------------------------------------------------===//

#include "BlockEmitter.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Mapping
//===----------------------------------------------------------------------===//

/// The loop that walks the innermost dimension of what is read one by one; -1 if none does.
static int getReadLoop(const KernelAnalysis &analysis, const KernelAnalysis::Read &read, unsigned rank) {
  for (unsigned loop = 0; loop < rank; ++loop)
    if (analysis.getStride(read.first, read.second, loop) == 1)
      return loop;
  return -1;
}

/// Whether each element of the result needs one of the operand. Where some do not (a concatenation's), there may be
/// none to read, in this rank's memory or at all.
static bool isReadForEachElement(DefinitionOpInterface op, unsigned operand) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  ArrayRef<int64_t> operandShape = cast<RankedTensorType>(op->getOperand(operand).getType()).getShape();
  OpRelation relation = op.getRelation();
  return llvm::all_of(llvm::zip_equal(operandShape, relation.operands[operand]), [&](auto pair) {
    const auto &[extent, dim] = pair;
    if (dim.loop < 0)
      return true;
    return dim.loop < static_cast<int>(shape.size()) && dim.map.isIdentity() && extent >= shape[dim.loop];
  });
}

bool BlockEmitter::chooseTile() {
  // Shorter loops leave most of a tile empty.
  constexpr int64_t shortest = 16;
  if (!isElementwise() || device.blockThreads > tileSize * tileSize)
    return false;
  unsigned inner = itemLoops.back();
  for (auto [number, value] : llvm::enumerate(kernel.getYield().getValues()))
    if (getInnermost(kernel.getResultLayout(number), value.getType()) != static_cast<int>(inner))
      return false;
  if (extents[inner] < shortest)
    return false;

  // The loop that most elements would be read along in order. Small tensors stay in caches.
  SmallVector<int64_t> elementsAlong(rank, 0);
  int64_t volume = 1;
  for (int64_t extent : kernel.getShape())
    volume *= extent;
  for (Value value : kernel.getYield().getValues())
    for (const KernelAnalysis::Read &read : analysis.getReads(value, analysis.getResultIndex())) {
      int loop = getReadLoop(analysis, read, rank);
      int64_t size = cast<RankedTensorType>(read.first.getType()).getNumElements();
      if (loop >= 0 && extents[loop] >= shortest && size >= volume / 8 &&
          analysis.getStride(read.first, read.second, inner) > 1)
        elementsAlong[loop] += size;
    }
  auto most = llvm::max_element(elementsAlong);
  if (*most == 0)
    return false;
  reads = most - elementsAlong.begin();
  writes = inner;
  for (Value value : kernel.getYield().getValues())
    stage(value, analysis.getResultIndex());
  if (staged.empty()) {
    reads = writes = -1;
    return false;
  }
  llvm::erase(itemLoops, static_cast<unsigned>(reads));
  itemLoops.insert(itemLoops.end() - 1, reads);
  team = device.blockThreads;
  return true;
}

void BlockEmitter::stage(Value value, ArrayRef<Coordinate> index) {
  constexpr size_t maxStaged = 4;
  bool wantsReads = false, wantsWrites = false;
  for (const KernelAnalysis::Read &read : analysis.getReads(value, index)) {
    int loop = getReadLoop(analysis, read, rank);
    wantsReads |= loop == reads && analysis.getStride(read.first, read.second, writes) > 1;
    wantsWrites |= loop == writes;
  }
  if (!wantsReads || staged.size() == maxStaged)
    return;
  if (wantsWrites) {
    // Some of it is read in order already: the others go through tiles of their own.
    auto op = value.getDefiningOp<DefinitionOpInterface>();
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
      if (isReadForEachElement(op, operand))
        stage(op->getOperand(operand), analysis.getIndexOfOperand(op, operand, index));
    return;
  }
  auto type = cast<RankedTensorType>(value.getType());
  Staged entry{value, {}, ElementBuilder::scalarType(type.getElementType())};
  for (auto [extent, coordinate] : llvm::zip_equal(type.getShape(), index)) {
    bool isLoop = coordinate.unit >= 0 && coordinate.unit < static_cast<int>(rank) && !coordinate.shifted;
    if (extent != 1 && !isLoop)
      return;
    entry.loops.push_back(extent == 1 ? -1 : coordinate.unit);
  }
  if (llvm::none_of(staged, [&](const Staged &other) { return other.value == value && other.loops == entry.loops; }))
    staged.push_back(std::move(entry));
}

//===----------------------------------------------------------------------===//
// Function
//===----------------------------------------------------------------------===//

Value BlockEmitter::emitTileCoordinate(unsigned loop, Value first, Value offset, int64_t size) {
  Value coordinate = elements.addI(first, offset);
  if (isStatic(loop) && extents[loop] % size == 0)
    return coordinate;
  // Threads beyond the border do what those at the border do, and do not store it.
  Value isInside = elements.compareI(arith::CmpIPredicate::slt, coordinate, ranges[loop].hi);
  isItem = isItem ? elements.andB(isItem, isInside) : isInside;
  return elements.minI(coordinate, elements.addI(ranges[loop].hi, -1));
}

void BlockEmitter::emitTile() {
  const int64_t rows = device.blockThreads / tileSize;
  Value firstRead = index[reads], firstWrite = index[writes];
  Value row = elements.create<arith::DivUIOp>(thread, elements.index(tileSize));
  Value inRow = elements.create<arith::RemUIOp>(thread, elements.index(tileSize));
  // `body` gets the other coordinate, in the loop that goes on from row to row.
  auto forRows = [&](function_ref<void(Value)> body) {
    elements.forLoop(elements.index(0), elements.index(tileSize / rows), {},
                     [&](Value step, ValueRange) -> SmallVector<Value> {
                       isItem = {};
                       body(elements.addI(row, elements.mulI(step, rows)));
                       return {};
                     });
  };
  auto getPosition = [&](Value alongReads, Value alongWrites) {
    return elements.addI(elements.mulI(alongWrites, tilePitch), alongReads);
  };
  stagedPosition = {};
  forRows([&](Value across) {
    index[reads] = emitTileCoordinate(reads, firstRead, inRow, tileSize);
    index[writes] = emitTileCoordinate(writes, firstWrite, across, tileSize);
    int64_t bytes = 0;
    for (Staged &each : staged) {
      SmallVector<Value> at =
          llvm::map_to_vector(each.loops, [&](int loop) { return loop < 0 ? elements.index(0) : index[loop]; });
      Value value = emitValue(each.value, at);
      int64_t width = getByteWidth(each.type);
      each.offset = llvm::divideCeil(bytes, width);
      storeShared(value, elements.addI(getPosition(inRow, across), each.offset), each.offset + tileSize * tilePitch);
      bytes = (each.offset + tileSize * tilePitch) * width;
    }
  });
  gpu::BarrierOp::create(builder, kernel.getLoc());
  forRows([&](Value across) {
    index[reads] = emitTileCoordinate(reads, firstRead, across, tileSize);
    index[writes] = emitTileCoordinate(writes, firstWrite, inRow, tileSize);
    stagedPosition = getPosition(across, inRow);
    emitStores();
  });
  // The next tile goes to the same place.
  gpu::BarrierOp::create(builder, kernel.getLoc());
}

Value BlockEmitter::readStaged(Value value, ArrayRef<Value> at) {
  if (!stagedPosition)
    return {};
  auto entry = llvm::find_if(staged, [&](const Staged &each) {
    return each.value == value && llvm::all_of(llvm::zip_equal(each.loops, at), [&](auto pair) {
             auto [loop, coordinate] = pair;
             return loop < 0 || getNumber(coordinate) == getNumber(index[loop]);
           });
  });
  if (entry == staged.end())
    return {};
  return loadShared(entry->type, elements.addI(stagedPosition, entry->offset));
}
