//===- Scattered.h - Transposed convolutions, input by input ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines transposed convolutions of few output channels, for the file that includes it; see Vectors.h. Some inputs are
// multiplied with the weights of all taps, and the products added to the results that they belong to.
//
// A result is the sum of products of inputs in the order in which these lie, whatever is computed together: taps come
// last first.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_SCATTERED_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_SCATTERED_H

#include "Gathered.h"

namespace {

using dovetail::runtime::ScatteredTask;

/// to[i] += from[i], for i < count.
inline void addElements(float *to, const float *from, int64_t count) {
  int64_t i = 0;
  for (; i + elementsOfVector <= count; i += elementsOfVector)
    store(to + i, load(to + i) + load(from + i));
  if (i < count)
    storeFirst(to + i, loadFirst(to + i, count - i) + loadFirst(from + i, count - i), count - i);
}

/// Inputs that follow each other along the innermost dimension, and which columns of a panel they are.
struct InputRun {
  int64_t line, row, column, count, inPanel;
};

/// Sums of a task: for each output channel, line and row those of the innermost dimension that begin alike together.
struct ScatteredSums {
  explicit ScatteredSums(const ScatteredTask &task)
      : stride(task.dims[2].stride), perPhase(ceilOf(task.dims[2].results, stride)), rowSize(stride * perPhase),
        lineSize(task.dims[1].results * rowSize), outputSize(task.dims[0].results * lineSize) {}

  int64_t stride, perPhase, rowSize, lineSize, outputSize;
};

/// A tap of the window. In each dimension: the result of input 0, and the inputs whose results exist.
struct ScatteredTap {
  int64_t result[ScatteredTask::numDims], begin[ScatteredTask::numDims], end[ScatteredTask::numDims];
  int64_t place; ///< Of input 0 among the sums of a row.

  bool has(int dim, int64_t input) const { return input >= begin[dim] && input < end[dim]; }
};
static_assert(sizeof(ScatteredTap) == ScatteredTask::bytesOfTap);

ScatteredTap findTap(const ScatteredTask &task, const ScatteredSums &sizes, int64_t number) {
  ScatteredTap tap;
  for (int i = ScatteredTask::numDims; i-- > 0;) {
    const auto &dim = task.dims[i];
    tap.result[i] = number % dim.taps * dim.dilation - dim.first;
    tap.begin[i] = atLeast(ceilOf(-tap.result[i], dim.stride), 0);
    tap.end[i] = atMost(ceilOf(dim.results - tap.result[i], dim.stride), dim.extent);
    number /= dim.taps;
  }
  int64_t result = tap.result[2], group = result >= 0 ? result / sizes.stride : -ceilOf(-result, sizes.stride);
  tap.place = (result - group * sizes.stride) * sizes.perPhase + group;
  return tap;
}

/// Adds rows [first, last) of products, counted as those of the weights, to the results that they belong to.
void scatterProducts(const ScatteredTask &task, const ScatteredSums &sizes, const ScatteredTap *taps, int64_t first,
                     int64_t last, const float *products, const InputRun *runs, int64_t numRuns, float *sums) {
  int64_t number = first / task.outputs, output = first % task.outputs;
  for (int64_t row = first; row < last; ++number, output = 0) {
    // All output channels of a tap.
    const ScatteredTap &tap = taps[number];
    int64_t count = atMost(task.outputs - output, last - row);
    for (const InputRun *run = runs; run < runs + numRuns; ++run) {
      int64_t low = atLeast(tap.begin[2], run->column), high = atMost(tap.end[2], run->column + run->count);
      if (low >= high || !tap.has(0, run->line) || !tap.has(1, run->row))
        continue;
      float *to = sums + output * sizes.outputSize +
                  (tap.result[0] + run->line * task.dims[0].stride) * sizes.lineSize +
                  (tap.result[1] + run->row * task.dims[1].stride) * sizes.rowSize + tap.place + low;
      const float *from = products + (row - first) * elementsOfPanel + run->inPanel + low - run->column;
      for (int64_t i = 0; i < count; ++i)
        addElements(to + i * sizes.outputSize, from + i * elementsOfPanel, high - low);
    }
    row += count;
  }
}

/// Stores all results of a task of one image.
void finishScattered(const ScatteredTask &task, const ScatteredSums &sizes, const float *sums) {
  const auto &lines = task.dims[0], &rows = task.dims[1], &columns = task.dims[2];
  for (int64_t line = 0; line < lines.results; ++line)
    for (int64_t row = 0; row < rows.results; ++row)
      for (int64_t column = 0; column < columns.results; ++column) {
        const float *from = sums + line * sizes.lineSize + row * sizes.rowSize +
                            column % sizes.stride * sizes.perPhase + column / sizes.stride;
        int64_t at = line * lines.outputStride + row * rows.outputStride + column * columns.outputStride;
        for (int64_t first = 0; first < task.outputs; first += elementsOfVector) {
          int64_t count = atMost(task.outputs - first, elementsOfVector);
          Vector x{};
          for (int64_t i = 0; i < count; ++i)
            x[i] = from[(first + i) * sizes.outputSize];
          if (task.epilogue.bias)
            x += loadFirst(task.epilogue.bias + first, count);
          const float *addend = task.epilogue.addend ? task.epilogue.addend + at + first : nullptr;
          storeFirst(task.output + at + first, finish(task.epilogue, x, addend, count), count);
        }
      }
}

/// Computes all results of a task of one image.
void runScatteredImage(const ScatteredTask &task, float *scratch) {
  constexpr int64_t blockOfTerms = 1024;
  const auto &rowsOf = task.dims[1], &columns = task.dims[2];
  ScatteredSums sizes(task);
  auto *taps = reinterpret_cast<ScatteredTap *>(scratch);
  auto *inputs = reinterpret_cast<float *>(taps + task.numTaps());
  float *sums = inputs + task.inputs * elementsOfPanel;
  for (int64_t tap = 0; tap < task.numTaps(); ++tap)
    taps[tap] = findTap(task, sizes, task.numTaps() - 1 - tap);
  __builtin_memset(sums, 0, task.outputs * sizes.outputSize * sizeof(float));
  int64_t positions = task.dims[0].extent * rowsOf.extent * columns.extent, rows = task.numTaps() * task.outputs;
  int64_t parts = (rows + rowsOfProduct - 1) / rowsOfProduct;
  float products[rowsOfProduct * elementsOfPanel], others[rowsOfProduct * elementsOfPanel];
  InputRun runs[elementsOfPanel];
  for (int64_t first = 0; first < positions; first += elementsOfPanel) {
    int64_t count = atMost(positions - first, elementsOfPanel), numRuns = 0;
    __builtin_memset(inputs, 0, (count < elementsOfPanel ? task.inputs * elementsOfPanel : 0) * sizeof(float));
    for (int64_t done = 0; done < count; done += runs[numRuns++].count) {
      int64_t column = (first + done) % columns.extent, rest = (first + done) / columns.extent;
      InputRun run{rest / rowsOf.extent, rest % rowsOf.extent, column, atMost(columns.extent - column, count - done),
                   done};
      const float *from = task.input + run.line * task.dims[0].inputStride + run.row * rowsOf.inputStride +
                          column * columns.inputStride;
      for (int64_t i = 0; i < run.count; ++i, from += columns.inputStride)
        for (int64_t input = 0; input < task.inputs; ++input)
          inputs[input * elementsOfPanel + done + i] = from[input];
      runs[numRuns] = run;
    }
    for (int64_t part = 0; part < parts; ++part) {
      int64_t low = rows * part / parts, high = rows * (part + 1) / parts;
      const float *weights = task.weights + low * task.inputs;
      Multiply multiply = multiplyRows<vectorsOfPanel>(high - low);
      multiply(weights, task.inputs, inputs, atMost(task.inputs, blockOfTerms), products, elementsOfPanel, {});
      for (int64_t term = blockOfTerms; term < task.inputs; term += blockOfTerms) {
        multiply(weights + term, task.inputs, inputs + term * elementsOfPanel, atMost(task.inputs - term, blockOfTerms),
                 others, elementsOfPanel, {});
        addElements(products, others, (high - low) * elementsOfPanel);
      }
      scatterProducts(task, sizes, taps, low, high, products, runs, numRuns, sums);
    }
  }
  finishScattered(task, sizes, sums);
}

/// Computes lines [begin, end) of the results of all images.
void runScattered(const ScatteredTask &task, int64_t begin, int64_t end, float *scratch) {
  const ScatteredTask::Dim &lines = task.dims[task.lineDim];
  while (begin < end) {
    int64_t image = begin / lines.results, low = begin % lines.results;
    int64_t high = atMost(atMost(low + end - begin, lines.results), low + task.blockLines);
    // The inputs that have a tap there.
    int64_t reach = (lines.taps - 1) * lines.dilation;
    int64_t first = atLeast(ceilOf(low + lines.first - reach, lines.stride), 0);
    int64_t last = atLeast(atMost(ceilOf(high + lines.first, lines.stride), lines.extent), first);
    ScatteredTask part = task;
    ScatteredTask::Dim &own = part.dims[task.lineDim];
    own.results = high - low;
    own.extent = last - first;
    own.first += low - first * lines.stride;
    part.input += image * task.inputImage + first * lines.inputStride;
    int64_t offset = image * task.outputImage + low * lines.outputStride;
    part.output += offset;
    part.epilogue.addend += task.epilogue.addend ? offset : 0;
    runScatteredImage(part, scratch);
    begin += high - low;
  }
}

} // namespace

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_SCATTERED_H
