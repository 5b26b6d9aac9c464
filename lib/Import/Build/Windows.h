//===- Windows.h - Windows of convolutions and pooling -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Windows: what convolutions and pooling share.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_WINDOWS_H
#define DOVETAIL_LIB_IMPORT_BUILD_WINDOWS_H

#include "GraphBuilder.h"

namespace dovetail::importer {

/// Windows and strides larger than this are mistakes; products and sums of a few such numbers do not overflow.
inline constexpr int64_t kMaxWindowNumber = int64_t(1) << 30;

/// The windows of an operator on [N, C, spatial...], one entry for each spatial dimension.
struct Windows {
  llvm::SmallVector<int64_t> kernel, strides, dilations, padsLow, padsHigh;
  /// Windows are placed by the extent: pads are those that ONNX calls SAME_UPPER or SAME_LOWER, or there is a result
  /// for the last elements also where they are too few for a window.
  enum class AutoPad { None, SameUpper, SameLower } autoPad = AutoPad::None;
  bool isCeil = false;

  bool isSame() const { return autoPad != AutoPad::None; }

  unsigned getRank() const { return kernel.size(); }
  /// Elements of the operand between the first and the last of a window, both included.
  int64_t getReach(unsigned dim) const { return (kernel[dim] - 1) * dilations[dim] + 1; }

  /// `input`, where it is bounded along spatial dimensions, with what changes nothing when elements are combined by
  /// `kind` behind its end, as if it was padded with that. Its windows do not vary.
  mlir::Value fillTails(GraphBuilder &builder, mlir::Value input, ReduceKind kind) const;
  /// `result`, of such an input, bounded by how many windows there are of `input`, as it was before.
  mlir::Value boundResult(GraphBuilder &builder, mlir::Value input, mlir::Value result) const;

  /// Whether windows along a bounded dimension are other ones than those of the bound. Automatic pads and `ceil_mode`
  /// place windows by the extent. If `countsElements`, pads make a difference, too.
  bool varies(GraphBuilder &builder, mlir::Value input, bool countsElements) const;
  /// `input` with all pads in it, as neutral elements of `kind`: windows then begin at its first element and need none.
  /// The pads are none from then on, and `counts` those of a result. `numbers`, if it is given, gets for each spatial
  /// dimension how many elements, and pads if `countsPads`, a window has: f32, broadcast to the result.
  mlir::Value arrange(GraphBuilder &builder, mlir::Value input, ReduceKind kind, Counts &counts,
                      llvm::SmallVectorImpl<mlir::Value> *numbers = nullptr, bool countsPads = false);

  /// Sets the pads to those of `autoPad`, for the extents of `input`.
  void setAutoPads(mlir::Value input);
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_WINDOWS_H
