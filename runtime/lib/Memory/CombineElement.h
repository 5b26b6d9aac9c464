//===- CombineElement.h - Two contributions to an element -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how two contributions to an element are combined, for host and devices alike: so that both get the same bits.
// Compiled for devices too, without a standard library.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_MEMORY_COMBINEELEMENT_H
#define DOVETAIL_RUNTIME_MEMORY_COMBINEELEMENT_H

#include <stdint.h>

namespace dovetail::runtime {

/// How elements are stored and in which type they are combined.
template <typename T> struct PlainAccess {
  using Stored = T;
  using Value = T;
  static Value load(Stored value) { return value; }
  static Stored store(Value value) { return value; }
};

struct HalfAccess {
  using Stored = _Float16;
  using Value = float;
  static Value load(Stored value) { return static_cast<float>(value); }
  static Stored store(Value value) { return static_cast<_Float16>(value); }
};

struct BrainFloatAccess {
  using Stored = uint16_t;
  using Value = float;
  static Value load(Stored value) {
    uint32_t bits = static_cast<uint32_t>(value) << 16;
    float result;
    __builtin_memcpy(&result, &bits, sizeof(result));
    return result;
  }
  static Stored store(Value value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    if (value != value)
      return static_cast<uint16_t>((bits >> 16) | 0x40);
    // Round to nearest, ties to even.
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

/// Of numbers that are not, the first is taken.
template <typename T> T combineMax(T a, T b) {
  if (a != a)
    return a;
  return a >= b ? a : b;
}

template <typename T> T combineMin(T a, T b) {
  if (a != a)
    return a;
  return a <= b ? a : b;
}

/// Integers wrap around.
template <typename T> T combineSum(T a, T b) {
  if constexpr (static_cast<T>(0.5) == 0)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

template <typename T> T combineProd(T a, T b) {
  if constexpr (static_cast<T>(0.5) == 0)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_MEMORY_COMBINEELEMENT_H
