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

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_POSTOPKERNELS_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_POSTOPKERNELS_H

#include "BoxKernels.h"

#include "dovetail/runtime/PostOpKind.h"

namespace dovetail::runtime::cuda {

/// A chain of operations on each element of a source, zeros if there is none. Strides are in bytes, 0 where an operand
/// repeats.
struct PostOpJob {
  static constexpr int maxLoops = 8, maxOps = 8;
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
  uint32_t counts[maxLoops]; ///< Outermost first; 1 where there is no loop. Their product fits, too.
  int64_t strides[maxLoops], sourceStrides[maxLoops];
  Op op[maxOps];
};

/// The exponential function, to 1 ulp. The host computes the same bits.
inline float exponential(float x) {
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
inline float exponentialLess1(float x) {
  if (x < -0.5f || x > 0.5f || x != x)
    return exponential(x) - 1.0f;
  float sum = 1.0f / 40320.0f;
  constexpr float factors[] = {1.0f / 5040.0f, 1.0f / 720.0f, 1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f};
  for (float factor : factors)
    sum = __builtin_fmaf(sum, x, factor);
  return __builtin_fmaf(sum * x, x, x);
}

inline float hyperbolicTangent(float x) {
  float less1 = exponentialLess1(-2.0f * __builtin_fabsf(x));
  return __builtin_copysignf(-less1 / (2.0f + less1), x);
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

/// The error function, by two polynomials.
inline float errorFunction(float x) {
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

template <typename T> T applyPostOp(const PostOpJob::Op &op, T x, T operand) {
  float v = static_cast<float>(x);
  switch (op.kind) {
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
  // The host gives these to float alone.
  case PostOpKind::Sigmoid:
    return static_cast<T>(sigmoid(v));
  case PostOpKind::Tanh:
    return static_cast<T>(hyperbolicTangent(v));
  case PostOpKind::Gelu:
    return static_cast<T>(0.5f * v * (1.0f + errorFunction(v * 0.707106781f)));
  case PostOpKind::GeluTanh:
    return static_cast<T>(0.5f * v * (1.0f + hyperbolicTangent(0.797884561f * (v + 0.044715f * v * v * v))));
  case PostOpKind::Swish:
    return static_cast<T>(v * sigmoid(op.alpha * v));
  case PostOpKind::Elu:
    return static_cast<T>(v < 0 ? op.alpha * exponentialLess1(v) : v);
  }
  return x;
}

template <typename Access> void postOpElement(const PostOpJob &job, uint32_t element) {
  using Stored = typename Access::Stored;
  using Value = typename Access::Value;
  uint64_t result = job.result, source = job.source;
  // Unrolled, so that all this stays in registers.
  uint32_t index[PostOpJob::maxLoops];
#pragma unroll
  for (int loop = PostOpJob::maxLoops - 1; loop >= 0; --loop) {
    index[loop] = 0;
    if (job.counts[loop] == 1)
      continue;
    uint32_t next = element / job.counts[loop];
    index[loop] = element - next * job.counts[loop];
    result += static_cast<uint64_t>(index[loop] * job.strides[loop]);
    source += static_cast<uint64_t>(index[loop] * job.sourceStrides[loop]);
    element = next;
  }
  Value value = job.source ? Access::load(*reinterpret_cast<const Stored *>(source)) : static_cast<Value>(0);
  for (int op = 0; op < job.ops; ++op) {
    Value operand = 0;
    if (uint64_t address = job.op[op].operand) {
#pragma unroll
      for (int loop = 0; loop < PostOpJob::maxLoops; ++loop)
        address += static_cast<uint64_t>(index[loop] * job.op[op].strides[loop]);
      operand = Access::load(*reinterpret_cast<const Stored *>(address));
    }
    value = applyPostOp<Value>(job.op[op], value, operand);
  }
  *reinterpret_cast<Stored *>(result) = Access::store(value);
}

/// What thread `index` of `threads` applies.
inline void applyPostOps(const PostOpJob &job, int64_t elements, int64_t index, int64_t threads) {
  for (int64_t element = index; element < elements; element += threads) {
    switch (job.type) {
    case JobType::F16:
      postOpElement<HalfAccess>(job, static_cast<uint32_t>(element));
      break;
    case JobType::BF16:
      postOpElement<BrainFloatAccess>(job, static_cast<uint32_t>(element));
      break;
    case JobType::F64:
      postOpElement<PlainAccess<double>>(job, static_cast<uint32_t>(element));
      break;
    default:
      postOpElement<PlainAccess<float>>(job, static_cast<uint32_t>(element));
    }
  }
}

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_POSTOPKERNELS_H
