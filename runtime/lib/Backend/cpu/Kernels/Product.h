//===- Product.h - Products of matrices -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines products with packed weights, for the file that includes it; see Vectors.h.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_PRODUCT_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_PRODUCT_H

#include "Vectors.h"

namespace {

using dovetail::runtime::ProductTask;
using dovetail::runtime::ProductWeights;

void packProduct(const ProductWeights &weights, float *packed) {
  for (int64_t column = 0; column < weights.columns; column += elementsOfPanel) {
    int64_t filled = weights.columns - column < elementsOfPanel ? weights.columns - column : elementsOfPanel;
    for (int64_t term = 0; term < weights.depth; ++term, packed += elementsOfPanel) {
      const float *from = weights.data + term * weights.termStride + column * weights.columnStride;
      for (int64_t i = 0; i < elementsOfPanel; ++i)
        packed[i] = i < filled ? from[i * weights.columnStride] : 0;
    }
  }
}

/// Computes `count` rows from `row` on, of a panel of columns from `column` on.
void runProductTile(const ProductTask &task, int64_t row, int64_t count, int64_t column) {
  // Each block of terms has sums of its own, so that errors of long ones do not grow with all of them.
  constexpr int64_t blockOfTerms = 1024;
  float tile[rowsOfProduct * elementsOfPanel], others[rowsOfProduct * elementsOfPanel];
  const float *from = task.input + row * task.inputRow, *weights = task.weights + column * task.depth;
  float *output = task.output + row * task.outputRow + column;
  int64_t columns = task.columns - column;
  // Whole panels are computed where they are stored, unless something there is still to be added.
  bool isDirect = columns >= elementsOfPanel && !addsTensor(task.epilogue);
  float *sums = isDirect ? output : tile;
  int64_t sumsRow = isDirect ? task.outputRow : elementsOfPanel;
  Multiply multiply = multiplyRows<vectorsOfPanel>(count);
  multiply(from, task.inputRow, weights, task.depth < blockOfTerms ? task.depth : blockOfTerms, sums, sumsRow);
  for (int64_t term = blockOfTerms; term < task.depth; term += blockOfTerms) {
    int64_t left = task.depth - term;
    multiply(from + term, task.inputRow, weights + term * elementsOfPanel, left < blockOfTerms ? left : blockOfTerms,
             others, elementsOfPanel);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < elementsOfPanel; j += elementsOfVector) {
        float *sum = sums + i * sumsRow + j;
        store(sum, load(sum) + load(others + i * elementsOfPanel + j));
      }
  }
  if (isDirect && !task.epilogue.bias && task.epilogue.numSteps == 0)
    return;
  for (int64_t i = 0; i < count; ++i, output += task.outputRow, sums += sumsRow) {
#pragma unroll
    for (int vector = 0; vector < vectorsOfPanel; ++vector) {
      int64_t offset = vector * elementsOfVector, left = columns - offset;
      if (left <= 0)
        break;
      Vector x = load(sums + offset);
      if (task.epilogue.bias)
        x += loadFirst(task.epilogue.bias + column + offset, left);
      storeFirst(output + offset, finish(task.epilogue, x, output + offset, left), left);
    }
  }
}

void runProduct(const ProductTask &task) {
  // Rows of the first factor that stay in the cache next to the core, while all weights pass by.
  constexpr int64_t cachedElements = 40 << 10;
  int64_t cached = cachedElements / (task.depth > 0 ? task.depth : 1) / rowsOfProduct * rowsOfProduct;
  int64_t block = cached < rowsOfProduct ? rowsOfProduct : cached;
  int64_t panels = (task.columns + elementsOfPanel - 1) / elementsOfPanel;
  for (int64_t first = 0; first < task.rows; first += block) {
    int64_t rows = task.rows - first < block ? task.rows - first : block;
    int64_t parts = (rows + rowsOfProduct - 1) / rowsOfProduct;
    forPairs(panels, parts, task.depth * panels * elementsOfPanel <= mostCachedWeights,
             [&](int64_t panel, int64_t part) {
               int64_t low = rows * part / parts, high = rows * (part + 1) / parts;
               runProductTile(task, first + low, high - low, panel * elementsOfPanel);
             });
  }
}

} // namespace

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_PRODUCT_H
