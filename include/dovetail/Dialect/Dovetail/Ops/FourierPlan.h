//===- FourierPlan.h - Steps of fast Fourier transforms -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines FourierPlan, the steps of the transform of a length, and their roots of one.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_FOURIERPLAN_H
#define DOVETAIL_DIALECT_DOVETAIL_OPS_FOURIERPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <complex>
#include <optional>

namespace dovetail {

/// exp(-2 pi i numerator / denominator), rounded once.
std::complex<double> getRootOfOne(int64_t numerator, int64_t denominator);

/// A transform of `length` points as steps that each make transforms of r times as many points from r of those before
/// (decimation in time: Cooley and Tukey, An Algorithm for the Machine Calculation of Complex Fourier Series, 1965).
/// A onesided one, of an even length, is that of half as many complex points, whose real and imaginary parts are
/// neighbours, and one more step.
class FourierPlan {
public:
  /// None where a factor of the length is too large, or the points of a vector of lines would leave the caches.
  static std::optional<FourierPlan> create(int64_t length, bool onesided);

  /// One step: transforms of `size` points become such of `size * factor`.
  struct Step {
    int64_t factor, size;
    /// Where in the table its roots are: of point j of input t > 0, at number j * (factor - 1) + t - 1,
    /// exp(-2 pi i j t / (size * factor)).
    int64_t roots;
  };
  llvm::ArrayRef<Step> getSteps() const { return steps; }
  /// Complex points of the steps.
  int64_t getNumPoints() const { return points; }
  /// Where exp(-2 pi i k / length) are, for k = 0 ... length / 2; only of a onesided one.
  int64_t getRealRoots() const { return realRoots; }
  /// Complex numbers in the table, at least one.
  int64_t getTableSize() const { return tableSize; }
  /// The table, real and imaginary parts in turn.
  llvm::SmallVector<double> getTable() const;

private:
  int64_t length, points, realRoots = 0, tableSize = 0;
  bool onesided;
  llvm::SmallVector<Step> steps;
};

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_FOURIERPLAN_H
