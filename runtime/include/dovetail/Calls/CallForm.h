//===- CallForm.h - What libraries take of accesses -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the forms of library calls, as they are found in the accesses of a call's operands: the compiler checks plans
// by them, and the runtime has from them what it tells libraries.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CALLS_CALLFORM_H
#define DOVETAIL_CALLS_CALLFORM_H

#include "dovetail/Calls/ContractionRoles.h"
#include "dovetail/Layout/Window.h"

namespace dovetail::calls {

using layout::AccessDim;
using layout::Box;
using layout::IndexExpr;
using layout::Window;

/// So many products of integers of 8 bits, one with a sign and one without, have a sum that f32 holds, whatever they
/// are.
inline constexpr int64_t mostExactTerms = (int64_t(1) << 24) / (255 * 128);

/// A convolution over [N, C, spatial...], or with `isTransposed` the gradient of one. Its loops are the dimensions of
/// the result, the input channels of a group, and a tap for each spatial dimension.
struct ConvolutionForm {
  int64_t groups = 1;
  bool isTransposed = false;
  std::vector<Window> windows; ///< For each spatial dimension.

  /// Taps of a window, in all dimensions.
  int64_t numTaps() const {
    int64_t taps = 1;
    for (const Window &window : windows)
      taps *= window.kernel;
    return taps;
  }

  /// Found in the accesses of input and weights, in loops of these extents; nothing if they are something else, or if a
  /// window has no taps.
  static std::optional<ConvolutionForm> find(std::span<const AccessDim> input, std::span<const AccessDim> weights,
                                             std::span<const int64_t> loops);
};

/// Windows over [N, C, spatial...], all of whose elements are combined. Its loops are the dimensions of the result, and
/// a tap for each spatial dimension.
struct PoolForm {
  std::vector<Window> windows; ///< For each spatial dimension; none is transposed.

  static std::optional<PoolForm> find(std::span<const AccessDim> input, std::span<const int64_t> loops);
};

/// A matrix product of the last two dimensions of both factors. Its loops are the dimensions of the result, then that
/// which is summed over. Dimensions before the last two are those of the result, or are accessed at 0.
struct ProductForm {
  bool transposesA = false, transposesB = false; ///< The last two dimensions are in the other order.

  static std::optional<ProductForm> find(std::span<const AccessDim> a, std::span<const AccessDim> b,
                                         std::span<const int64_t> loops);
};

/// A Fourier transform along dimension `axis`, of lines whose points are in the last dimension: real and imaginary
/// part, or real numbers alone. Its loops are the dimensions of the result, then the points of a line that is read, and
/// their parts. Of a spectrum of real numbers there are elements 0 ... length / 2.
struct TransformForm {
  size_t axis = 0;
  int64_t length = 0;
  bool readsReal = false, writesReal = false; ///< Not both.

  /// What is read for a box of the result, which has all of its lines.
  Box readBox(const Box &result) const;
  static std::optional<TransformForm> find(std::span<const AccessDim> input, std::span<const int64_t> loops);
};

/// Whether operands are read as attention does: queries [batch..., M, D], keys [batch..., N, D], values [batch..., N,
/// E], and maybe a mask that broadcasts to [batch..., M, N]. The loops are the dimensions of the result, [batch..., M,
/// E], then keys and depth. Where heads follow each other in columns, and what else may be, `AttentionForm` says.
bool isAttention(std::span<const AccessDims> accesses, std::span<const int64_t> loops);

/// The operand's channel that is channel `channel` of the group of `outer`, a channel that is one of `outerPerGroup` of
/// its group, if groups have `perGroup` channels of the operand.
IndexExpr channelOfGroup(int64_t groups, const IndexExpr &outer, int64_t outerPerGroup, const IndexExpr &channel,
                         int64_t perGroup);
/// Which one of its group `outer` is.
IndexExpr channelInGroup(int64_t groups, const IndexExpr &outer, int64_t outerPerGroup);

/// Whether a tensor of `shape` is what `access` goes through in loops of these extents: all of it, and nothing outside,
/// but for dimensions from `firstWindow` on.
bool fits(std::span<const AccessDim> access, std::span<const int64_t> shape, std::span<const int64_t> loops,
          size_t firstWindow);

} // namespace dovetail::calls

#endif // DOVETAIL_CALLS_CALLFORM_H
