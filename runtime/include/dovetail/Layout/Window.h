//===- Window.h - Windows in accesses -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Window, the form of access that libraries know besides single loops, and what a rank needs of a dimension
// that is accessed.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_WINDOW_H
#define DOVETAIL_LAYOUT_WINDOW_H

#include "dovetail/Layout/Box.h"
#include "dovetail/Layout/IndexExpr.h"

namespace dovetail::layout {

/// What library calls of plans have at most: spatial dimensions; strides, dilations and pads; elements of a
/// convolution's input with its padding, or of a transposed one's result before that is cut off; and dimensions of a
/// product.
inline constexpr size_t maxWindows = 3;
inline constexpr int64_t maxWindowStep = int64_t(1) << 20;
inline constexpr int64_t maxPaddedVolume = int64_t(1) << 50;
inline constexpr size_t maxProductDims = 12;

/// A sliding window: index o of the result accesses `o * stride - pad + t * dilation` for each tap t < kernel. One that
/// is transposed accesses the other way round, each i with `o = i * stride - pad + t * dilation` for a tap.
struct Window {
  int64_t kernel = 1, stride = 1, dilation = 1, pad = 0;
  bool isTransposed = false;

  /// Extent of the dilated kernel.
  int64_t reach() const { return (kernel - 1) * dilation + 1; }
  /// Where it is at tap `tap` of index `index` of the result.
  AccessDim at(const IndexExpr &index, const IndexExpr &tap) const;
  /// The indices of the result that the operand's `used` contribute to, if it is transposed: all that there would be
  /// in a result without ends.
  Interval resultOf(Interval used) const;

  /// The inverse of `at`: the window whose index is loop `loop` and whose tap is loop `tap`, of extent `kernel`.
  /// Nothing if `access` is something else.
  static std::optional<Window> find(const AccessDim &access, int loop, int tap, int64_t kernel);

  friend bool operator==(const Window &, const Window &) = default;
};

/// Whether an iteration in the box `loops` reads `element`. Exact for sums of up to two loops whose ranges are longer
/// than 1; of others some that none reads are said to be read.
bool isRead(const AccessDim &access, int64_t element, std::span<const Interval> loops);

/// What iterations need of a dimension of a tensor.
struct DimNeed {
  Interval inside;                ///< In the tensor.
  int64_t before = 0, behind = 0; ///< Positions outside of that, up to the ends of what they span.
};

/// What iterations in the box `loops` need of `tensor`, the indices of a dimension, of which `held` are at hand. They
/// may skip the first or last elements of what they span: these are part of `inside` if they are held, but need not be.
DimNeed needInside(const AccessDim &access, std::span<const Interval> loops, Interval tensor, Interval held);

/// `AccessDim::need` of all dimensions.
Box needOf(std::span<const AccessDim> access, std::span<const Interval> loops);

/// `d2 + d4 - 1`, as in messages. With a divisor `exact((d2 - d4 + 1) / 2)`, with a border `edge(d0 - 1, [0, 4))`.
std::string str(const AccessDim &access);

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_WINDOW_H
