//===- Interval.cpp - Half-open intervals of global coordinates -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Interval.h"

#include <ostream>

using namespace dovetail::layout;

std::string Interval::str() const { return "[" + std::to_string(lo) + ", " + std::to_string(hi) + ")"; }

std::vector<Interval> dovetail::layout::subtract(Interval a, Interval b) {
  Interval common = a.intersect(b);
  if (common.empty())
    return a.empty() ? std::vector<Interval>() : std::vector<Interval>{a};
  std::vector<Interval> parts;
  if (a.lo < common.lo)
    parts.push_back({a.lo, common.lo});
  if (common.hi < a.hi)
    parts.push_back({common.hi, a.hi});
  return parts;
}

std::ostream &dovetail::layout::operator<<(std::ostream &os, Interval interval) { return os << interval.str(); }
