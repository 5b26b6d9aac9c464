//===- Attention.h - Attention without stored scores -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines attention with the online softmax of Milakov and Gimelshein (arXiv:1805.02867), for the file that includes
// it; see Vectors.h.
//
// Exponentials are those of Cephes' expf: errors are below two units in the last place. A NaN makes its row NaN, as
// does a row of nothing but minus infinity.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_ATTENTION_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_ATTENTION_H

#include "Vectors.h"

#include "dovetail/Layout/Attention.h"

namespace {

using dovetail::layout::attentionKeys;
using dovetail::layout::attentionRows;
using dovetail::runtime::AttentionTask;

constexpr float infinity = __builtin_inff(), largestFloat = 3.402823466e+38f;
/// Scores that masks such as -1e30 make are beyond the reach of others.
constexpr float unreachable = -1e30f, reachable = -1e29f;

typedef uint8_t Choices __attribute__((ext_vector_type(DOVETAIL_VECTOR_ELEMENTS), aligned(1)));

/// Of x <= 0 or NaN; below -87, where results would not be normal, 0.
inline Vector exponential(Vector x) {
  constexpr float shift = 12582912.0f; // Its sums have whole numbers in the last bits.
  Vector shifted = x * 1.44269504088896341f + shift;
  Vector n = shifted - shift;
  Vector r = x - n * 0.693359375f + n * 2.12194440e-4f;
  Vector y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  auto scaled =
      __builtin_bit_cast(Vector, __builtin_bit_cast(Numbers, y) + (__builtin_bit_cast(Numbers, shifted) << 23));
  return x < -87.0f ? Vector{} : scaled;
}

/// A larger one, NaN not counted.
inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }
inline float largest(Vector x) {
  float result = x[0];
  for (int i = 1; i < elementsOfVector; ++i)
    result = x[i] > result ? x[i] : result;
  return result;
}
inline float sum(Vector x) {
  float result = 0;
  for (int i = 0; i < elementsOfVector; ++i)
    result += x[i];
  return result;
}

/// Some rows of the result, on their way through all keys.
class AttentionRows {
public:
  AttentionRows(const AttentionTask &task, int64_t begin, int64_t end, float *scratch)
      : task(task), begin(begin), rows(end - begin),
        padded((task.columns + elementsOfPanel - 1) / elementsOfPanel * elementsOfPanel), queries(scratch),
        sums(queries + attentionRows * task.depth), scores(sums + attentionRows * padded),
        weights(scores + attentionRows * attentionKeys), packedKeys(weights + attentionRows * attentionKeys),
        packedValues(packedKeys + attentionKeys * task.depth), products(packedValues + attentionKeys * padded),
        most(products + attentionRows * elementsOfPanel), total(most + attentionRows), factors(total + attentionRows) {}

  void run() {
    for (int64_t row = 0; row < rows; ++row) {
      const float *from = task.query + (begin + row) * task.queryRow;
      for (int64_t d = 0; d < task.depth; ++d)
        queries[row * task.depth + d] = from[d * task.queryDepth] * task.scale;
      for (int64_t column = 0; column < padded; ++column)
        sums[row * padded + column] = 0;
      most[row] = -largestFloat;
      total[row] = 0;
    }
    for (int64_t first = 0; first < task.keys; first += attentionKeys) {
      int64_t count = task.keys - first < attentionKeys ? task.keys - first : attentionKeys;
      if (isLeftOut(first, count))
        continue;
      multiplyKeys(first, count);
      for (int64_t row = 0; row < rows; ++row)
        weigh(row, first, count);
      addValues(first, count);
    }
    for (int64_t row = 0; row < rows; ++row) {
      float inverse = 1 / total[row];
      float *to = task.output + (begin + row) * task.outputRow;
      const float *from = sums + row * padded;
      if (task.outputColumn == 1)
        for (int64_t column = 0; column < task.columns; column += elementsOfVector)
          storeFirst(to + column, load(from + column) * inverse, task.columns - column);
      else
        for (int64_t column = 0; column < task.columns; ++column)
          to[column * task.outputColumn] = from[column] * inverse;
    }
  }

private:
  /// Whether the mask leaves nothing of a block of keys that a row could see.
  bool isLeftOut(int64_t first, int64_t count) const {
    if (!task.addend && !task.choice)
      return false;
    if (task.choice && !(task.fill <= unreachable))
      return false;
    bool isInfinite = !task.choice || task.fill == -infinity;
    for (int64_t row = 0; row < (task.maskRow == 0 ? 1 : rows); ++row) {
      int64_t offset = (begin + row) * task.maskRow + first * task.maskKey;
      for (int64_t key = 0; key < (task.maskKey == 0 ? 1 : count); ++key) {
        if (task.choice) {
          if (task.choice[offset + key * task.maskKey])
            return false;
          continue;
        }
        float addend = task.addend[offset + key * task.maskKey];
        if (!(addend <= unreachable))
          return false;
        isInfinite &= addend == -infinity;
      }
    }
    if (isInfinite)
      return true;
    // Rows that have seen nothing else are as if nothing were left out.
    for (int64_t row = 0; row < rows; ++row)
      if (!(most[row] > reachable))
        return false;
    return true;
  }

  void multiplyKeys(int64_t first, int64_t count) {
    int64_t panels = (count + elementsOfPanel - 1) / elementsOfPanel;
    for (int64_t panel = 0; panel < panels; ++panel) {
      float *to = packedKeys + panel * task.depth * elementsOfPanel;
      const float *from = task.key + (first + panel * elementsOfPanel) * task.keyRow;
      int64_t filled =
          count - panel * elementsOfPanel < elementsOfPanel ? count - panel * elementsOfPanel : elementsOfPanel;
      for (int64_t d = 0; d < task.depth; ++d) {
        for (int64_t key = 0; key < filled; ++key)
          to[d * elementsOfPanel + key] = from[key * task.keyRow + d * task.keyDepth];
        for (int64_t key = filled; key < elementsOfPanel; ++key)
          to[d * elementsOfPanel + key] = 0;
      }
      forParts([&](int64_t row, Multiply multiply) {
        multiply(queries + row * task.depth, task.depth, to, task.depth,
                 scores + (panel * attentionRows + row) * elementsOfPanel);
      });
    }
  }

  /// Makes weights of the scores of a row, and scales what it has summed.
  void weigh(int64_t row, int64_t first, int64_t count) {
    Vector highest = splat(most[row]);
    int64_t offset = (begin + row) * task.maskRow + first * task.maskKey;
    for (int64_t key = 0; key < count; key += elementsOfVector) {
      float *at = scoreAt(row, key);
      int64_t left = count - key;
      Vector score = load(at);
      if (task.addend) {
        score += loadMask(task.addend + offset + key * task.maskKey, left);
      } else if (task.choice) {
        score = loadChoice(task.choice + offset + key * task.maskKey, left) != 0 ? score : splat(task.fill);
      }
      if (left < elementsOfVector)
        score = __builtin_convertvector(maskFirst(left), Numbers) != 0 ? score : splat(-infinity);
      store(at, score);
      highest = larger(score, highest);
    }
    float now = largest(highest);
    Vector weighed{};
    float *to = weights + row * attentionKeys;
    for (int64_t key = 0; key < count; key += elementsOfVector) {
      Vector weight = exponential(load(scoreAt(row, key)) - now);
      store(to + key, weight);
      weighed += weight;
    }
    factors[row] = exponential(splat(most[row] - now))[0];
    total[row] = total[row] * factors[row] + sum(weighed);
    most[row] = now;
  }

  void addValues(int64_t first, int64_t count) {
    for (int64_t column = 0; column < padded; column += elementsOfPanel) {
      float *to = packedValues + column * attentionKeys;
      int64_t filled = task.columns - column < elementsOfPanel ? task.columns - column : elementsOfPanel;
      const float *from = task.value + first * task.valueRow + column * task.valueColumn;
      for (int64_t key = 0; key < count; ++key, to += elementsOfPanel, from += task.valueRow) {
        if (task.valueColumn == 1 && filled == elementsOfPanel) {
#pragma unroll
          for (int vector = 0; vector < vectorsOfPanel; ++vector)
            store(to + vector * elementsOfVector, load(from + vector * elementsOfVector));
          continue;
        }
        for (int64_t i = 0; i < elementsOfPanel; ++i)
          to[i] = i < filled ? from[i * task.valueColumn] : 0;
      }
      forParts([&](int64_t row, Multiply multiply) {
        multiply(weights + row * attentionKeys, attentionKeys, packedValues + column * attentionKeys, count,
                 products + row * elementsOfPanel);
      });
      for (int64_t row = 0; row < rows; ++row)
#pragma unroll
        for (int vector = 0; vector < vectorsOfPanel; ++vector) {
          float *at = sums + row * padded + column + vector * elementsOfVector;
          store(at, load(at) * factors[row] + load(products + row * elementsOfPanel + vector * elementsOfVector));
        }
    }
  }

  /// Calls `body` for rows that are multiplied at once.
  template <typename Body> void forParts(Body body) {
    int64_t parts = (rows + rowsOfProduct - 1) / rowsOfProduct;
    for (int64_t part = 0; part < parts; ++part) {
      int64_t low = rows * part / parts;
      body(low, multiplyRows<vectorsOfPanel>(rows * (part + 1) / parts - low));
    }
  }

  float *scoreAt(int64_t row, int64_t key) const {
    return scores + (key / elementsOfPanel * attentionRows + row) * elementsOfPanel + key % elementsOfPanel;
  }
  Vector loadMask(const float *from, int64_t count) const {
    if (task.maskKey == 1)
      return loadFirst(from, count);
    Vector result{};
    for (int64_t i = 0; i < elementsOfVector && i < count; ++i)
      result[i] = from[i * task.maskKey];
    return result;
  }

  Numbers loadChoice(const uint8_t *from, int64_t count) const {
    if (task.maskKey == 1 && count >= elementsOfVector)
      return __builtin_convertvector(*reinterpret_cast<const Choices *>(from), Numbers);
    Numbers result{};
    for (int64_t i = 0; i < elementsOfVector && i < count; ++i)
      result[i] = from[i * task.maskKey];
    return result;
  }

  const AttentionTask &task;
  int64_t begin, rows, padded;
  float *queries;                   ///< [rows, depth], scaled.
  float *sums;                      ///< [rows, padded]: of weights and values, relative to the largest score.
  float *scores;                    ///< [panels of keys, rows, keys of a panel].
  float *weights;                   ///< [rows, keys].
  float *packedKeys, *packedValues; ///< [panels, depth or keys, elements of a panel].
  float *products;                  ///< [rows, elements of a panel].
  float *most, *total, *factors;    ///< The largest score of each row, the sum of weights, what sums are scaled by.
};

void runAttention(const AttentionTask &task, int64_t begin, int64_t end, float *scratch) {
  AttentionRows(task, begin, end, scratch).run();
}

} // namespace

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_ATTENTION_H
