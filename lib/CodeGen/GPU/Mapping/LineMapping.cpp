//===- LineMapping.cpp - A thread for each line ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how operations that go through lines of the result themselves are divided among threads.
//
//===----------------------------------------------------------------------===//

#include "Mappings.h"

using namespace mlir;
using namespace dovetail;

namespace {
class LineMapping : public BlockMapping {
public:
  using BlockMapping::BlockMapping;

  bool take() override {
    llvm::append_range(tileLoops, analysis.getLoopOrder());
    Operation *op = analysis.getLineOp();
    if (!op)
      return false;
    // Lines of a row program may have parts that do not depend on each other, such as rows of a batch.
    const Definition &definition = getDefinition(op);
    for (unsigned loop : definition.lines)
      if (!definition.writes && definition.loops[loop].kind == LoopKind::Parallel)
        tileLoops.push_back(loop);
    tileSteps.assign(tileLoops.size(), 1);
    return true;
  }

private:
  void emitTile(Value tile) override {
    setIndex(tile);
    for (unsigned loop : tileLoops)
      if (getDefinition(analysis.getLineOp()).isLine(loop))
        ranges[loop] = {index[loop], elements.addI(index[loop], 1)};
    emitLine(analysis.getLineOp());
  }
};
} // namespace

std::unique_ptr<BlockMapping> dovetail::createLineMapping(const BlockKernel &kernel) {
  return std::make_unique<LineMapping>(kernel);
}
