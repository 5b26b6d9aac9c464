//===- GatheredConvolution.cpp - Convolution of any form ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GatheredConvolution.h"

#include "dovetail/Calls/Gathered.h"
#include "dovetail/Layout/Arith.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Interval;
using layout::Window;

static_assert(GatheredTask::mostRows == calls::gatheredRows, "kernels have room for the places of so many rows");

/// Sets what a window along one dimension reads for results `out` of an input of which there is `in`.
static void setWindow(const Window &window, Interval out, Interval in, GatheredTask::Dim &dim) {
  dim.results = out.size();
  dim.extent = in.size();
  dim.first = out.lo * window.stride - window.pad - in.lo;
  dim.step = window.stride;
  dim.taps = window.kernel;
  dim.tapStep = window.dilation;
}

/// The same of a transposed one, for those results whose position before padding is cut off has `remainder` when it is
/// divided by the stride. Returns the first one, and the tap of the kernel that comes first.
static std::pair<int64_t, int64_t> setTransposedWindow(const Window &window, Interval out, Interval in,
                                                       int64_t remainder, GatheredTask::Dim &dim) {
  int64_t step = calls::gatheredTapStep(window), tap = 0;
  while (tap < step && tap * window.dilation % window.stride != remainder)
    ++tap;
  dim.taps = tap < step && tap < window.kernel ? (window.kernel - 1 - tap) / step + 1 : 0;
  // Taps go backwards, so that what they read goes forwards.
  int64_t last = tap + std::max<int64_t>(dim.taps - 1, 0) * step;
  int64_t behind = out.lo + window.pad - remainder;
  int64_t first = out.lo + layout::floorDiv(behind + window.stride - 1, window.stride) * window.stride - behind;
  dim.results = first < out.hi ? (out.hi - 1 - first) / window.stride + 1 : 0;
  dim.extent = in.size();
  dim.step = 1;
  dim.tapStep = step * window.dilation / window.stride;
  dim.first = layout::floorDiv(first + window.pad - last * window.dilation, window.stride) - in.lo;
  return {first, last};
}

/// Whether many results have taps that read padding alone: leaving these out pays for smaller blocks.
static bool readsMuchPadding(const calls::ConvolutionForm &form, const std::vector<int64_t> &shape) {
  constexpr int64_t part = 4;
  for (size_t dim = 0; dim < form.windows.size(); ++dim)
    if (part * (form.windows[dim].reach() - 1) >= shape[dim + 2] * (form.isTransposed ? form.windows[dim].stride : 1))
      return true;
  return false;
}

GatheredConvolution::GatheredConvolution(Operands given, const calls::ConvolutionForm &form, int64_t groups,
                                         const std::vector<int64_t> &wholeShape, int64_t wholeInputs,
                                         int64_t wholeOutputs, ThreadPool *threads)
    : KernelConvolution(std::move(given), threads), groups(groups), inputs(operands.input.box[1].size() / groups),
      outputs(operands.output.box[1].size() / groups), wholeInputs(wholeInputs), wholeOutputs(wholeOutputs),
      skipsTaps(readsMuchPadding(form, wholeShape)) {
  std::vector<int64_t> remainders(operands.spatial.size(), 0);
  for (;;) {
    addPhase(form, remainders);
    size_t dim = remainders.size();
    while (dim > 0 &&
           (!form.isTransposed || ++remainders[dim - 1] == form.windows[operands.spatial[dim - 1] - 2].stride))
      remainders[--dim] = 0;
    if (dim == 0)
      break;
  }
  format = absl::StrCat("gathered in vectors of ", kernels.vector, ", ", groups, " groups");
  for (int dim : operands.spatial) {
    const Window &window = form.windows[dim - 2];
    absl::StrAppend(&format, ", along ", dim);
    if (form.isTransposed)
      absl::StrAppend(&format, " by ", window.stride, " and ", window.dilation);
  }
}

void GatheredConvolution::addPhase(const calls::ConvolutionForm &form, const std::vector<int64_t> &remainders) {
  const MemoryView &input = operands.input, &output = operands.output, &from = operands.weights;
  Phase phase;
  GatheredTask &task = phase.task;
  GatheredWeights &weights = phase.weights;
  int unused = GatheredTask::numDims - static_cast<int>(operands.spatial.size());
  for (size_t i = 0; i < operands.spatial.size(); ++i) {
    int dim = operands.spatial[i];
    const Window &window = form.windows[dim - 2];
    GatheredTask::Dim &own = task.dims[unused + static_cast<int>(i)];
    own.inputStride = input.strides[dim];
    own.outputStride = output.strides[dim];
    int64_t tapStride = from.strides[dim];
    if (form.isTransposed) {
      auto [first, tap] = setTransposedWindow(window, output.box[dim], input.box[dim], remainders[i], own);
      phase.outputOffset += (first - output.box[dim].lo) * own.outputStride;
      own.outputStride *= window.stride;
      phase.weightsOffset += tap * tapStride;
      tapStride *= -calls::gatheredTapStep(window);
    } else {
      setWindow(window, output.box[dim], input.box[dim], own);
    }
    weights.dims[unused + static_cast<int>(i)] = {own.taps, tapStride};
  }
  task.inputImage = input.strides[0];
  task.outputImage = output.strides[0];
  task.images = output.box[0].size();
  task.groups = weights.groups = groups;
  task.inputs = weights.inputs = inputs;
  task.outputs = weights.outputs = outputs;
  int inputDim = form.isTransposed ? 0 : 1;
  weights.inputStride = from.strides[inputDim];
  weights.outputStride = from.strides[1 - inputDim];
  weights.groupStride = (form.isTransposed ? inputs : outputs) * from.strides[0];
  int64_t taps = task.numTaps();
  calls::GatheredBlock block = calls::gatheredBlock(inputs, outputs, taps, task.numRows());
  task.blockRows = block.rows;
  task.blockTaps = block.taps;
  task.blockChannels = block.channels;
  task.groupsOfVector = weights.groupsOfVector =
      calls::gatheredGroups(groups, inputs, outputs, wholeInputs, wholeOutputs, taps, kernels.vector);
  task.skipsTaps = skipsTaps;
  findPlainRows(task);
  int64_t vectors = calls::gatheredVectors(groups, outputs, task.groupsOfVector, kernels.vector);
  phase.packedOffset = packedElements;
  phase.packedElements = vectors * kernels.vector * taps * inputs;
  packedElements += phase.packedElements;
  phase.units = task.groupsOfVector > 0 ? vectors : groups * kernels.panelsOf(outputs);
  phases.push_back(phase);
}

/// Rows of a window of one tap lie as far apart as its elements do, if those of all results are equally far apart.
void GatheredConvolution::findPlainRows(GatheredTask &task) {
  bool isPlain = task.numTaps() == 1;
  int64_t row = -1, reach = 0;
  auto add = [&](int64_t results, int64_t stride) {
    if (results == 1)
      return;
    isPlain &= row < 0 || stride == reach;
    row = row < 0 ? stride : row;
    reach = stride * results;
  };
  for (int dim = GatheredTask::numDims; dim-- > 0;) {
    const GatheredTask::Dim &own = task.dims[dim];
    isPlain &= own.first == 0 && (own.results - 1) * own.step < own.extent;
    add(own.results, own.step * own.inputStride);
  }
  add(task.images, task.inputImage);
  task.plainRow = isPlain ? std::max<int64_t>(row, 0) : -1;
}

std::string GatheredConvolution::packedFormat() const { return format; }

int64_t GatheredConvolution::weightBytes() const { return alignedSize(4 * packedElements); }

int64_t GatheredConvolution::scratchOf(const GatheredTask &task) const {
  return calls::gatheredScratchBytes({task.blockRows, task.blockTaps, task.blockChannels}, inputs, outputs,
                                     task.numTaps(), task.groupsOfVector);
}

int64_t GatheredConvolution::threadBytes() const {
  int64_t most = 0;
  for (const Phase &phase : phases)
    most = std::max(most, scratchOf(phase.task));
  return alignedSize(most);
}

void GatheredConvolution::limitScratch(int64_t bytes) {
  bytes -= operands.packOnce ? 0 : weightBytes();
  for (Phase &phase : phases)
    while (phase.task.blockRows > 1 && alignedSize(scratchOf(phase.task)) * numThreads() > bytes)
      phase.task.blockRows = phase.task.blockRows / 2;
}

void GatheredConvolution::setAddresses(const float *input, float *output, const float *from, float *packedWeights,
                                       const Epilogue &epilogue) {
  packed = packedWeights;
  for (Phase &phase : phases) {
    phase.task.input = input;
    phase.task.output = output + phase.outputOffset;
    phase.task.weights = packedWeights + phase.packedOffset;
    phase.task.epilogue = epilogue;
    if (epilogue.addend)
      phase.task.epilogue.addend += phase.outputOffset;
    phase.weights.data = from + phase.weightsOffset;
  }
}

void GatheredConvolution::packPart(int64_t part, int64_t parts) {
  for (const Phase &phase : phases) {
    int64_t count = phase.task.groupsOfVector > 0 ? phase.units : groups;
    kernels.packGathered(phase.weights, packed + phase.packedOffset, count * part / parts, count * (part + 1) / parts);
  }
}

/// Elements that stay in a cache near the core.
static constexpr int64_t cachedElements = 64 << 10;

void GatheredConvolution::runPart(int64_t part, int64_t parts, std::byte *scratch) {
  auto *values = reinterpret_cast<float *>(scratch);
  for (const Phase &phase : phases) {
    const GatheredTask &task = phase.task;
    int64_t begin = 0, end = task.numRows(), first = 0, last = phase.units;
    bool dividesRows = end >= 2 * calls::gatheredRowStep * parts || phase.units < parts;
    int64_t &low = dividesRows ? begin : first, &high = dividesRows ? end : last, count = high;
    low = count * part / parts;
    high = count * (part + 1) / parts;
    if (begin == end || first == last)
      continue;
    if (task.groupsOfVector > 0) {
      kernels.runGathered(task, begin, end, 0, first, last, values);
      continue;
    }
    // Groups that lie beside each other take turns, while their rows are in a cache.
    int64_t blocks = std::max<int64_t>(cachedElements / (groups * (inputs + outputs)) / task.blockRows, 1);
    int64_t rows = groups > 1 ? blocks * task.blockRows : end - begin;
    for (; begin < end; begin += rows)
      for (int64_t unit = first, panels = kernels.panelsOf(outputs); unit < last;) {
        int64_t group = unit / panels, to = std::min(last, (group + 1) * panels);
        kernels.runGathered(task, begin, std::min(begin + rows, end), group, unit - group * panels, to - group * panels,
                            values);
        unit = to;
      }
  }
}
