//===- Winograd.h - Convolutions by Winograd's algorithm -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines convolutions of 3 x 3 by Winograd's algorithm F(4 x 4, 3 x 3), for the file that includes it; see Vectors.h.
//
// Polynomials are evaluated at 0, +-5/8, +-3/2 and infinity, which rounds less than whole numbers do: errors are 1e-6
// to 5e-6 of the largest result. NaN and infinity in an input spread over the tiles that read it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_WINOGRAD_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_WINOGRAD_H

#include "Vectors.h"

namespace {

using dovetail::runtime::WinogradTask;
using dovetail::runtime::WinogradWeights;

constexpr int tileSize = WinogradTask::tile, inputSize = tileSize + 2, numTaps = WinogradTask::taps;

constexpr float point1 = 0.625f, point2 = 1.5f;
constexpr float square1 = point1 * point1, square2 = point2 * point2;
constexpr float squares = square1 + square2, product = square1 * square2;

/// Of six inputs, the values at six points, up to factors that weights have. `to` is written at every `stride`-th.
inline void transformInput(const Vector *x, Vector *to, int stride) {
  Vector even1 = x[4] - square2 * x[2], odd1 = point1 * (x[3] - square2 * x[1]);
  Vector even2 = x[4] - square1 * x[2], odd2 = point2 * (x[3] - square1 * x[1]);
  to[0] = product * x[0] - squares * x[2] + x[4];
  to[stride] = even1 + odd1;
  to[2 * stride] = even1 - odd1;
  to[3 * stride] = even2 + odd2;
  to[4 * stride] = even2 - odd2;
  to[5 * stride] = product * x[1] - squares * x[3] + x[5];
}

/// Of products at six points, four results.
inline void transformOutput(const Vector *x, Vector *to, int stride) {
  Vector sum1 = x[1] + x[2], difference1 = x[1] - x[2], sum2 = x[3] + x[4], difference2 = x[3] - x[4];
  to[0] = x[0] + sum1 + sum2;
  to[stride] = point1 * difference1 + point2 * difference2;
  to[2 * stride] = square1 * sum1 + square2 * sum2;
  to[3 * stride] = (square1 * point1) * difference1 + (square2 * point2) * difference2 + x[5];
}

/// Of three weights, their polynomial at the six points, divided by what `transformInput` multiplies with.
constexpr float factor0 = 1 / product, factor1 = 1 / (2 * square1 * (square1 - square2)),
                factor2 = 1 / (2 * square2 * (square2 - square1));
inline void transformWeights(Vector x0, Vector x1, Vector x2, Vector *to, int stride) {
  Vector even1 = factor1 * x0 + (factor1 * square1) * x2, odd1 = (factor1 * point1) * x1;
  Vector even2 = factor2 * x0 + (factor2 * square2) * x2, odd2 = (factor2 * point2) * x1;
  to[0] = factor0 * x0;
  to[stride] = even1 + odd1;
  to[2 * stride] = even1 - odd1;
  to[3 * stride] = even2 + odd2;
  to[4 * stride] = even2 - odd2;
  to[5 * stride] = x2;
}

void packWinograd(const WinogradWeights &weights, float *packed, int64_t begin, int64_t end) {
  int64_t slab = weights.inputs * elementsOfPanel;
  for (int64_t output = begin * elementsOfPanel; output < end * elementsOfPanel; output += elementsOfVector) {
    float *to = packed + output / elementsOfPanel * numTaps * slab + output % elementsOfPanel;
    for (int64_t input = 0; input < weights.inputs; ++input) {
      Vector x[3][3] = {};
      for (int64_t i = 0; i < elementsOfVector && output + i < weights.outputs; ++i) {
        const float *from = weights.data + (output + i) * weights.outputStride + input * weights.inputStride;
        for (int row = 0; row < 3; ++row)
          for (int column = 0; column < 3; ++column)
            x[row][column][i] = from[row * weights.rowStride + column * weights.columnStride];
      }
      Vector columns[inputSize * 3];
      for (int column = 0; column < 3; ++column)
        transformWeights(x[0][column], x[1][column], x[2][column], columns + column, 3);
      for (int row = 0; row < inputSize; ++row) {
        Vector values[inputSize];
        transformWeights(columns[3 * row], columns[3 * row + 1], columns[3 * row + 2], values, 1);
        for (int column = 0; column < inputSize; ++column)
          store(to + (row * inputSize + column) * slab + input * elementsOfPanel, values[column]);
      }
    }
  }
}

/// Where a tile lies.
struct TilePlace {
  TilePlace(const WinogradTask &task, int64_t tile) {
    column = tile % task.columnsOfTiles() * tileSize;
    tile /= task.columnsOfTiles();
    row = tile % task.rowsOfTiles() * tileSize;
    image = tile / task.rowsOfTiles();
  }
  int64_t image, row, column; ///< Of the first result.
};

/// Transforms inputs of a tile; value number i goes to `to` + i * slab.
void transformTile(const WinogradTask &task, const TilePlace &place, float *to, int64_t slab) {
  int64_t row = place.row - task.padRows, column = place.column - task.padColumns;
  bool isInside =
      row >= 0 && column >= 0 && row + inputSize <= task.inputRows && column + inputSize <= task.inputColumns;
  const float *corner =
      task.input + place.image * task.inputImageStride + row * task.inputRowStride + column * task.inputColumnStride;
  for (int64_t input = 0; input < task.inputs; input += elementsOfVector) {
    int64_t count = task.inputs - input;
    const float *from = corner + input;
    Vector columns[numTaps];
    if (isInside && count >= elementsOfVector) {
#pragma unroll
      for (int x = 0; x < inputSize; ++x) {
        Vector values[inputSize];
#pragma unroll
        for (int y = 0; y < inputSize; ++y)
          values[y] = load(from + y * task.inputRowStride + x * task.inputColumnStride);
        transformInput(values, columns + x, inputSize);
      }
    } else {
      for (int x = 0; x < inputSize; ++x) {
        Vector values[inputSize] = {};
        for (int y = 0; y < inputSize; ++y)
          if (row + y >= 0 && row + y < task.inputRows && column + x >= 0 && column + x < task.inputColumns)
            values[y] = loadFirst(from + y * task.inputRowStride + x * task.inputColumnStride, count);
        transformInput(values, columns + x, inputSize);
      }
    }
#pragma unroll
    for (int y = 0; y < inputSize; ++y) {
      Vector values[inputSize];
      transformInput(columns + y * inputSize, values, 1);
#pragma unroll
      for (int x = 0; x < inputSize; ++x)
        store(to + (y * inputSize + x) * slab + input, values[x]);
    }
  }
}

/// Makes results of a tile, in output channels [begin, end), of sums, of which number i lies at `from` + i * slab.
void finishTile(const WinogradTask &task, const TilePlace &place, const float *from, int64_t slab, int64_t begin,
                int64_t end) {
  int64_t rows = task.outputRows - place.row, columns = task.outputColumns - place.column;
  int64_t offset =
      place.image * task.outputImageStride + place.row * task.outputRowStride + place.column * task.outputColumnStride;
  for (int64_t output = begin; output < end; output += elementsOfVector, from += elementsOfVector) {
    int64_t count = end - output;
    Vector half[tileSize * inputSize], results[tileSize * tileSize];
#pragma unroll
    for (int x = 0; x < inputSize; ++x) {
      Vector values[inputSize];
#pragma unroll
      for (int y = 0; y < inputSize; ++y)
        values[y] = load(from + (y * inputSize + x) * slab);
      transformOutput(values, half + x, inputSize);
    }
    Vector bias = task.epilogue.bias ? loadFirst(task.epilogue.bias + output, count) : Vector{};
#pragma unroll
    for (int y = 0; y < tileSize; ++y)
      transformOutput(half + y * inputSize, results + y * tileSize, 1);
    for (int y = 0; y < tileSize && y < rows; ++y)
      for (int x = 0; x < tileSize && x < columns; ++x) {
        int64_t at = offset + y * task.outputRowStride + x * task.outputColumnStride + output;
        const float *addend = task.epilogue.addend ? task.epilogue.addend + at : nullptr;
        storeFirst(task.output + at, finish(task.epilogue, results[y * tileSize + x] + bias, addend, count), count);
      }
  }
}

void runWinograd(const WinogradTask &task, int64_t begin, int64_t end, int64_t firstPanel, int64_t lastPanel,
                 float *scratch) {
  int64_t padded = (task.inputs + elementsOfVector - 1) / elementsOfVector * elementsOfVector;
  // Slabs do not begin at the same place of a page, or their elements would compete for places in the cache.
  int64_t inputSlab = task.tilesOfBlock * padded + elementsOfVector;
  int64_t outputSlab = task.tilesOfBlock * elementsOfPanel + elementsOfVector;
  float *inputs = scratch, *outputs = scratch + numTaps * inputSlab;
  for (int64_t first = begin; first < end; first += task.tilesOfBlock) {
    int64_t tiles = end - first < task.tilesOfBlock ? end - first : task.tilesOfBlock;
    for (int64_t tile = 0; tile < tiles; ++tile)
      transformTile(task, TilePlace(task, first + tile), inputs + tile * padded, inputSlab);
    int64_t parts = (tiles + rowsOfProduct - 1) / rowsOfProduct;
    for (int64_t panel = firstPanel; panel < lastPanel; ++panel) {
      int64_t output = panel * elementsOfPanel;
      int64_t last = output + elementsOfPanel < task.outputs ? output + elementsOfPanel : task.outputs;
      bool isNarrow = last - output <= elementsOfVector;
      for (int64_t tap = 0; tap < numTaps; ++tap) {
        const float *weights = task.weights + (panel * numTaps + tap) * task.inputs * elementsOfPanel;
        for (int64_t part = 0; part < parts; ++part) {
          int64_t low = tiles * part / parts, rows = tiles * (part + 1) / parts - low;
          Multiply multiply = isNarrow ? multiplyRows<1>(rows) : multiplyRows<vectorsOfPanel>(rows);
          multiply(inputs + tap * inputSlab + low * padded, padded, weights, task.inputs,
                   outputs + tap * outputSlab + low * elementsOfPanel, elementsOfPanel, {});
        }
      }
      for (int64_t tile = 0; tile < tiles; ++tile)
        finishTile(task, TilePlace(task, first + tile), outputs + tile * elementsOfPanel, outputSlab, output, last);
    }
  }
}

} // namespace

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_WINOGRAD_H
