//===- PostOpKernels.h - Post-ops that no library fuses ---------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what the threads of the device kernel for post-ops do. Compiled for devices, without a standard library, and
// for the host by tests.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_POSTOPKERNELS_H
#define DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_POSTOPKERNELS_H

#include "BoxKernels.h"

#include "dovetail/runtime/PostOpKind.h"

namespace dovetail::runtime::device {

/// A chain of operations on each element of a source, zeros if there is none. Strides are in bytes, 0 where an operand
/// repeats. Kernels have it as a parameter, in memory that all threads read at once.
///
/// A *vector* is `width` elements that follow on each other in the result, the source, and operands that do not repeat
/// along the innermost loop. The loops go through vectors.
struct PostOpJob {
  static constexpr int maxLoops = 5, maxOps = 8;
  struct Op {
    uint64_t operand; ///< Address, or 0.
    PostOpKind kind;
    float alpha, beta;
    int32_t reserved;
    int64_t strides[maxLoops];
  };
  uint64_t result, source; ///< Addresses. They may be the same.
  JobType type;
  int32_t ops;
  int32_t width;            ///< 1, or elements of 16 bytes, which is what all vectors are aligned to.
  Divisor counts[maxLoops]; ///< Outermost first; 1 where there is no loop. Their product is at most 2^31.
  int64_t strides[maxLoops], sourceStrides[maxLoops];
  Op op[maxOps];
};

/// The exponential function, to 1 ulp. The host computes the same bits.
DOVETAIL_INLINE float exponential(float x) {
  if (x != x)
    return x;
  x = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;
  float quotient = __builtin_rintf(x * 1.44269502f);
  float rest = __builtin_fmaf(quotient, -0.693145752f, x);
  rest = __builtin_fmaf(quotient, -1.42860677e-6f, rest);
  float result = 1.37805939e-3f;
  result = __builtin_fmaf(result, rest, 8.37312452e-3f);
  result = __builtin_fmaf(result, rest, 4.16695364e-2f);
  result = __builtin_fmaf(result, rest, 1.66664720e-1f);
  result = __builtin_fmaf(result, rest, 4.99999851e-1f);
  result = __builtin_fmaf(result, rest, 1.0f);
  result = __builtin_fmaf(result, rest, 1.0f);
  // In two steps, as the power of two may be no normal number.
  auto powerOfTwo = [](int32_t exponent) {
    uint32_t bits = static_cast<uint32_t>(exponent + 127) << 23;
    float power;
    __builtin_memcpy(&power, &bits, sizeof(power));
    return power;
  };
  int32_t exponent = static_cast<int32_t>(quotient), half = exponent / 2;
  return result * powerOfTwo(half) * powerOfTwo(exponent - half);
}

/// exp(x) - 1 without loss near 0.
DOVETAIL_INLINE float exponentialLess1(float x) {
  if (x < -0.5f || x > 0.5f || x != x)
    return exponential(x) - 1.0f;
  float sum = 1.0f / 40320.0f;
  constexpr float factors[] = {1.0f / 5040.0f, 1.0f / 720.0f, 1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f};
  for (float factor : factors)
    sum = __builtin_fmaf(sum, x, factor);
  return __builtin_fmaf(sum * x, x, x);
}

DOVETAIL_INLINE float hyperbolicTangent(float x) {
  float less1 = exponentialLess1(-2.0f * __builtin_fabsf(x));
  return __builtin_copysignf(-less1 / (2.0f + less1), x);
}

DOVETAIL_INLINE float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

/// The error function, by two polynomials.
DOVETAIL_INLINE float errorFunction(float x) {
  float size = __builtin_fabsf(x), square = x * x;
  if (size > 0.921875f) {
    float high = __builtin_fmaf(-1.72853470e-5f, size, 3.83197126e-4f);
    float low = __builtin_fmaf(-3.88396438e-3f, size, 2.42546219e-2f);
    high = __builtin_fmaf(high, square, low);
    high = __builtin_fmaf(high, size, -1.06777877e-1f);
    high = __builtin_fmaf(high, size, -6.34846687e-1f);
    high = __builtin_fmaf(high, size, -1.28717512e-1f);
    high = __builtin_fmaf(high, size, -size);
    return __builtin_copysignf(1.0f - exponential(high), x);
  }
  float result = -5.96761703e-4f;
  result = __builtin_fmaf(result, square, 4.99119423e-3f);
  result = __builtin_fmaf(result, square, -2.67681349e-2f);
  result = __builtin_fmaf(result, square, 1.12819925e-1f);
  result = __builtin_fmaf(result, square, -3.76125336e-1f);
  result = __builtin_fmaf(result, square, 1.28379166e-1f);
  return __builtin_fmaf(result, x, x);
}

/// What is not a number stays so.
template <typename T> T clamp(T x, T low, T high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

template <typename T> DOVETAIL_INLINE T applyPostOp(const PostOpJob::Op &op, PostOpKind kind, T x, T operand) {
  switch (kind) {
  case PostOpKind::AddTensor:
    return x + operand;
  case PostOpKind::MulTensor:
    return x * operand;
  case PostOpKind::Relu:
    return x < 0 ? 0 : x;
  case PostOpKind::LeakyRelu:
    return x < 0 ? x * static_cast<T>(op.alpha) : x;
  case PostOpKind::Clip:
    return clamp(x, static_cast<T>(op.alpha), static_cast<T>(op.beta));
  case PostOpKind::HardSwish:
    return x * clamp(x / static_cast<T>(6) + static_cast<T>(0.5), static_cast<T>(0), static_cast<T>(1));
  case PostOpKind::HardSigmoid:
    return clamp(x * static_cast<T>(op.alpha) + static_cast<T>(op.beta), static_cast<T>(0), static_cast<T>(1));
  default:
    return x;
  }
}

/// The host gives these to float alone.
DOVETAIL_INLINE float applyTranscendental(const PostOpJob::Op &op, PostOpKind kind, float x) {
  switch (kind) {
  case PostOpKind::Sigmoid:
    return sigmoid(x);
  case PostOpKind::Tanh:
    return hyperbolicTangent(x);
  case PostOpKind::Gelu:
    return 0.5f * x * (1.0f + errorFunction(x * 0.707106781f));
  case PostOpKind::GeluTanh:
    return 0.5f * x * (1.0f + hyperbolicTangent(0.797884561f * (x + 0.044715f * x * x * x)));
  case PostOpKind::Swish:
    return x * sigmoid(op.alpha * x);
  case PostOpKind::Elu:
    return x < 0 ? op.alpha * exponentialLess1(x) : x;
  default:
    return x;
  }
}

/// Looks once at what the operation is. `operand` gives that of each value.
template <int count, typename T, typename Operand>
DOVETAIL_INLINE void applyToAll(const PostOpJob::Op &op, T (&values)[count], const Operand &operand) {
  auto apply = [&](PostOpKind kind) DOVETAIL_INLINED {
#pragma unroll
    for (int i = 0; i < count; ++i)
      values[i] = applyPostOp(op, kind, values[i], operand(i));
  };
  // Long code, which is there for few values only. The others take their places one after another.
  auto applyByParts = [&](PostOpKind kind) DOVETAIL_INLINED {
    constexpr int part = count < 4 ? count : 4;
    static_assert(count % part == 0);
#pragma unroll 1
    for (int begin = 0; begin < count; begin += part) {
      T results[part];
#pragma unroll
      for (int i = 0; i < part; ++i)
        results[i] = applyTranscendental(op, kind, values[i]);
#pragma unroll
      for (int i = 0; i < count; ++i)
        values[i] = i + part < count ? values[i + part] : results[i + part - count];
    }
  };
  switch (op.kind) {
  case PostOpKind::AddTensor:
    return apply(PostOpKind::AddTensor);
  case PostOpKind::MulTensor:
    return apply(PostOpKind::MulTensor);
  case PostOpKind::Relu:
    return apply(PostOpKind::Relu);
  case PostOpKind::LeakyRelu:
    return apply(PostOpKind::LeakyRelu);
  case PostOpKind::Clip:
    return apply(PostOpKind::Clip);
  case PostOpKind::HardSwish:
    return apply(PostOpKind::HardSwish);
  case PostOpKind::HardSigmoid:
    return apply(PostOpKind::HardSigmoid);
  default:
    break;
  }
  if constexpr (sizeof(T) == sizeof(float))
    switch (op.kind) {
    case PostOpKind::Sigmoid:
      return applyByParts(PostOpKind::Sigmoid);
    case PostOpKind::Tanh:
      return applyByParts(PostOpKind::Tanh);
    case PostOpKind::Gelu:
      return applyByParts(PostOpKind::Gelu);
    case PostOpKind::GeluTanh:
      return applyByParts(PostOpKind::GeluTanh);
    case PostOpKind::Swish:
      return applyByParts(PostOpKind::Swish);
    case PostOpKind::Elu:
      return applyByParts(PostOpKind::Elu);
    default:
      break;
    }
}

/// Computes `vectors` vectors of `width` elements: `first` and those that follow at distances of a block's threads, of
/// `count` in all.
template <typename Access, int width, int vectors>
DOVETAIL_INLINE void postOpVectors(const PostOpJob &job, uint32_t first, uint32_t count) {
  using Stored = typename Access::Stored;
  using Value = typename Access::Value;
  typedef Stored Vector __attribute__((vector_size(width * sizeof(Stored))));
  constexpr int maxLoops = PostOpJob::maxLoops, innermost = maxLoops - 1;
  // Unrolled, so that all this stays in registers.
  uint32_t index[maxLoops][vectors], rest[vectors];
  uint64_t result[vectors], source[vectors];
#pragma unroll
  for (int i = 0; i < vectors; ++i) {
    // Past the end the last one is read again, and nothing is written.
    uint32_t vector = first + i * blockThreads;
    rest[i] = vector < count ? vector : count - 1;
    result[i] = job.result;
    source[i] = job.source;
  }
#pragma unroll
  for (int loop = innermost; loop >= 0; --loop) {
    bool isLoop = job.counts[loop].count != 1;
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
      index[loop][i] = 0;
      if (!isLoop)
        continue;
      uint32_t next = job.counts[loop].quotient(rest[i]);
      index[loop][i] = rest[i] - next * job.counts[loop].count;
      result[i] += static_cast<uint64_t>(index[loop][i] * job.strides[loop]);
      source[i] += static_cast<uint64_t>(index[loop][i] * job.sourceStrides[loop]);
      rest[i] = next;
    }
  }
  auto loadOperands = [&](const PostOpJob::Op &op, Vector(&operands)[vectors]) DOVETAIL_INLINED {
#pragma unroll
    for (int i = 0; i < vectors; ++i) {
      operands[i] = Vector{};
      if (!op.operand)
        continue;
      uint64_t address = op.operand;
#pragma unroll
      for (int loop = 0; loop < maxLoops; ++loop)
        address += static_cast<uint64_t>(index[loop][i] * op.strides[loop]);
      if (op.strides[innermost] != 0)
        operands[i] = loadGlobal<Vector>(address);
      else
        operands[i] = Vector{} + loadGlobal<Stored>(address);
    }
  };
  Vector stored[vectors], operands[vectors], next[vectors] = {};
#pragma unroll
  for (int i = 0; i < vectors; ++i)
    stored[i] = job.source ? loadGlobal<Vector>(source[i]) : Vector{};
  if (job.ops > 0)
    loadOperands(job.op[0], next);
  Value values[vectors * width];
#pragma unroll
  for (int i = 0; i < vectors * width; ++i)
    values[i] = Access::load(stored[i / width][i % width]);
#pragma unroll 1
  for (int op = 0; op < job.ops; ++op) {
#pragma unroll
    for (int i = 0; i < vectors; ++i)
      operands[i] = next[i];
    // On its way while this operation waits for its own.
    if (op + 1 < job.ops)
      loadOperands(job.op[op + 1], next);
    applyToAll(job.op[op], values,
               [&](int i) DOVETAIL_INLINED { return Access::load(operands[i / width][i % width]); });
  }
#pragma unroll
  for (int i = 0; i < vectors; ++i) {
#pragma unroll
    for (int k = 0; k < width; ++k)
      stored[i][k] = Access::store(values[i * width + k]);
    if (first + i * blockThreads < count)
      storeGlobal(result[i], stored[i]);
  }
}

/// Vectors that a thread computes, all under way at once, and a block.
constexpr int vectorsOfThread = 2;
constexpr int64_t vectorsOfBlock = vectorsOfThread * blockThreads;

template <typename Access> DOVETAIL_INLINE void postOpsOf(const PostOpJob &job, uint32_t first, uint32_t count) {
  if (job.width == 1)
    postOpVectors<Access, 1, vectorsOfThread>(job, first, count);
  else
    postOpVectors<Access, 16 / sizeof(typename Access::Stored), vectorsOfThread>(job, first, count);
}

/// Applies a thread of a block to its part of `count` vectors. There are blocks for all of them.
DOVETAIL_INLINE void applyPostOps(const PostOpJob &job, int64_t count, int64_t block, uint32_t thread) {
  if (block * vectorsOfBlock + thread >= count)
    return;
  auto first = static_cast<uint32_t>(block * vectorsOfBlock) + thread, vectors = static_cast<uint32_t>(count);
  switch (job.type) {
  case JobType::F16:
    return postOpsOf<HalfAccess>(job, first, vectors);
  case JobType::BF16:
    return postOpsOf<BrainFloatAccess>(job, first, vectors);
  case JobType::F64:
    return postOpsOf<PlainAccess<double>>(job, first, vectors);
  default:
    return postOpsOf<PlainAccess<float>>(job, first, vectors);
  }
}

} // namespace dovetail::runtime::device

#endif // DOVETAIL_RUNTIME_LIB_BACKEND_DEVICE_KERNELS_POSTOPKERNELS_H
