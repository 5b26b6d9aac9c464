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
  const float *bias = task.epilogue.bias ? task.epilogue.bias + column : nullptr;
  // Whole panels are computed where they are stored, unless something there is still to be added.
  Ending ending;
  bool isEnded = columns >= elementsOfPanel && task.depth <= blockOfTerms && findEnding(task.epilogue, bias, ending);
  bool isDirect = isEnded || (columns >= elementsOfPanel && !addsTensor(task.epilogue));
  float *sums = isDirect ? output : tile;
  int64_t sumsRow = isDirect ? task.outputRow : elementsOfPanel;
  Multiply multiply = multiplyRows<vectorsOfPanel>(count);
  multiply(from, task.inputRow, weights, task.depth < blockOfTerms ? task.depth : blockOfTerms, sums, sumsRow,
           isEnded ? ending : Ending());
  for (int64_t term = blockOfTerms; term < task.depth; term += blockOfTerms) {
    int64_t left = task.depth - term;
    multiply(from + term, task.inputRow, weights + term * elementsOfPanel, left < blockOfTerms ? left : blockOfTerms,
             others, elementsOfPanel, {});
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < elementsOfPanel; j += elementsOfVector) {
        float *sum = sums + i * sumsRow + j;
        store(sum, load(sum) + load(others + i * elementsOfPanel + j));
      }
  }
  if (isEnded)
    return;
  finishRows(task.epilogue, sums, sumsRow, count, columns < elementsOfPanel ? columns : elementsOfPanel, bias,
             [&](int64_t row) { return output + row * task.outputRow; });
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
