//===- HostKernels.cpp - What the runtime's own kernels do ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Describes the kernels that the runtime brings along for CPUs, in as far as nobody else does what they do.
//
//===----------------------------------------------------------------------===//

#include "Factories.h"
#include "GatheredMemory.h"

#include "dovetail/Calls/Attention.h"
#include "dovetail/Calls/AttentionForm.h"
#include "dovetail/Dialect/Dovetail/Ops/AttentionOps.h"
#include "dovetail/Dialect/Plan/IR/AttentionCall.h"

using namespace mlir;
using namespace dovetail;

namespace {
class HostKernels : public Library {
public:
  explicit HostKernels(ArrayRef<std::string> features) : leastVector(getLeastVector(features)) {}

  StringRef getName() const override { return "kernels"; }
  bool hasEpilogue(Operation *, const PostOp &) const override { return false; }
  FormatPreference getFormatPreference(Operation *) const override { return FormatPreference::RowMajor; }
  bool readsFormat(Operation *, unsigned, plan::FormatAttr, plan::FormatAttr) const override { return true; }
  /// Queries of a head and a row, at a time.
  bool writesOver(Operation *op, unsigned number) const override {
    if (number != 0)
      return false;
    Definition definition = cast<AttentionOp>(op).getDefinition();
    std::vector<calls::AccessDims> accesses;
    for (const Access &read : definition.reads)
      accesses.emplace_back(read.dims);
    return calls::mayWriteOverQueries(accesses, getExtents(definition.loops));
  }
  std::optional<CallBytes> getMemoryBound(Operation *call, const layout::Box &loops, bool packsOnce) const override {
    auto convolution = dyn_cast<plan::ConvolutionOp>(call);
    if (convolution && convolution.getAlgorithm() == plan::ConvolutionAlgorithm::Gathered)
      return getGatheredMemory(convolution, loops, packsOnce, leastVector);
    auto attention = dyn_cast<plan::AttentionOp>(call);
    if (!attention)
      return std::nullopt;
    int column = loops.rank() - 3;
    return CallBytes{0, 0,
                     4 * calls::attentionScratch(loops[column + 2].size(),
                                                 std::min(plan::getHeadColumns(attention),
                                                          plan::getValueColumns(attention, loops[column].size())))};
  }

protected:
  /// Of parts of the keys, a call has one.
  bool hasOperation(Operation *op) const override {
    auto attention = dyn_cast<AttentionOp>(op);
    if (!attention || !attention.getRestarts())
      return attention != nullptr;
    auto loops = op->getAttrOfType<LoopShardingsAttr>(kLoopsAttrName);
    int64_t parts = attention.getType().getDimSize(0);
    return loops && loops.getLoops().front().coversOnce(parts) && loops.getLoops().front().getLargestSize(parts) == 1;
  }
  FloatType getComputeType(Operation *, FloatType type) const override { return type.isF32() ? type : FloatType(); }

private:
  int64_t leastVector;
};
} // namespace

std::unique_ptr<Library> dovetail::createHostKernels(ArrayRef<std::string> features) {
  return std::make_unique<HostKernels>(features);
}
