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

WindowNeed dovetail::runtime::needOf(const Window &window, Interval out, int64_t extent) {
  Interval need = {out.lo * window.stride - window.pad, (out.hi - 1) * window.stride - window.pad + window.reach()};
  Interval used = need.intersect({0, extent});
  return {used, used.lo - need.lo, need.hi - used.hi};
}

WindowNeed dovetail::runtime::transposedNeedOf(const Window &window, Interval out, int64_t extent) {
  // Result index o gets input i when o = i * stride - pad + k * dilation for some k.
  Interval used = {layout::ceilDiv(out.lo + window.pad - (window.reach() - 1), window.stride),
                   layout::floorDiv(out.hi - 1 + window.pad, window.stride) + 1};
  used = used.intersect({0, extent});
  Interval reach = transposedReach(window, used);
  return {used, out.lo - reach.lo, reach.hi - out.hi};
}

Interval dovetail::runtime::transposedReach(const Window &window, Interval used) {
  return {used.lo * window.stride - window.pad, (used.hi - 1) * window.stride - window.pad + window.reach()};
}
