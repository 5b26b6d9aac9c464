//===- Arith.h - Integer division that rounds as box arithmetic needs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_ARITH_H
#define DOVETAIL_LAYOUT_ARITH_H

#include <cstdint>

namespace dovetail::layout {

/// Largest integer not above `a / b`. `b` must not be zero.
constexpr int64_t floorDiv(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

/// Smallest integer not below `a / b`. `b` must not be zero.
constexpr int64_t ceilDiv(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) == (b < 0)) ? quotient + 1 : quotient;
}

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_ARITH_H
