//===- GroupMapping.cpp - Tiles that groups of threads compute ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how kernels with values that elements share are divided among groups of threads.
//
//===----------------------------------------------------------------------===//

#include "GroupMapping.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// Mapping
//===----------------------------------------------------------------------===//

plan::PartsOp GroupMapping::findParts() {
  for (Value value : kernel.getYield().getValues())
    if (auto parts = value.getDefiningOp<plan::PartsOp>())
      return parts;
  return {};
}

bool GroupMapping::take() {
  chooseGroup();
  tileSteps.assign(tileLoops.size(), 1);
  return groupThreads > 1 || !groupLoops.empty() || findParts();
}

void GroupMapping::chooseGroup() {
  // Enough threads to keep a large device busy.
  const int64_t enoughThreads = 64 * device.busyBlocks;
  llvm::append_range(tileLoops, analysis.getLoopOrder());
  SmallVector<Operation *> outer = analysis.getOuterReductions();
  int64_t parts = 1;
  if (plan::PartsOp op = findParts()) {
    outer.push_back(op.getReduction().getDefiningOp());
    parts = op.getCount();
  }
  auto getLength = [&](Operation *op) { return multiplyExtents(analysis.getFoldOrder(op).loops, extents); };
  // What elements share is computed once for all of them.
  while (!tileLoops.empty() && analysis.countShared(tileLoops.back()) > 0)
    groupLoops.insert(groupLoops.begin(), tileLoops.pop_back_val());
  if (!groupLoops.empty()) {
    int64_t work = multiplyExtents(groupLoops, extents);
    for (Operation &op : kernel.getBlock()->without_terminator())
      if (isReduction(&op))
        work = std::max(work, getLength(&op));
    groupThreads = work < device.warpThreads        ? 1
                   : work < 4 * device.blockThreads ? device.warpThreads
                                                    : device.blockThreads;
    return;
  }
  int64_t longest = 0;
  bool byRows = true;
  for (Operation *op : outer) {
    longest = std::max(longest, getLength(op) / parts);
    byRows &= analysis.getFoldOrder(op).byRows;
  }
  int64_t tiles = multiplyExtents(tileLoops, extents);
  // Threads with an element each read memory in order where folds go by rows, and are best if there are enough.
  if (longest < 2 * device.warpThreads || tiles >= (byRows ? 1 : 8) * enoughThreads)
    return;
  bool isLong = longest >= 4 * device.blockThreads && tiles * device.warpThreads < 4 * enoughThreads;
  groupThreads = isLong ? device.blockThreads : device.warpThreads;
}

//===----------------------------------------------------------------------===//
// Function
//===----------------------------------------------------------------------===//

Value GroupMapping::placeThread(Value first) {
  if (groupThreads == device.blockThreads) {
    lane = thread;
    return first;
  }
  if (groupThreads == 1) {
    first = elements.addI(first, thread);
    lane = elements.index(0);
    return first;
  }
  Value size = elements.index(groupThreads);
  first = elements.addI(first, elements.create<arith::DivUIOp>(thread, size));
  lane = elements.create<arith::RemUIOp>(thread, size);
  return first;
}

void GroupMapping::emitTile(Value tile) {
  tileBlock = builder.getInsertionBlock();
  setIndex(tile);
  if (groupLoops.empty())
    return emitElements();
  Type type = getCounterType(groupLoops);
  SmallVector<int64_t> steps(groupLoops.size(), 1);
  Value end = castIndex(type, countIterations(groupLoops, steps));
  auto loop = scf::ForOp::create(builder, kernel.getLoc(), castIndex(type, lane), end,
                                 castIndex(type, elements.index(groupThreads)));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  delinearize(loop.getInductionVar(), groupLoops, steps,
              [&](unsigned loop, Value coordinate) { index[loop] = coordinate; });
  emitElements();
}

void GroupMapping::emitElements() {
  SmallVector<Store> stores = emitResults();
  emitStores(stores, emitStoreCondition());
}

Value GroupMapping::emitStoreCondition() {
  if (groupThreads == 1 || !groupLoops.empty())
    return {};
  // All threads take part in what they share; one of them stores it.
  return elements.compareI(arith::CmpIPredicate::eq, lane, elements.index(0));
}

std::unique_ptr<BlockMapping> dovetail::createGroupMapping(const BlockKernel &kernel) {
  return std::make_unique<GroupMapping>(kernel);
}
