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

void runProduct(const ProductTask &task) {
  // Rows of the first factor that stay in the cache next to the core, while all weights pass by.
  constexpr int64_t cachedElements = 40 << 10;
  int64_t cached = cachedElements / (task.depth > 0 ? task.depth : 1) / rowsOfProduct * rowsOfProduct;
  int64_t block = cached < rowsOfProduct ? rowsOfProduct : cached;
  // Each block of terms has sums of its own, so that errors of long ones do not grow with all of them.
  constexpr int64_t blockOfTerms = 1024;
  float sums[rowsOfProduct * elementsOfPanel], others[rowsOfProduct * elementsOfPanel];
  for (int64_t first = 0; first < task.rows; first += block) {
    int64_t rows = task.rows - first < block ? task.rows - first : block;
    int64_t parts = (rows + rowsOfProduct - 1) / rowsOfProduct;
    const float *weights = task.weights;
    for (int64_t column = 0; column < task.columns; column += elementsOfPanel) {
      for (int64_t part = 0; part < parts; ++part) {
        int64_t low = rows * part / parts, count = rows * (part + 1) / parts - low;
        const float *from = task.input + (first + low) * task.inputRow;
        Multiply multiply = multiplyRows<vectorsOfPanel>(count);
        multiply(from, task.inputRow, weights, task.depth < blockOfTerms ? task.depth : blockOfTerms, sums);
        for (int64_t term = blockOfTerms; term < task.depth; term += blockOfTerms) {
          int64_t left = task.depth - term;
          multiply(from + term, task.inputRow, weights + term * elementsOfPanel,
                   left < blockOfTerms ? left : blockOfTerms, others);
          for (int64_t i = 0; i < count * elementsOfPanel; i += elementsOfVector)
            store(sums + i, load(sums + i) + load(others + i));
        }
        for (int64_t row = 0; row < count; ++row) {
          int64_t at = (first + low + row) * task.outputRow + column;
#pragma unroll
          for (int vector = 0; vector < vectorsOfPanel; ++vector) {
            int64_t offset = vector * elementsOfVector, left = task.columns - column - offset;
            if (left <= 0)
              break;
            Vector x = load(sums + row * elementsOfPanel + offset);
            if (task.epilogue.bias)
              x += loadFirst(task.epilogue.bias + column + offset, left);
            const float *addend = task.epilogue.addend ? task.output + at + offset : nullptr;
            storeFirst(task.output + at + offset, finish(task.epilogue, x, addend, left), left);
          }
        }
      }
      weights += task.depth * elementsOfPanel;
    }
  }
}

} // namespace

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_PRODUCT_H
