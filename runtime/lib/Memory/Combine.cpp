//===- Combine.cpp - Reductions of partial values -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Combine.h"

#include <cmath>
#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::ReductionKind;

namespace {

/// How elements are stored and in which type they are combined.
template <typename T> struct Plain {
  using Stored = T;
  using Value = T;
  static Value load(Stored value) { return value; }
  static Stored store(Value value) { return value; }
};

struct Half {
  using Stored = _Float16;
  using Value = float;
  static Value load(Stored value) { return static_cast<float>(value); }
  static Stored store(Value value) { return static_cast<_Float16>(value); }
};

struct BrainFloat {
  using Stored = uint16_t;
  using Value = float;
  static Value load(Stored value) {
    uint32_t bits = static_cast<uint32_t>(value) << 16;
    float result;
    std::memcpy(&result, &bits, sizeof(result));
    return result;
  }
  static Stored store(Value value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if (std::isnan(value))
      return static_cast<uint16_t>((bits >> 16) | 0x40);
    // Round to nearest, ties to even.
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

template <typename T> T maximum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a))
      return a;
  return a >= b ? a : b;
}

template <typename T> T minimum(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a))
      return a;
  return a <= b ? a : b;
}

/// Integers wrap around.
template <typename T> T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

template <typename T> T product(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

template <typename Access, typename Op>
void combineRuns(const BoxPair &pair, std::byte *target, const std::byte *source, Op op) {
  using Stored = typename Access::Stored;
  pair.forEachRun(target, source,
                  [&](std::byte *to, const std::byte *from, int64_t count, int64_t toStride, int64_t fromStride) {
                    auto combineOne = [&](std::byte *a, const std::byte *b) {
                      Stored left, right;
                      std::memcpy(&left, a, sizeof(Stored));
                      std::memcpy(&right, b, sizeof(Stored));
                      left = Access::store(op(Access::load(left), Access::load(right)));
                      std::memcpy(a, &left, sizeof(Stored));
                    };
                    // Constant strides let the compiler vectorise.
                    constexpr int64_t size = sizeof(Stored);
                    if (toStride == size && fromStride == size)
                      for (int64_t i = 0; i < count; ++i)
                        combineOne(to + i * size, from + i * size);
                    else
                      for (int64_t i = 0; i < count; ++i)
                        combineOne(to + i * toStride, from + i * fromStride);
                  });
}

/// Chan's formula for two sets of numbers given by count, mean and sum of squared deviations.
template <typename Access>
void combineMoments(const BoxPair &pair, std::byte *target, const std::byte *source, int64_t toMoment,
                    int64_t fromMoment) {
  using Stored = typename Access::Stored;
  auto load = [](const std::byte *address) {
    Stored value;
    std::memcpy(&value, address, sizeof(Stored));
    return static_cast<double>(Access::load(value));
  };
  auto store = [](std::byte *address, double value) {
    Stored stored = Access::store(static_cast<typename Access::Value>(value));
    std::memcpy(address, &stored, sizeof(Stored));
  };
  pair.forEachRun(target, source,
                  [&](std::byte *to, const std::byte *from, int64_t count, int64_t toStride, int64_t fromStride) {
                    for (int64_t i = 0; i < count; ++i, to += toStride, from += fromStride) {
                      double countA = load(to), countB = load(from);
                      if (countB == 0)
                        continue;
                      double total = countA + countB;
                      double meanA = countA == 0 ? 0 : load(to + toMoment);
                      double delta = load(from + fromMoment) - meanA;
                      double squares = (countA == 0 ? 0 : load(to + 2 * toMoment)) + load(from + 2 * fromMoment);
                      store(to, total);
                      store(to + toMoment, meanA + delta * countB / total);
                      store(to + 2 * toMoment, squares + delta * delta * countA * countB / total);
                    }
                  });
}

template <typename Access>
void combine(ReductionKind kind, const BoxPair &pair, std::byte *target, const std::byte *source, int64_t toMoment,
             int64_t fromMoment) {
  using Value = typename Access::Value;
  switch (kind) {
  case ReductionKind::None:
    return;
  case ReductionKind::Sum:
    return combineRuns<Access>(pair, target, source, sum<Value>);
  case ReductionKind::Prod:
    return combineRuns<Access>(pair, target, source, product<Value>);
  case ReductionKind::Max:
    return combineRuns<Access>(pair, target, source, maximum<Value>);
  case ReductionKind::Min:
    return combineRuns<Access>(pair, target, source, minimum<Value>);
  case ReductionKind::Moments:
    return combineMoments<Access>(pair, target, source, toMoment, fromMoment);
  }
}

/// Booleans are 0 or 1: their sum and maximum is "or", their product and minimum is "and".
ReductionKind onBooleans(ReductionKind kind) { return kind == ReductionKind::Sum ? ReductionKind::Max : kind; }

} // namespace

Combination::Combination(ReductionKind kind, const MemoryView &target, const MemoryView &source, const layout::Box &box)
    : kind(kind), type(target.type) {
  layout::Box firsts = box;
  if (kind == ReductionKind::Moments) {
    int last = box.rank() - 1;
    firsts[last] = {0, 1};
    targetMoment = target.offset(last, 1) * elementSize(type);
    sourceMoment = source.offset(last, 1) * elementSize(type);
  }
  BoxPair::append(target, source, firsts, pairs);
}

void Combination::run(std::byte *target, const std::byte *source) const {
  for (const BoxPair &pair : pairs) {
    auto apply = [&]<typename Access>(Access, ReductionKind kind) {
      combine<Access>(kind, pair, target, source, targetMoment, sourceMoment);
    };
    switch (type) {
    case ElementType::F32:
      apply(Plain<float>(), kind);
      break;
    case ElementType::F64:
      apply(Plain<double>(), kind);
      break;
    case ElementType::F16:
      apply(Half(), kind);
      break;
    case ElementType::BF16:
      apply(BrainFloat(), kind);
      break;
    case ElementType::I8:
      apply(Plain<int8_t>(), kind);
      break;
    case ElementType::I16:
      apply(Plain<int16_t>(), kind);
      break;
    case ElementType::I32:
      apply(Plain<int32_t>(), kind);
      break;
    case ElementType::I64:
      apply(Plain<int64_t>(), kind);
      break;
    case ElementType::U8:
      apply(Plain<uint8_t>(), kind);
      break;
    case ElementType::U16:
      apply(Plain<uint16_t>(), kind);
      break;
    case ElementType::U32:
      apply(Plain<uint32_t>(), kind);
      break;
    case ElementType::U64:
      apply(Plain<uint64_t>(), kind);
      break;
    case ElementType::Bool:
      apply(Plain<uint8_t>(), onBooleans(kind));
      break;
    }
  }
}
