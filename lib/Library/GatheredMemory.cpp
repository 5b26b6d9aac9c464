//===- GatheredMemory.cpp - Memory of own convolutions --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bounds what convolutions by the runtime's own kernels take for packed weights and scratch memory.
//
//===----------------------------------------------------------------------===//

#include "GatheredMemory.h"

#include "dovetail/Calls/Gathered.h"
#include "dovetail/Calls/Scattered.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;
using layout::Box;

/// Elements of vectors of the instruction sets that there are kernels for: the machine decides.
static constexpr int64_t kVectors[] = {4, 8, 16};
/// What is allocated is a multiple of that.
static constexpr int64_t kAlignment = 64;

namespace {
/// The convolution of some groups, or of some channels of one, and the channels that a group has in all.
struct Part {
  int64_t groups, inputs, outputs, wholeInputs, wholeOutputs, results;
};
} // namespace

/// How many taps the results of a phase may have: those of all windows that there are for each dimension.
static SmallVector<int64_t> getTapCounts(const calls::ConvolutionForm &form) {
  SmallVector<int64_t> counts = {1};
  for (const layout::Window &window : form.windows) {
    int64_t step = calls::gatheredTapStep(window);
    SmallVector<int64_t> own = {window.kernel / step, static_cast<int64_t>(llvm::divideCeil(window.kernel, step))};
    // Where the stride and the dilation have a divisor, some results have no taps.
    if (step < window.stride && window.isTransposed)
      own.push_back(0);
    SmallVector<int64_t> all;
    for (int64_t taps : counts)
      for (int64_t each : own)
        all.push_back(taps * each);
    counts = std::move(all);
  }
  llvm::sort(counts);
  counts.erase(llvm::unique(counts), counts.end());
  return counts;
}

/// Of one part, on a machine with such vectors, if blocks have at most `mostRows` results.
static CallBytes getMemory(const calls::ConvolutionForm &form, const Part &part, int64_t vector, int64_t mostRows) {
  CallBytes bytes;
  int64_t perTap = 0;
  for (int64_t taps : getTapCounts(form)) {
    int64_t perVector = calls::gatheredGroups(part.groups, part.inputs, part.outputs, part.wholeInputs,
                                              part.wholeOutputs, taps, vector);
    int64_t vectors = calls::gatheredVectors(part.groups, part.outputs, perVector, vector);
    perTap = std::max(perTap, vectors * vector * part.inputs);
    calls::GatheredBlock block = calls::gatheredBlock(part.inputs, part.outputs, taps, part.results);
    block.rows = std::min(block.rows, mostRows);
    bytes.threadScratch =
        std::max(bytes.threadScratch, calls::gatheredScratchBytes(block, part.inputs, part.outputs, taps, perVector));
  }
  bytes.packed = llvm::alignTo(4 * perTap * form.numTaps(), kAlignment);
  bytes.threadScratch = llvm::alignTo(bytes.threadScratch, kAlignment);
  return bytes;
}

/// The same of one that multiplies each input with the weights of all taps, if `isLeast` a line of results at a time.
static CallBytes getScatteredMemory(const calls::ConvolutionForm &form, const Box &loops, bool isLeast) {
  constexpr int64_t mostColumns = 2 * kVectors[std::size(kVectors) - 1];
  int numDims = static_cast<int>(form.windows.size());
  int64_t outputs = loops[1].size(), inputs = std::max<int64_t>(loops[numDims + 2].size(), 1);
  CallBytes bytes;
  bytes.packed = llvm::alignTo(4 * form.numTaps() * outputs * inputs, kAlignment);
  // The layout decides which dimension is outermost.
  for (int outermost = 0; outermost < numDims; ++outermost) {
    int64_t size = outputs;
    for (int dim = 0; dim < numDims; ++dim)
      if (dim != outermost)
        size *= calls::scatteredExtent(loops[dim + 2].size(), form.windows[dim].stride);
    const layout::Window &window = form.windows[outermost];
    int64_t lines = isLeast ? 1 : calls::scatteredLines(loops[outermost + 2].size(), size, window.reach());
    int64_t scratch = calls::scatteredScratchBytes(form.numTaps(), inputs, mostColumns,
                                                   calls::scatteredExtent(lines, window.stride), size);
    bytes.threadScratch = std::max<int64_t>(bytes.threadScratch, llvm::alignTo(scratch, kAlignment));
  }
  return bytes;
}

static CallBytes getMemory(const CallShape &call, const Box &loops, bool packsOnce, int64_t leastVector,
                           int64_t mostRows) {
  int rank = static_cast<int>(call.result.getRank());
  const calls::ConvolutionForm &form = *call.as<calls::ConvolutionForm>();
  int64_t outputs = call.result.getDimSize(1) / form.groups;
  layout::Interval channels = loops[1], sum = loops[rank];
  int64_t groups = llvm::divideCeil(channels.hi, outputs) - channels.lo / outputs, results = 1;
  for (int dim = 0; dim < rank; ++dim)
    results *= dim == 1 ? 1 : loops[dim].size();
  // Whole groups are done together, others each alone.
  int64_t inputs = call.loops[rank];
  bool isWhole = channels.lo % outputs == 0 && channels.hi % outputs == 0 && sum.size() == inputs;
  Part part{isWhole ? groups : 1, std::max<int64_t>(sum.size(), 1), outputs, inputs, outputs, results};
  // The first and the last group may be cut. Fewer channels may take more memory for each thread.
  SmallVector<std::pair<int64_t, int64_t>> outputsOfParts;
  if (isWhole) {
    outputsOfParts.push_back({outputs, 1});
  } else {
    int64_t first = channels.lo / outputs;
    auto sizeOf = [&](int64_t group) { return channels.intersect({group * outputs, (group + 1) * outputs}).size(); };
    outputsOfParts.push_back({sizeOf(first), 1});
    if (groups > 1)
      outputsOfParts.push_back({sizeOf(first + groups - 1), 1});
    if (groups > 2)
      outputsOfParts.push_back({outputs, groups - 2});
  }
  CallBytes bytes;
  bool isScattered = calls::isScattered(form, inputs, outputs);
  if (isScattered)
    bytes = getScatteredMemory(form, loops, /*isLeast=*/mostRows == 1);
  for (int64_t vector : isScattered ? ArrayRef<int64_t>() : ArrayRef<int64_t>(kVectors)) {
    if (vector < leastVector)
      continue;
    int64_t packed = 0;
    for (auto [own, count] : outputsOfParts) {
      part.outputs = own;
      CallBytes needed = getMemory(form, part, vector, mostRows);
      packed += count * needed.packed;
      bytes.threadScratch = std::max(bytes.threadScratch, needed.threadScratch);
    }
    bytes.packed = std::max(bytes.packed, packed);
  }
  // Parts follow each other in the same scratch memory.
  if (!packsOnce)
    bytes.scratch = std::exchange(bytes.packed, 0);
  return bytes;
}

CallBytes dovetail::getGatheredMemory(const CallShape &call, const Box &loops, bool packsOnce, int64_t leastVector) {
  return getMemory(call, loops, packsOnce, leastVector, calls::gatheredRows);
}

CallBytes dovetail::getLeastGatheredMemory(const CallShape &call, const Box &loops, bool packsOnce,
                                           int64_t leastVector) {
  return getMemory(call, loops, packsOnce, leastVector, /*mostRows=*/1);
}

int64_t dovetail::getLeastVector(ArrayRef<std::string> features) {
  auto has = [&](StringRef feature) { return llvm::is_contained(features, feature); };
  if (has("avx512f") && has("avx512vl"))
    return 16;
  return has("avx2") && has("fma") ? 8 : 4;
}
