//===- Interval.h - Half-open intervals of global coordinates -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_INTERVAL_H
#define DOVETAIL_LAYOUT_INTERVAL_H

#include <algorithm>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace dovetail::layout {

/// The half-open interval `[lo, hi)` in global coordinates of one dimension.
/// It is empty when `hi <= lo`. An interval is a set: all empty intervals are
/// equal, wherever they lie, and operations return the canonical one, `[0, 0)`.
struct Interval {
  int64_t lo = 0;
  int64_t hi = 0;

  bool empty() const { return hi <= lo; }
  /// Number of elements; 0 when empty.
  int64_t size() const { return empty() ? 0 : hi - lo; }
  /// This interval, or `[0, 0)` when it is empty. Hash and order this form.
  Interval canonical() const { return empty() ? Interval{0, 0} : *this; }

  bool contains(int64_t index) const { return lo <= index && index < hi; }
  /// Whether every element of `other` is in this interval.
  bool contains(Interval other) const { return other.empty() || (lo <= other.lo && other.hi <= hi); }
  Interval intersect(Interval other) const {
    return Interval{std::max(lo, other.lo), std::min(hi, other.hi)}.canonical();
  }
  /// The smallest interval that contains both.
  Interval hull(Interval other) const {
    if (empty())
      return other.canonical();
    if (other.empty())
      return *this;
    return Interval{std::min(lo, other.lo), std::max(hi, other.hi)};
  }
  /// This interval moved by `offset`.
  Interval shifted(int64_t offset) const { return empty() ? Interval{} : Interval{lo + offset, hi + offset}; }
  /// `[lo, hi)`, as in messages.
  std::string str() const;

  friend bool operator==(const Interval &a, const Interval &b) {
    return (a.empty() && b.empty()) || (a.lo == b.lo && a.hi == b.hi);
  }
};

/// The parts of `a` outside of `b`, in ascending order: none, one or two.
std::vector<Interval> subtract(Interval a, Interval b);

std::ostream &operator<<(std::ostream &os, Interval interval);

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_INTERVAL_H
