//===- Halves.h - Floating-point types of 16 bits --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines conversions of f16 and bf16 that share nothing with those of the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_RUNTIME_HALVES_H
#define DOVETAIL_TEST_RUNTIME_HALVES_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace dovetail::test {

/// A format of 16 bits: its bits of exponent and of mantissa.
struct HalfFormat {
  int exponent, mantissa;

  int bias() const { return (1 << (exponent - 1)) - 1; }
};

inline constexpr HalfFormat kF16{5, 10}, kBF16{8, 7};

/// The number that `bits` stand for.
inline double fromHalf(uint16_t bits, HalfFormat format) {
  int exponent = bits >> format.mantissa & ((1 << format.exponent) - 1), mantissa = bits & ((1 << format.mantissa) - 1);
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << format.exponent) - 1)
    return mantissa ? NAN : sign * INFINITY;
  double fraction = std::ldexp(mantissa, -format.mantissa) + (exponent ? 1 : 0);
  return sign * std::ldexp(fraction, (exponent ? exponent : 1) - format.bias());
}

/// The nearest number of the format, to even where two are as near.
inline uint16_t toHalf(double value, HalfFormat format) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  int infinity = ((1 << format.exponent) - 1) << format.mantissa;
  if (std::isnan(value))
    return static_cast<uint16_t>(infinity | 1 << (format.mantissa - 1));
  double size = std::fabs(value);
  int exponent = 1 - format.bias();
  if (size > 0 && std::isfinite(size))
    std::frexp(size, &exponent);
  // In units of the last place, which is no smaller than that of the least normal number.
  int place = std::max(exponent - 1, 1 - format.bias()) - format.mantissa;
  double units = std::isfinite(size) ? std::nearbyint(std::ldexp(size, -place)) : INFINITY;
  // Consecutive numbers have consecutive bits, across powers of two and from subnormal to normal ones.
  double bits = units + std::ldexp(place + format.mantissa + format.bias() - 1, format.mantissa);
  return static_cast<uint16_t>(sign | static_cast<int>(std::fmin(bits, infinity)));
}

} // namespace dovetail::test

#endif // DOVETAIL_TEST_RUNTIME_HALVES_H
