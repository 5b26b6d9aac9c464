//===- ProductGeometry.h - What a matrix product reads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the boxes of a matrix product, and its rows as the plan has them: several dimensions that are one in memory.
// Backends of all targets use them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_COMMON_PRODUCTGEOMETRY_H
#define DOVETAIL_RUNTIME_BACKEND_COMMON_PRODUCTGEOMETRY_H

#include "dovetail/Layout/Strides.h"
#include "dovetail/runtime/RankMemory.h"

#include "absl/status/statusor.h"

namespace dovetail::runtime {

/// The `rowDims` dimensions before the last of a matrix, or all that there are, as one. `extents` and `strides` are
/// those of the matrix and its batch. Nothing if the rows do not lie at one distance.
std::optional<layout::StridedDim> mergeRows(const std::vector<int64_t> &extents, const std::vector<int64_t> &strides,
                                            int rowDims);
/// The same for `box`, which is not empty, of `view`.
std::optional<layout::StridedDim> mergeRows(const MemoryView &view, const layout::Box &box, int rowDims);

/// What a product reads and writes on a rank.
struct ProductGeometry {
  layout::Box outBox, aBox, bBox;
  bool nothingToSum = false; ///< The result is zero before post-ops.

  /// Of `loops`, some of the iterations that a rank has, with a part of the result. Errors: DATA_LOSS when the rank
  /// does not hold what is needed, or rows do not follow each other in memory.
  static absl::StatusOr<ProductGeometry> plan(const RankMemory &memory, const MatMulCall &call,
                                              const layout::Box &loops);
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_COMMON_PRODUCTGEOMETRY_H
