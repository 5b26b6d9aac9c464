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
// Exponentials are powers of two by a polynomial of degree 5: errors are below 3e-7 of the largest weight of a row. A
// NaN makes its row NaN, as does a row of nothing but minus infinity.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_ATTENTION_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_ATTENTION_H

#include "Vectors.h"

#include "dovetail/Calls/Attention.h"

namespace {

using dovetail::calls::attentionKeys;
using dovetail::calls::attentionProductRows;
using dovetail::calls::attentionRows;
using dovetail::runtime::AttentionTask;

constexpr float infinity = __builtin_inff(), largestFloat = 3.402823466e+38f;
/// Scores that masks such as -1e30 make are beyond the reach of others.
constexpr float unreachable = -1e30f, reachable = -1e29f;

typedef uint8_t Choices __attribute__((ext_vector_type(DOVETAIL_VECTOR_ELEMENTS), aligned(1)));
typedef float Four __attribute__((ext_vector_type(4), aligned(4)));

/// A larger one, NaN not counted.
inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }
inline float largest(Vector x) {
  float parts[elementsOfVector];
  store(parts, x);
  Four most = *reinterpret_cast<Four *>(parts);
  for (int i = 4; i < elementsOfVector; i += 4) {
    Four other = *reinterpret_cast<Four *>(parts + i);
    most = other > most ? other : most;
  }
  Four other = most.zwzw;
  most = other > most ? other : most;
  return most.y > most.x ? most.y : most.x;
}
inline float sum(Vector x) {
  float result = 0;
  for (int i = 0; i < elementsOfVector; ++i)
    result += x[i];
  return result;
}

/// scores[rows x panel] = a[rows x depth] * b[depth x panel], where rows of scores are those of a block of keys.
/// `highest` has a vector of the largest scores for each row.
template <int rows> void multiplyKeys(const float *a, const float *b, int64_t depth, float *scores, float *highest) {
  Vector sums[rows][vectorsOfPanel] = {};
  addProduct<rows, vectorsOfPanel>(a, depth, b, depth, sums);
#pragma unroll
  for (int row = 0; row < rows; ++row) {
    Vector most = load(highest + row * elementsOfVector);
#pragma unroll
    for (int vector = 0; vector < vectorsOfPanel; ++vector) {
      store(scores + row * attentionKeys + vector * elementsOfVector, sums[row][vector]);
      most = larger(sums[row][vector], most);
    }
    store(highest + row * elementsOfVector, most);
  }
}

/// sums[rows x panel] = sums * factors + weights[rows x keys] * b[keys x panel], where rows of sums are `stride` apart.
template <int rows>
void multiplyValues(const float *weights, const float *b, int64_t keys, const float *factors, float *to,
                    int64_t stride) {
  Vector sums[rows][vectorsOfPanel] = {};
  addProduct<rows, vectorsOfPanel>(weights, attentionKeys, b, keys, sums);
#pragma unroll
  for (int row = 0; row < rows; ++row)
#pragma unroll
    for (int vector = 0; vector < vectorsOfPanel; ++vector) {
      float *at = to + row * stride + vector * elementsOfVector;
      store(at, load(at) * factors[row] + sums[row][vector]);
    }
}

/// Those for so many rows, at least 1.
struct AttentionProducts {
  void (*multiplyKeys)(const float *a, const float *b, int64_t depth, float *scores, float *highest);
  void (*multiplyValues)(const float *weights, const float *b, int64_t keys, const float *factors, float *to,
                         int64_t stride);

  template <int rows = rowsOfProduct> static AttentionProducts of(int64_t count) {
    if constexpr (rows > 1)
      if (count < rows)
        return of<rows - 1>(count);
    return {::multiplyKeys<rows>, ::multiplyValues<rows>};
  }
};

/// Some rows of the result, on their way through all keys.
class AttentionRows {
public:
  AttentionRows(const AttentionTask &task, int64_t begin, int64_t end, float *scratch)
      : task(task), begin(begin), rows(end - begin),
        padded((task.columns + elementsOfPanel - 1) / elementsOfPanel * elementsOfPanel), queries(scratch),
        sums(queries + attentionRows * task.depth), scores(sums + attentionRows * padded),
        packedKeys(scores + attentionProductRows * attentionKeys),
        packedValues(packedKeys + attentionKeys * task.depth), totals(packedValues + attentionKeys * padded),
        most(totals + attentionRows * elementsOfVector), highest(most + attentionRows),
        changes(highest + attentionProductRows * elementsOfVector), factors(changes + attentionProductRows) {}

  void run() {
    for (int64_t row = 0; row < rows; ++row) {
      const float *from = task.query + (begin + row) * task.queryRow;
      for (int64_t d = 0; d < task.depth; ++d)
        queries[row * task.depth + d] = from[d * task.queryDepth] * task.scale;
      for (int64_t column = 0; column < padded; column += elementsOfVector)
        store(sums + row * padded + column, Vector{});
      store(totals + row * elementsOfVector, Vector{});
      most[row] = -largestFloat;
    }
    for (int64_t i = 0; i < attentionProductRows; ++i)
      changes[i] = 0;
    for (int64_t first = 0; first < task.keys; first += attentionKeys) {
      int64_t count = task.keys - first < attentionKeys ? task.keys - first : attentionKeys;
      if (isLeftOut(0, rows, first, count))
        continue;
      pack(first, count);
      int64_t parts = (rows + rowsOfProduct - 1) / rowsOfProduct;
      for (int64_t part = 0; part < parts; ++part)
        runRows(rows * part / parts, rows * (part + 1) / parts, first, count);
    }
    for (int64_t row = 0; row < rows; ++row) {
      float total = sum(load(totals + row * elementsOfVector)), inverse = task.isOfParts ? 1 : 1 / total;
      float *to = task.output + (begin + row) * task.outputRow;
      if (task.isOfParts) {
        to[task.columns * task.outputColumn] = most[row];
        to[(task.columns + 1) * task.outputColumn] = total;
      }
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
  /// Whether the mask leaves nothing of a block of keys that rows [low, high) could see.
  bool isLeftOut(int64_t low, int64_t high, int64_t first, int64_t count) const {
    if (!task.addend && !task.choice)
      return false;
    if (task.choice && !(task.fill <= unreachable))
      return false;
    bool isInfinite = !task.choice || task.fill == -infinity;
    for (int64_t row = low; row < (task.maskRow == 0 ? low + 1 : high); ++row) {
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
    for (int64_t row = low; row < high; ++row)
      if (!(most[row] > reachable))
        return false;
    return true;
  }

  /// Packs keys [first, first + count), `elementsOfPanel` at most, by columns of the depth.
  void packKeys(const float *from, int64_t count, float *to) const {
    int64_t keys = 0;
    if (task.keyDepth == 1)
      for (; keys + 4 <= count; keys += 4) {
        const float *row = from + keys * task.keyRow;
        int64_t d = 0;
        for (; d + 4 <= task.depth; d += 4) {
          Four parts[4], halves[4];
#pragma unroll
          for (int i = 0; i < 4; ++i)
            parts[i] = *reinterpret_cast<const Four *>(row + i * task.keyRow + d);
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            halves[2 * i] = __builtin_shufflevector(parts[i], parts[i + 2], 0, 4, 1, 5);
            halves[2 * i + 1] = __builtin_shufflevector(parts[i], parts[i + 2], 2, 6, 3, 7);
          }
          float *at = to + d * elementsOfPanel + keys;
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            *reinterpret_cast<Four *>(at + 2 * i * elementsOfPanel) =
                __builtin_shufflevector(halves[i], halves[i + 2], 0, 4, 1, 5);
            *reinterpret_cast<Four *>(at + (2 * i + 1) * elementsOfPanel) =
                __builtin_shufflevector(halves[i], halves[i + 2], 2, 6, 3, 7);
          }
        }
        for (; d < task.depth; ++d)
          for (int64_t i = 0; i < 4; ++i)
            to[d * elementsOfPanel + keys + i] = row[i * task.keyRow + d];
      }
    for (int64_t d = 0; d < task.depth; ++d) {
      for (int64_t key = keys; key < count; ++key)
        to[d * elementsOfPanel + key] = from[key * task.keyRow + d * task.keyDepth];
      for (int64_t key = count; key < elementsOfPanel; ++key)
        to[d * elementsOfPanel + key] = 0;
    }
  }

  void pack(int64_t first, int64_t count) {
    for (int64_t key = 0; key < count; key += elementsOfPanel)
      packKeys(task.key + (first + key) * task.keyRow, count - key < elementsOfPanel ? count - key : elementsOfPanel,
               packedKeys + key * task.depth);
    for (int64_t column = 0; column < padded; column += elementsOfPanel)
      packValues(task.value + first * task.valueRow + column * task.valueColumn, count,
                 task.columns - column < elementsOfPanel ? task.columns - column : elementsOfPanel,
                 packedValues + column * attentionKeys);
  }

  /// Adds what rows [begin, end), of one product, have of a block of keys. Their scores stay in the nearest cache.
  void runRows(int64_t low, int64_t high, int64_t first, int64_t count) {
    if (isLeftOut(low, high, first, count))
      return;
    AttentionProducts products = AttentionProducts::of(high - low);
    for (int64_t row = low; row < high; ++row)
      store(highest + (row - low) * elementsOfVector, splat(most[row]));
    for (int64_t key = 0; key < count; key += elementsOfPanel)
      products.multiplyKeys(queries + low * task.depth, packedKeys + key * task.depth, task.depth, scores + key,
                            highest);
    weigh(low, high, first, count);
    for (int64_t column = 0; column < padded; column += elementsOfPanel)
      products.multiplyValues(scores, packedValues + column * attentionKeys, count, factors,
                              sums + low * padded + column, padded);
  }

  /// Adds the mask to the scores of a row, and takes the largest one again: of keys that there are.
  void mask(int64_t low, int64_t row, int64_t first, int64_t count) {
    Vector most = splat(this->most[row]);
    int64_t offset = (begin + row) * task.maskRow + first * task.maskKey;
    for (int64_t key = 0; key < count; key += elementsOfVector) {
      float *at = scores + (row - low) * attentionKeys + key;
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
      most = larger(score, most);
    }
    store(highest + (row - low) * elementsOfVector, most);
  }

  /// Makes weights of scores, and finds what sums are to be scaled by.
  void weigh(int64_t low, int64_t high, int64_t first, int64_t count) {
    bool isWhole = count % elementsOfPanel == 0;
    for (int64_t row = low; row < high; ++row) {
      if (task.addend || task.choice || !isWhole)
        mask(low, row, first, count);
      float now = largest(load(highest + (row - low) * elementsOfVector));
      changes[row - low] = most[row] - now;
      most[row] = now;
    }
    // Vectors of rows are whole; what is behind the last one does not matter.
    for (int64_t row = 0; row < high - low; row += elementsOfVector)
      store(factors + row, exponential(load(changes + row)));
    for (int64_t row = low; row < high; ++row) {
      float *at = scores + (row - low) * attentionKeys;
      Vector now = splat(most[row]);
      constexpr int parts = 2;
      Vector weighed[parts] = {load(totals + row * elementsOfVector) * factors[row - low]};
      int64_t key = 0;
      for (; key + parts * elementsOfVector <= count; key += parts * elementsOfVector)
#pragma unroll
        for (int part = 0; part < parts; ++part) {
          Vector weight = exponential(load(at + key + part * elementsOfVector) - now);
          store(at + key + part * elementsOfVector, weight);
          weighed[part] += weight;
        }
      for (; key < count; key += elementsOfVector) {
        Vector weight = exponential(load(at + key) - now);
        store(at + key, weight);
        weighed[0] += weight;
      }
      store(totals + row * elementsOfVector, weighed[0] + weighed[1]);
    }
  }

  /// Packs `filled` columns of values, `elementsOfPanel` at most.
  void packValues(const float *from, int64_t count, int64_t filled, float *to) const {
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
  float *scores;                    ///< [rows of a product, keys], then the weights in their place.
  float *packedKeys, *packedValues; ///< [panels, depth or keys, elements of a panel].
  float *totals;                    ///< [rows, elements of a vector]: of weights.
  float *most;                      ///< The largest score of each row.
  float *highest, *changes,
      *factors; ///< Of rows of a product: scores, what is added to the largest one, what sums are scaled by.
};

void runAttention(const AttentionTask &task, int64_t begin, int64_t end, float *scratch) {
  AttentionRows(task, begin, end, scratch).run();
}

} // namespace

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_ATTENTION_H
