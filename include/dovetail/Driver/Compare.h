//===- Compare.h - Comparing tensors -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the outputs of two programs are compared.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_COMPARE_H
#define DOVETAIL_DRIVER_COMPARE_H

#include "dovetail/tools/TensorFile.h"

namespace dovetail {

/// How a tensor differs from what it should be.
struct Difference {
  /// Elements beyond the limit, and the first of them.
  int64_t numDifferent = 0;
  std::vector<int64_t> firstIndex;
  double actual = 0, expected = 0;
  /// The largest difference of finite elements, and the largest magnitude of finite expected ones.
  double largest = 0, magnitude = 0;
  /// How far an element may be off.
  double limit = 0;
  /// There are elements, and all are NaN, as they should be: whatever was computed, nothing tells.
  bool isAllNan = false;
  /// Elements that are NaN, as they should be.
  int64_t numNan = 0;
};

/// Compares tensors of equal type and shape. Floating-point numbers may differ by 1e-4 of the largest expected
/// magnitude, or four units of their precision where that is more; infinities and NaN must be the same; all else must
/// be equal.
Difference compare(const tools::NamedTensor &actual, const tools::NamedTensor &expected);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_COMPARE_H
