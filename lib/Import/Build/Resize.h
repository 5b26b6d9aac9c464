//===- Resize.h - What a Resize says -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Resize, and the import of one whose extents vary from run to run.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_RESIZE_H
#define DOVETAIL_LIB_IMPORT_BUILD_RESIZE_H

#include "GraphBuilder.h"

namespace dovetail::importer {

/// A resize of all dimensions.
struct Resize {
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<double> scales;
  /// The sizes that the node gives, with their counts; none where it gives scales.
  llvm::SmallVector<Extent> extents;
  ResizeMode mode = ResizeMode::Nearest;
  CoordinateMode coordinates = CoordinateMode::Asymmetric;
  NearestMode nearest = NearestMode::Floor;
  /// Starts, then ends.
  llvm::SmallVector<double> roi;
  float cubicCoeffA = -0.75f;
  bool excludeOutside = false;
  float extrapolationValue = 0;
  /// Windows grow with what shrinks, unless elements are looked up.
  bool isAntialiased = false;
  /// Whether sizes follow from an aspect ratio.
  bool keepsAspect = false;

  mlir::Value build(GraphBuilder &builder, mlir::Value input) const;
  /// Takes scales, and the extents that follow from them in single precision.
  llvm::LogicalResult setScales(GraphBuilder &builder, mlir::Value input, llvm::ArrayRef<double> values);
  /// The extent that `scale` makes of `extent`.
  static int64_t scaleExtent(int64_t extent, double scale);
};

/// The same with antialias: one dimension after the other. Null after an error.
mlir::Value buildAntialiased(GraphBuilder &builder, const Resize &resize, mlir::Value input);

/// The same where `input`, or `resize.extents`, are bounded.
mlir::Value buildBoundedResize(GraphBuilder &builder, const Resize &resize, mlir::Value input);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_RESIZE_H
