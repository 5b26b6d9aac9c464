//===- ProductRows.h - Rows of matrix products -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the rows of a matrix product as the plan has them: several dimensions that are one in memory.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_COMMON_PRODUCTROWS_H
#define DOVETAIL_RUNTIME_BACKEND_COMMON_PRODUCTROWS_H

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

/// Checks that the rows of `box`, which is not empty, lie in the memory of `tensor` as a product with `rowDims` wants.
/// Errors: DATA_LOSS.
absl::Status checkRows(const RankMemory &memory, uint32_t tensor, const layout::Box &box, int rowDims);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_COMMON_PRODUCTROWS_H
