//===- IntegerFactors.h - Factors that are integers of 8 bits -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how products find factors that are extended from integers of 8 bits, less zero points.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_TRANSFORMS_INTEGERFACTORS_H
#define DOVETAIL_LIB_TRANSFORMS_INTEGERFACTORS_H

#include "GraphMatch.h"

namespace dovetail {

/// `integers - zero`, in i32.
struct Factor {
  mlir::Value integers; ///< Of 8 bits.
  mlir::Value zero;     ///< Of i32, and broadcasts to `integers`; null if it is 0.
};

/// `value` as a factor; none if it is no such, or not of i32, in which alone nothing is lost.
std::optional<Factor> findFactor(mlir::Value value);

/// Whether the zero points of `factor` are known to be elements of the type of its integers.
bool hasZeroElements(const Factor &factor);

/// Makes matrices or more of i32 below `root`, whose elements differ by less than 256, extensions of integers of 8
/// bits, less a zero point, as they were before an import computed them. Where nothing comes of it, they are computed
/// again.
void extendConstants(mlir::Operation *root);

} // namespace dovetail

#endif // DOVETAIL_LIB_TRANSFORMS_INTEGERFACTORS_H
