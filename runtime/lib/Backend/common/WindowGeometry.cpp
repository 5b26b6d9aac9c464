//===- WindowGeometry.cpp - Windows over boxes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WindowGeometry.h"

#include "dovetail/Layout/Arith.h"

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Interval;

namespace {

/// Whether some multiple of `factor`, at most `count - 1` times it, takes `base` into `interval` at a multiple of
/// `step` from its beginning.
bool reaches(int64_t base, int64_t factor, int64_t count, Interval interval, int64_t step) {
  for (int64_t k = 0; k < count; ++k) {
    int64_t position = base + k * factor;
    if (interval.contains(position) && (position - interval.lo) % step == 0)
      return true;
  }
  return false;
}

/// `used` without elements at its ends that are not held and not needed.
template <typename IsNeeded> Interval shrink(Interval used, Interval held, IsNeeded isNeeded) {
  while (!used.empty() && !held.contains(used.lo) && !isNeeded(used.lo))
    ++used.lo;
  while (!used.empty() && !held.contains(used.hi - 1) && !isNeeded(used.hi - 1))
    --used.hi;
  return used.canonical();
}

} // namespace

WindowNeed dovetail::runtime::needOf(const Window &window, Interval out, int64_t extent, Interval held) {
  Interval need = {out.lo * window.stride - window.pad, (out.hi - 1) * window.stride - window.pad + window.reach()};
  Interval used = need.intersect({0, extent});
  // Input i is read when i - k * dilation is the beginning of a window.
  Interval begins = {need.lo, need.hi - window.reach() + 1};
  used =
      shrink(used, held, [&](int64_t i) { return reaches(i, -window.dilation, window.kernel, begins, window.stride); });
  return {used, used.lo - need.lo, need.hi - used.hi};
}

WindowNeed dovetail::runtime::transposedNeedOf(const Window &window, Interval out, int64_t extent, Interval held) {
  // Result index o gets input i when o = i * stride - pad + k * dilation for some k.
  Interval used = {layout::ceilDiv(out.lo + window.pad - (window.reach() - 1), window.stride),
                   layout::floorDiv(out.hi - 1 + window.pad, window.stride) + 1};
  used = shrink(used.intersect({0, extent}), held, [&](int64_t i) {
    return reaches(i * window.stride - window.pad, window.dilation, window.kernel, out, 1);
  });
  Interval reach = transposedReach(window, used);
  return {used, out.lo - reach.lo, reach.hi - out.hi};
}

bool dovetail::runtime::someReadPaddingOnly(const Window &window, Interval out, Interval used) {
  for (int64_t o = out.lo; o < out.hi; ++o)
    if (!reaches(o * window.stride - window.pad, window.dilation, window.kernel, used, 1))
      return true;
  return false;
}

Interval dovetail::runtime::transposedReach(const Window &window, Interval used) {
  return {used.lo * window.stride - window.pad, (used.hi - 1) * window.stride - window.pad + window.reach()};
}
