//===- WindowGeometry.h - Windows over boxes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what a sliding window needs to compute a box of its result, in global coordinates.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_COMMON_WINDOWGEOMETRY_H
#define DOVETAIL_RUNTIME_BACKEND_COMMON_WINDOWGEOMETRY_H

#include "dovetail/Layout/Interval.h"

#include <cstdint>

namespace dovetail::runtime {

/// One spatial dimension of a convolution or pooling.
struct Window {
  int64_t kernel, stride, dilation, pad;

  /// Extent of the dilated kernel.
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
};

/// The input that a part of the result needs, and the padding around that. With `used` empty, all is padding.
struct WindowNeed {
  layout::Interval used;
  int64_t padLo = 0, padHi = 0;
};

/// For the result indices `out` of a window over an input of `extent`, of which the rank holds `held`. Dilated and
/// strided windows may skip the first or last elements of what they span: these are used if they are held, but need not
/// be.
WindowNeed needOf(const Window &window, layout::Interval out, int64_t extent, layout::Interval held);

/// `needOf` for a transposed convolution: `padLo` and `padHi` are what is cut off from the full result of `used`; they
/// may be negative where `out` reaches further than that.
WindowNeed transposedNeedOf(const Window &window, layout::Interval out, int64_t extent, layout::Interval held);

/// Whether some window of `out` has all its elements outside of `used`; a dilated one perhaps on both sides of it.
bool someReadPaddingOnly(const Window &window, layout::Interval out, layout::Interval used);

/// The result indices that `used` inputs of a transposed convolution contribute to.
layout::Interval transposedReach(const Window &window, layout::Interval used);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_COMMON_WINDOWGEOMETRY_H
