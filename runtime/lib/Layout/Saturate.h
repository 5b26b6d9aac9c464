//===- Saturate.h - Arithmetic that does not overflow -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines wide integers, in which sums and products of positions are exact, and the bound at which results saturate.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LAYOUT_SATURATE_H
#define DOVETAIL_RUNTIME_LAYOUT_SATURATE_H

#include "dovetail/Layout/Arith.h"

#include <algorithm>
#include <cstdint>

namespace dovetail::layout {

__extension__ using Wide = __int128;

/// Stands for "no bound", and bounds every result.
inline constexpr int64_t unbounded = int64_t(1) << 62;

inline int64_t saturate(Wide value) {
  return static_cast<int64_t>(std::clamp<Wide>(value, -Wide(unbounded), Wide(unbounded)));
}

/// As `floorDiv` and `ceilDiv` in Arith.h.
inline Wide floorDivWide(Wide a, Wide b) {
  Wide quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}
inline Wide ceilDivWide(Wide a, Wide b) { return -floorDivWide(-a, b); }

/// `floor((a * b + c) / d)`. `d` must be positive.
inline int64_t floorDivSum(int64_t a, int64_t b, int64_t c, int64_t d) {
  // Wide numbers are slow to divide, and hardly ever needed: 2^60 + 2^61 is below the bound.
  auto isBelow = [](int64_t value, int64_t bound) { return -bound <= value && value <= bound; };
  constexpr int64_t small = int64_t(1) << 30;
  if (isBelow(a, small) && isBelow(b, small) && isBelow(c, unbounded / 2))
    return floorDiv(a * b + c, d);
  return saturate(floorDivWide(Wide(a) * b + c, d));
}

} // namespace dovetail::layout

#endif // DOVETAIL_RUNTIME_LAYOUT_SATURATE_H
