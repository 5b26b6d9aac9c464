//===- Vectors.h - Vectors of one instruction set -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines vectors of f32 and products of matrices in registers, for the file that includes it: all of it is in an
// unnamed namespace, and DOVETAIL_VECTOR_ELEMENTS says how many elements a vector has.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_VECTORS_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_VECTORS_H

#include "VectorKernels.h"

namespace {

using dovetail::runtime::Epilogue;
using dovetail::runtime::EpilogueStep;

constexpr int64_t elementsOfVector = DOVETAIL_VECTOR_ELEMENTS;
constexpr int vectorsOfPanel = 2;
constexpr int64_t elementsOfPanel = vectorsOfPanel * elementsOfVector;
/// Rows of a product whose sums fit registers: of 32 with AVX-512, else of 16.
constexpr int rowsOfProduct = elementsOfVector == 16 ? 12 : 6;

typedef float Vector __attribute__((ext_vector_type(DOVETAIL_VECTOR_ELEMENTS)));
typedef float Unaligned __attribute__((ext_vector_type(DOVETAIL_VECTOR_ELEMENTS), aligned(4)));
typedef int Numbers __attribute__((ext_vector_type(DOVETAIL_VECTOR_ELEMENTS)));
typedef bool Mask __attribute__((ext_vector_type(DOVETAIL_VECTOR_ELEMENTS)));

inline Vector load(const float *data) { return *reinterpret_cast<const Unaligned *>(data); }
inline void store(float *data, Vector vector) { *reinterpret_cast<Unaligned *>(data) = vector; }
inline Vector splat(float value) { return Vector(value); }

/// The first `count` elements of a vector.
inline Mask maskFirst(int64_t count) {
  Numbers numbers{};
  for (int i = 0; i < elementsOfVector; ++i)
    numbers[i] = i;
  return __builtin_convertvector(numbers < Numbers(static_cast<int>(count)), Mask);
}

/// The first `count` elements; zeros behind them.
inline Vector loadFirst(const float *data, int64_t count) {
  return count >= elementsOfVector ? load(data) : __builtin_masked_load(maskFirst(count), data, Vector(0.0f));
}
inline void storeFirst(float *data, Vector vector, int64_t count) {
  if (count >= elementsOfVector)
    store(data, vector);
  else
    __builtin_masked_store(maskFirst(count), vector, data);
}

/// Whether what is done with sums reads what lies in memory.
inline bool addsTensor(const Epilogue &epilogue) {
  for (int i = 0; i < epilogue.numSteps; ++i)
    if (epilogue.steps[i].kind == EpilogueStep::AddTensor)
      return true;
  return false;
}

/// Weights of so few elements stay in a cache near the core, so that results are computed row after row.
constexpr int64_t mostCachedWeights = 32 << 10;

/// Calls `body` with all numbers below `a` and below `b`; with `aFirst`, with all of the first ones for each of the
/// second.
template <typename Body> inline void forPairs(int64_t a, int64_t b, bool aFirst, Body body) {
  if (aFirst) {
    for (int64_t j = 0; j < b; ++j)
      for (int64_t i = 0; i < a; ++i)
        body(i, j);
  } else {
    for (int64_t i = 0; i < a; ++i)
      for (int64_t j = 0; j < b; ++j)
        body(i, j);
  }
}

/// What becomes of `count` sums. `addend` is where the elements lie that are added.
inline Vector finish(const Epilogue &epilogue, Vector x, const float *addend, int64_t count) {
  for (int i = 0; i < epilogue.numSteps; ++i) {
    const EpilogueStep &step = epilogue.steps[i];
    // Comparisons are such that NaN stays NaN.
    switch (step.kind) {
    case EpilogueStep::AddTensor:
      x += loadFirst(addend, count);
      break;
    case EpilogueStep::Relu: {
      // Without a slope the result is +0 also of -0 and of -infinity, which no product with 0 gives.
      Vector negative = step.alpha == 0 ? Vector{} : x * step.alpha;
      x = x <= 0.0f ? negative : x;
      break;
    }
    case EpilogueStep::Clip:
      // Of zeros the bound's sign wins, as with the library.
      x = x <= step.alpha ? splat(step.alpha) : x;
      x = x >= step.beta ? splat(step.beta) : x;
      break;
    case EpilogueStep::Linear:
      x = x * step.alpha + step.beta;
      break;
    case EpilogueStep::HardSwish: {
      Vector factor = x * (1.0f / 6) + 0.5f;
      factor = factor < 0.0f ? Vector{} : factor;
      factor = factor > 1.0f ? splat(1.0f) : factor;
      x *= factor;
      break;
    }
    }
  }
  return x;
}

inline void finishElements(const Epilogue &epilogue, float *data, int64_t count) {
  for (int64_t i = 0; i < count; i += elementsOfVector)
    storeFirst(data + i, finish(epilogue, loadFirst(data + i, count - i), nullptr, count - i), count - i);
}

/// Of x <= 0; below -87, where results would not be normal, 0. Of all polynomials of its degree that are 1 at 0, this
/// one has the least relative error from 2^r for |r| <= 1/2. It is 1e-7. Of NaN it is NaN.
inline Vector exponential(Vector x) {
  constexpr float shift = 12582912.0f; // Its sums have whole numbers in the last bits.
  constexpr float factor = 1.44269504088896341f;
  Vector shifted = x * factor + shift;
  Vector n = shifted - shift;
  Vector r = x * factor - n;
  Vector y = r * 1.326472731e-3f + 9.671512991e-3f;
  y = y * r + 5.550733581e-2f;
  y = y * r + 2.402224243e-1f;
  y = y * r + 6.931470037e-1f;
  y = y * r + 1.0f;
  // A product, as added to the exponent it would make a number of a NaN.
  constexpr int exponentOfOne = 127 << 23;
  Numbers power = (__builtin_bit_cast(Numbers, shifted) << 23) + exponentOfOne;
  Vector scaled = y * __builtin_bit_cast(Vector, power);
  return x < -87.0f ? Vector{} : scaled;
}

/// 1 / (1 + exp(-x)), of NaN NaN.
inline Vector sigmoid(Vector x) {
  Vector power = exponential(x < 0.0f ? x : -x);
  return (x < 0.0f ? power : splat(1.0f)) / (power + 1.0f);
}

inline void sigmoidElements(float *data, int64_t count) {
  for (int64_t i = 0; i < count; i += elementsOfVector)
    storeFirst(data + i, sigmoid(loadFirst(data + i, count - i)), count - i);
}

inline bool areFinite(const float *data, int64_t count) {
  // Zero times what is not finite is NaN, and stays so in sums. Several sums do not wait for each other.
  constexpr int64_t numSums = 4, step = numSums * elementsOfVector;
  Vector sums[numSums] = {};
  int64_t i = 0;
  for (; i + step <= count; i += step)
    for (int64_t j = 0; j < numSums; ++j)
      sums[j] += load(data + i + j * elementsOfVector) * 0.0f;
  for (; i < count; i += elementsOfVector)
    sums[0] += loadFirst(data + i, count - i) * 0.0f;
  Vector sum = sums[0] + sums[1] + sums[2] + sums[3];
  float total = 0;
  for (int lane = 0; lane < elementsOfVector; ++lane)
    total += sum[lane];
  return total == 0;
}

/// The last operations of `multiply` on sums, if any: it adds a bias and the values in memory, and cuts off negative
/// ones.
struct Ending {
  const float *bias = nullptr;
  bool isAdded = false, isCut = false;
};

/// Whether `multiply` can do all that `epilogue` says, and what that is, with `bias` or none.
inline bool findEnding(const Epilogue &epilogue, const float *bias, Ending &ending) {
  int done = 0;
  auto isNext = [&](EpilogueStep::Kind kind) { return done < epilogue.numSteps && epilogue.steps[done].kind == kind; };
  ending.bias = bias;
  ending.isAdded = isNext(EpilogueStep::AddTensor);
  done += ending.isAdded;
  ending.isCut = isNext(EpilogueStep::Relu) && epilogue.steps[done].alpha == 0;
  done += ending.isCut;
  return done == epilogue.numSteps;
}

/// Stores `rows` x `columns` sums, after what `epilogue` says. `place` gives the address in the output of the first
/// element of a row: sums may lie there already, or a tensor that is added. `bias` is that of the first column, or
/// null.
template <typename Place>
inline void finishRows(const Epilogue &epilogue, const float *sums, int64_t sumsRow, int64_t rows, int64_t columns,
                       const float *bias, Place place) {
  auto finishAll = [&](auto body) __attribute__((always_inline)) {
    for (int64_t offset = 0; offset < columns; offset += elementsOfVector) {
      int64_t left = columns - offset;
      Vector added = bias ? loadFirst(bias + offset, left) : Vector{};
      for (int64_t row = 0; row < rows; ++row) {
        float *to = place(row) + offset;
        Vector x = body(load(sums + row * sumsRow + offset) + added, to, left);
        if (left >= elementsOfVector)
          store(to, x);
        else
          storeFirst(to, x, left);
      }
    }
  };
  // Most have nothing, or cut off negative values.
  if (Ending ending; findEnding(epilogue, bias, ending) && !ending.isAdded) {
    if (!ending.isCut)
      return finishAll([](Vector x, const float *, int64_t) { return x; });
    return finishAll([](Vector x, const float *, int64_t) { return x <= 0.0f ? Vector{} : x; });
  }
  finishAll([&](Vector x, const float *to, int64_t left) { return finish(epilogue, x, to, left); });
}

/// sums[rows x vectors] += a[rows x depth] * b[depth x vectors], whose rows are `stride` vectors apart.
template <int rows, int vectors, int stride = vectorsOfPanel>
__attribute__((always_inline)) inline void addProduct(const float *a, int64_t rowStride, const float *b, int64_t depth,
                                                      Vector (&sums)[rows][vectors]) {
  constexpr int bases = (rows + 2) / 3;
  // Rows are addressed in threes from a register each, as there are not enough for all. The compiler is kept from
  // seeing through that.
  const float *base[bases];
#pragma unroll
  for (int i = 0; i < bases; ++i) {
    base[i] = a + 3 * i * rowStride;
    asm("" : "+r"(base[i]));
  }
  auto addTerm = [&](int term) __attribute__((always_inline)) {
    Vector factors[vectors];
#pragma unroll
    for (int vector = 0; vector < vectors; ++vector)
      factors[vector] = load(b + vector * elementsOfVector);
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      Vector factor = splat(base[row / 3][(row % 3) * rowStride + term]);
#pragma unroll
      for (int vector = 0; vector < vectors; ++vector)
        sums[row][vector] += factor * factors[vector];
    }
    b += stride * elementsOfVector;
  };
  auto advance = [&](int terms) __attribute__((always_inline)) {
#pragma unroll
    for (int i = 0; i < bases; ++i)
      base[i] += terms;
  };
  int64_t term = 0;
  for (; term + 4 <= depth; term += 4) {
    addTerm(0);
    addTerm(1);
    addTerm(2);
    addTerm(3);
    advance(4);
  }
  for (; term < depth; ++term) {
    addTerm(0);
    advance(1);
  }
}

/// c[rows x vectors] = a[rows x depth] * b[depth x vectors]. Rows of a and c are `rowStride` and `cRow` elements apart,
/// those of b `stride` vectors.
template <int rows, int vectors, int stride = vectorsOfPanel>
void multiply(const float *a, int64_t rowStride, const float *b, int64_t depth, float *c, int64_t cRow, Ending ending) {
  Vector sums[rows][vectors] = {};
  addProduct<rows, vectors, stride>(a, rowStride, b, depth, sums);
  if (ending.bias) {
#pragma unroll
    for (int vector = 0; vector < vectors; ++vector) {
      Vector bias = load(ending.bias + vector * elementsOfVector);
#pragma unroll
      for (int row = 0; row < rows; ++row)
        sums[row][vector] += bias;
    }
  }
  if (ending.isAdded) {
#pragma unroll
    for (int row = 0; row < rows; ++row)
#pragma unroll
      for (int vector = 0; vector < vectors; ++vector)
        sums[row][vector] += load(c + row * cRow + vector * elementsOfVector);
  }
  if (ending.isCut) {
#pragma unroll
    for (int row = 0; row < rows; ++row)
#pragma unroll
      for (int vector = 0; vector < vectors; ++vector)
        sums[row][vector] = sums[row][vector] <= 0.0f ? Vector{} : sums[row][vector];
  }
#pragma unroll
  for (int row = 0; row < rows; ++row)
#pragma unroll
    for (int vector = 0; vector < vectors; ++vector)
      store(c + row * cRow + vector * elementsOfVector, sums[row][vector]);
}

using Multiply = void (*)(const float *a, int64_t rowStride, const float *b, int64_t depth, float *c, int64_t cRow,
                          Ending ending);

/// The function for so many rows, at least 1.
template <int vectors, int rows = rowsOfProduct> Multiply multiplyRows(int64_t count) {
  if constexpr (rows > 1)
    if (count < rows)
      return multiplyRows<vectors, rows - 1>(count);
  return multiply<rows, vectors>;
}

} // namespace

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_KERNELS_VECTORS_H
