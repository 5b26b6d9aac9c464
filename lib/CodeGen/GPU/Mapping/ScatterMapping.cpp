//===- ScatterMapping.cpp - A thread for each part of a result ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how operations that write where data say are divided among threads, where there are few lines.
//
//===----------------------------------------------------------------------===//

#include "Mappings.h"

using namespace mlir;
using namespace dovetail;

namespace {
class ScatterMapping : public BlockMapping {
public:
  using BlockMapping::BlockMapping;

  bool take() override;

private:
  void emitTile(Value tile) override;
};
} // namespace

bool ScatterMapping::take() {
  // Enough threads to keep a large device busy. Each goes through all updates of its lines.
  const int64_t enoughThreads = 64 * device.busyBlocks;
  Operation *op = analysis.getLineOp();
  if (!op || !getDefinition(op).writes)
    return false;
  int64_t lines = multiplyExtents(analysis.getLoopOrder(), extents);
  if (lines >= enoughThreads)
    return false;
  // Neighbouring threads have neighbours in memory.
  int64_t parts = enoughThreads / lines;
  for (int64_t loop : llvm::reverse(kernel.getResultLayout(0).getOrder())) {
    int64_t step = 1;
    if (getDefinition(op).isLine(loop)) {
      int64_t extent = std::max<int64_t>(extents[loop], 1);
      step = llvm::divideCeil(extent, parts);
      parts = std::max<int64_t>(parts / llvm::divideCeil(extent, step), 1);
    }
    tileLoops.insert(tileLoops.begin(), loop);
    tileSteps.insert(tileSteps.begin(), step);
  }
  return true;
}

void ScatterMapping::emitTile(Value tile) {
  setIndex(tile);
  // A thread is to a rank what a rank is to all: it writes what lies in its range, whatever the updates are.
  Operation *op = analysis.getLineOp();
  for (auto [loop, step] : llvm::zip_equal(tileLoops, tileSteps))
    if (getDefinition(op).isLine(loop)) {
      Value end = elements.addI(index[loop], step);
      ranges[loop] = {index[loop], step == 1 ? end : elements.minI(end, ranges[loop].hi)};
    }
  emitLine(op);
}

std::unique_ptr<BlockMapping> dovetail::createScatterMapping(const BlockKernel &kernel) {
  return std::make_unique<ScatterMapping>(kernel);
}
