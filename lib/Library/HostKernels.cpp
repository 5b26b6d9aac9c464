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

using namespace mlir;
using namespace dovetail;

namespace {
class HostKernels : public Library {
public:
  explicit HostKernels(ArrayRef<std::string> features) : leastVector(getLeastVector(features)) {}

  StringRef getName() const override { return "kernels"; }
  bool hasEpilogue(const CallShape &, const PostOp &) const override { return false; }
  FormatPreference getFormatPreference(const CallShape &) const override { return FormatPreference::RowMajor; }
  bool readsFormat(const CallShape &, unsigned, plan::FormatAttr, plan::FormatAttr) const override { return true; }
  /// Queries of a head and a row, at a time.
  bool writesOver(const CallShape &call, unsigned number) const override {
    std::vector<calls::AccessDims> accesses;
    for (const plan::AccessDims &read : call.reads)
      accesses.emplace_back(read.get());
    return number == 0 && calls::mayWriteOverQueries(accesses, call.loops);
  }
  std::optional<CallBytes> getMemoryBound(plan::CallOpInterface call, const layout::Box &loops,
                                          bool packsOnce) const override {
    if (const calls::AlgorithmEntry *algorithm = calls::findAlgorithm(plan::toCalls(call.getAlgorithm())))
      return algorithm->getMemory ? getMemory(*algorithm, loops, packsOnce)
                                  : getGatheredMemory(CallShape::get(call), loops, packsOnce, leastVector);
    std::optional<CallForm> form = call.getCallForm();
    if (!std::holds_alternative<AttentionCall>(*form))
      return std::nullopt;
    int column = loops.rank() - 3;
    const AttentionCall &attention = std::get<AttentionCall>(*form);
    return CallBytes{
        0, 0,
        4 * calls::attentionScratch(loops[column + 2].size(),
                                    std::min(attention.columns, attention.getValueColumns(loops[column].size())))};
  }

protected:
  /// Of parts of the keys, a call has one.
  bool hasCall(const CallShape &call) const override {
    const auto *attention = call.as<AttentionCall>();
    if (!attention || !attention->isOfParts)
      return attention != nullptr;
    int64_t parts = call.loops.front();
    return !call.splits.empty() && call.splits.front().coversOnce(parts) &&
           call.splits.front().getLargestSize(parts) == 1;
  }
  FloatType getComputeType(const CallShape &, FloatType type) const override {
    return type.isF32() ? type : FloatType();
  }

private:
  static CallBytes getMemory(const calls::AlgorithmEntry &algorithm, const layout::Box &loops, bool packsOnce) {
    calls::AlgorithmMemory memory = algorithm.getMemory(loops.shape());
    return {packsOnce ? memory.weights : 0, packsOnce ? 0 : memory.weights, memory.thread};
  }

  int64_t leastVector;
};
} // namespace

std::unique_ptr<Library> dovetail::createHostKernels(ArrayRef<std::string> features) {
  return std::make_unique<HostKernels>(features);
}
