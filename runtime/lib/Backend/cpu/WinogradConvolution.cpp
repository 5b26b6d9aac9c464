//===- WinogradConvolution.cpp - Convolution by Winograd ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WinogradConvolution.h"

#include "dovetail/Calls/Winograd.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;

WinogradConvolution::WinogradConvolution(Operands given, int64_t padRows, int64_t padColumns, ThreadPool *threads)
    : KernelConvolution(std::move(given), threads) {
  const MemoryView &input = operands.input, &output = operands.output, &from = operands.weights;
  int row = operands.spatial[0], column = operands.spatial[1];
  task.inputImageStride = input.strides[0];
  task.inputRowStride = input.strides[row];
  task.inputColumnStride = input.strides[column];
  task.inputRows = input.box[row].size();
  task.inputColumns = input.box[column].size();
  task.padRows = padRows;
  task.padColumns = padColumns;
  task.outputImageStride = output.strides[0];
  task.outputRowStride = output.strides[row];
  task.outputColumnStride = output.strides[column];
  task.images = output.box[0].size();
  task.outputRows = output.box[row].size();
  task.outputColumns = output.box[column].size();
  task.inputs = input.box[1].size();
  task.outputs = output.box[1].size();
  task.tilesOfBlock = calls::winogradBlock(task.inputs, task.outputs, task.numTiles());
  weights = {nullptr,         task.outputs,      task.inputs,         from.strides[0],
             from.strides[1], from.strides[row], from.strides[column]};
}

std::string WinogradConvolution::packedFormat() const {
  // Tiles are transposed where columns are further apart than rows.
  return absl::StrCat("winograd of ", WinogradTask::tile, " along ", operands.spatial[0], ", ", operands.spatial[1],
                      " in panels of ", kernels.panel);
}

int64_t WinogradConvolution::weightBytes() const {
  return alignedSize(4 * kernels.winogradWeights(task.outputs, task.inputs));
}

int64_t WinogradConvolution::threadBytes() const {
  return alignedSize(4 * kernels.winogradScratch(task.inputs, task.tilesOfBlock));
}

void WinogradConvolution::setAddresses(const float *input, float *output, const float *from, float *packedWeights,
                                       const Epilogue &epilogue) {
  task.input = input;
  task.output = output;
  task.weights = packed = packedWeights;
  task.epilogue = epilogue;
  weights.data = from;
}

void WinogradConvolution::packPart(int64_t part, int64_t parts) {
  int64_t panels = kernels.panelsOf(task.outputs);
  kernels.packWinograd(weights, packed, panels * part / parts, panels * (part + 1) / parts);
}

void WinogradConvolution::runPart(int64_t part, int64_t parts, std::byte *scratch) {
  auto *values = reinterpret_cast<float *>(scratch);
  int64_t tiles = task.numTiles(), panels = kernels.panelsOf(task.outputs);
  if (tiles >= calls::winogradRows * parts || panels < parts)
    kernels.runWinograd(task, tiles * part / parts, tiles * (part + 1) / parts, 0, panels, values);
  else
    kernels.runWinograd(task, 0, tiles, panels * part / parts, panels * (part + 1) / parts, values);
}
