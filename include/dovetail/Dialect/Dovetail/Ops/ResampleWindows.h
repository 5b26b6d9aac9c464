//===- ResampleWindows.h - Windows of resizes that shrink --------------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares which neighbours count how much in a resize with antialias.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_RESAMPLEWINDOWS_H
#define DOVETAIL_DIALECT_DOVETAIL_OPS_RESAMPLEWINDOWS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// One dimension of a resize with antialias, as `dovetail.resize` has it.
struct ResampledDim {
  int64_t operandExtent, resultExtent; ///< Not 0.
  float scale;
  ResizeMode mode; ///< Linear or cubic.
  CoordinateMode coordinates;
  float cubicCoeffA = -0.75f;
  bool excludeOutside = false;
  float roiStart = 0, roiEnd = 1; ///< For tf_crop_and_resize.
};

/// The windows of a dimension: those of `dovetail.resample`.
struct ResampleWindows {
  int64_t width = 1; ///< Weights for each element.
  llvm::SmallVector<double> weights;
  llvm::SmallVector<int64_t> starts;
  /// Whether tf_crop_and_resize gives the element another value; empty if it is none.
  llvm::SmallVector<bool> isOutside;
};

/// The kernel of the interpolation is stretched by as much as the dimension shrinks. What windows have outside of the
/// operand counts for the element at its end or, with `excludeOutside`, not at all. Weights of an element add up to 1.
ResampleWindows computeResampleWindows(const ResampledDim &dim);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_RESAMPLEWINDOWS_H
