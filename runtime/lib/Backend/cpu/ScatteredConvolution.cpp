//===- ScatteredConvolution.cpp - Transposed, of few outputs --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScatteredConvolution.h"

#include "dovetail/Calls/Scattered.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;

static_assert(ScatteredTask::bytesOfTap == calls::scatteredTapBytes);

ScatteredConvolution::ScatteredConvolution(Operands given, const calls::ConvolutionForm &form, ThreadPool *threads)
    : KernelConvolution(std::move(given), threads) {
  const MemoryView &input = operands.input, &output = operands.output;
  int unused = ScatteredTask::numDims - static_cast<int>(operands.spatial.size());
  for (size_t i = 0; i < operands.spatial.size(); ++i) {
    int dim = operands.spatial[i];
    const layout::Window &window = form.windows[dim - 2];
    ScatteredTask::Dim &own = task.dims[unused + static_cast<int>(i)];
    own.results = output.box[dim].size();
    own.outputStride = output.strides[dim];
    own.extent = input.box[dim].size();
    own.inputStride = input.strides[dim];
    own.first = output.box[dim].lo + window.pad - input.box[dim].lo * window.stride;
    own.stride = window.stride;
    own.taps = window.kernel;
    own.dilation = window.dilation;
  }
  task.lineDim = unused;
  task.inputImage = input.strides[0];
  task.outputImage = output.strides[0];
  task.images = output.box[0].size();
  task.inputs = input.box[1].size();
  task.outputs = output.box[1].size();
  const ScatteredTask::Dim &lines = task.dims[task.lineDim];
  task.blockLines = calls::scatteredLines(lines.results, lineSize(), (lines.taps - 1) * lines.dilation + 1);
}

int64_t ScatteredConvolution::lineSize() const {
  int64_t size = task.outputs;
  for (int dim = task.lineDim + 1; dim < ScatteredTask::numDims; ++dim)
    size *= calls::scatteredExtent(task.dims[dim].results, task.dims[dim].stride);
  return size;
}

std::string ScatteredConvolution::packedFormat() const {
  std::string format = "scattered, along";
  for (int dim : operands.spatial)
    absl::StrAppend(&format, " ", dim);
  return format;
}

int64_t ScatteredConvolution::weightBytes() const {
  return alignedSize(4 * task.numTaps() * task.outputs * task.inputs);
}

int64_t ScatteredConvolution::threadBytes() const {
  int64_t lines = calls::scatteredExtent(task.blockLines, task.dims[task.lineDim].stride);
  return alignedSize(calls::scatteredScratchBytes(task.numTaps(), task.inputs, kernels.panel, lines, lineSize()));
}

void ScatteredConvolution::limitScratch(int64_t bytes) {
  bytes -= operands.packOnce ? 0 : weightBytes();
  while (task.blockLines > 1 && threadBytes() * numThreads() > bytes)
    task.blockLines /= 2;
}

void ScatteredConvolution::setAddresses(const float *input, float *output, const float *weights, float *packedWeights,
                                        const Epilogue &epilogue) {
  task.input = input;
  task.output = output;
  task.weights = packed = packedWeights;
  task.epilogue = epilogue;
  from = weights;
}

void ScatteredConvolution::packPart(int64_t part, int64_t parts) {
  const MemoryView &weights = operands.weights;
  int64_t taps = task.numTaps();
  float *to = packed + taps * part / parts * task.outputs * task.inputs;
  for (int64_t number = taps * part / parts, last = taps * (part + 1) / parts; number < last; ++number) {
    const float *source = from;
    int64_t tap = taps - 1 - number;
    for (size_t i = operands.spatial.size(); i-- > 0;) {
      int dim = operands.spatial[i];
      source += tap % weights.box[dim].size() * weights.strides[dim];
      tap /= weights.box[dim].size();
    }
    for (int64_t output = 0; output < task.outputs; ++output, source += weights.strides[1])
      for (int64_t input = 0; input < task.inputs; ++input)
        *to++ = source[input * weights.strides[0]];
  }
}

void ScatteredConvolution::runPart(int64_t part, int64_t parts, std::byte *scratch) {
  int64_t lines = task.images * task.dims[task.lineDim].results;
  kernels.runScattered(task, lines * part / parts, lines * (part + 1) / parts, reinterpret_cast<float *>(scratch));
}
