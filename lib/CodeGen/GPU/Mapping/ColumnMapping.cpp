//===- ColumnMapping.cpp - Groups that are columns of a block -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how kernels are divided among threads where neighbouring tiles, and not neighbouring terms, are neighbours in
// memory.
//
//===----------------------------------------------------------------------===//

#include "GroupMapping.h"

using namespace mlir;
using namespace dovetail;

namespace {
class ColumnMapping : public GroupMapping {
public:
  using GroupMapping::GroupMapping;

  bool take() override;

private:
  /// Whether memory is read in order along tiles rather than along terms.
  bool readsAlongTiles(unsigned inner);
  Value placeThread(Value first) override;
  void emitTile(Value tile) override;
  Values combineGroup(Values values, const Fold &fold) override;
  Value emitStoreCondition() override;

  int64_t columns = 1; ///< Columns of a block.
  Value column;        ///< That of the thread.
  Value isTile;        ///< Whether it has a tile.
};
} // namespace

bool ColumnMapping::take() {
  // Shorter runs do not fill the 32 bytes that memory is read by.
  constexpr int64_t shortest = 8;
  if (!GroupMapping::take() || groupThreads == 1 || tileLoops.empty())
    return false;
  // Tiles are counted along the innermost loop first, those of one iteration aside.
  auto inner = llvm::find_if(llvm::reverse(tileLoops), [&](unsigned loop) { return extents[loop] > 1; });
  if (inner == tileLoops.rend() || extents[*inner] < shortest || !readsAlongTiles(*inner))
    return false;
  int64_t tiles = multiplyExtents(tileLoops, extents), warp = device.warpThreads;
  columns = tiles >= warp ? warp : tiles >= warp / 2 ? warp / 2 : shortest;
  groupThreads = device.blockThreads / columns;
  return true;
}

bool ColumnMapping::readsAlongTiles(unsigned inner) {
  if (plan::PartsOp parts = findParts(); parts && parts.getDim() == inner)
    return false;
  bool isBetter = false;
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    if (!isReduction(&op) || analysis.getFoldOrder(&op).loops.empty())
      continue;
    int64_t acrossTerms = analysis.countJumps(&op, analysis.getFoldOrder(&op).loops.back());
    int64_t acrossTiles = analysis.countJumps(&op, inner);
    if (acrossTiles > acrossTerms)
      return false;
    isBetter |= acrossTiles < acrossTerms;
  }
  return isBetter;
}

Value ColumnMapping::placeThread(Value first) {
  lane = elements.create<arith::DivUIOp>(thread, elements.index(columns));
  column = elements.create<arith::RemUIOp>(thread, elements.index(columns));
  return first;
}

void ColumnMapping::emitTile(Value tile) {
  // All threads of a block go through the loop as often, as they meet in it. Those without a tile do the last one once
  // more, and do not store it.
  Type type = tile.getType();
  tile = elements.create<arith::AddIOp>(tile, castIndex(type, column));
  Value last = elements.create<arith::SubIOp>(castIndex(type, tileCount), elements.constantInt(type, 1));
  isTile = elements.compareI(arith::CmpIPredicate::sle, tile, last);
  GroupMapping::emitTile(elements.create<arith::MinSIOp>(tile, last));
}

KernelBody::Values ColumnMapping::combineGroup(Values values, const Fold &fold) {
  // The parts of neighbouring columns are neighbours: no two threads of a warp ask one bank for different words.
  Location loc = kernel.getLoc();
  storeShared(values, thread, device.blockThreads);
  gpu::BarrierOp::create(builder, loc);
  Values total = combineShared(ValueRange(values).getTypes(), column, columns, groupThreads, device.blockThreads, fold);
  // The next values go to the same place.
  gpu::BarrierOp::create(builder, loc);
  return total;
}

Value ColumnMapping::emitStoreCondition() {
  Value isFirst = GroupMapping::emitStoreCondition();
  return isFirst ? elements.andB(isFirst, isTile) : isTile;
}

std::unique_ptr<BlockMapping> dovetail::createColumnMapping(const BlockKernel &kernel) {
  return std::make_unique<ColumnMapping>(kernel);
}
