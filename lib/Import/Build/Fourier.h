//===- Fourier.h - Building Fourier transforms -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares FourierBuilder, which builds transforms of any length.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_FOURIER_H
#define DOVETAIL_LIB_IMPORT_BUILD_FOURIER_H

#include "GraphBuilder.h"

#include <complex>

namespace dovetail::importer {

/// Builds transforms along a dimension of tensors of f32 or f64, whose last dimension holds complex numbers: extent 1
/// for real ones, 2 for real and imaginary parts. Null values are passed on.
///
/// Lengths that one operation does not take are those of others: N1 * N2 points are N2 transforms of N1, products with
/// roots of one, and N1 transforms of N2 (Bailey, FFTs in External or Hierarchical Memory, 1990); prime factors become
/// a convolution, of a length that has small ones (Bluestein, A Linear Filtering Approach to the Computation of
/// Discrete Fourier Transform, 1970).
class FourierBuilder {
public:
  FourierBuilder(GraphBuilder &builder, int64_t axis) : builder(builder), axis(axis) {}

  /// Of all points of the axis to as many; inverse transforms divide by their number.
  mlir::Value transform(mlir::Value value, bool inverse);
  /// Real numbers to the first length / 2 + 1 elements of their spectrum, and back to `length` real numbers: the last
  /// dimension has extent 1 before, or after.
  mlir::Value transformReal(mlir::Value value);
  mlir::Value invertReal(mlir::Value spectrum, int64_t length);
  /// The first `extent` elements of dimension `dim`, followed by zeros where it has fewer.
  mlir::Value resize(mlir::Value value, int64_t dim, int64_t extent);

private:
  int64_t getLength(mlir::Value value) const { return builder.getShape(value)[axis]; }
  /// One operation; null without an error if there is none for the length.
  mlir::Value createDft(mlir::Value value, int64_t length, bool inverse, bool onesided);
  mlir::Value transformInParts(mlir::Value value, int64_t first, bool inverse);
  mlir::Value transformByConvolution(mlir::Value value, bool inverse);
  /// Products of complex numbers with those of a table over `dims` dimensions from the axis on.
  mlir::Value multiply(mlir::Value value, llvm::ArrayRef<std::complex<double>> table, int64_t dims);
  /// The elements at `start`, `start + step`, ... of dimension `dim`.
  mlir::Value take(mlir::Value value, int64_t dim, int64_t start, int64_t size, int64_t step = 1);

  GraphBuilder &builder;
  int64_t axis;
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_FOURIER_H
