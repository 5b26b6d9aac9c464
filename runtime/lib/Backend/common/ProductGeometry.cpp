//===- ProductGeometry.cpp - What a matrix product reads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductGeometry.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <utility>

using namespace dovetail;
using namespace dovetail::runtime;

std::optional<layout::StridedDim> dovetail::runtime::mergeRows(const std::vector<int64_t> &extents,
                                                               const std::vector<int64_t> &strides, int rowDims) {
  size_t last = extents.size() - 1, count = std::min<size_t>(rowDims, last);
  return layout::mergeDims(std::span(extents).subspan(last - count, count),
                           std::span(strides).subspan(last - count, count));
}

std::optional<layout::StridedDim> dovetail::runtime::mergeRows(const MemoryView &view, const layout::Box &box,
                                                               int rowDims) {
  std::vector<int64_t> extents;
  for (int dim = 0; dim < box.rank(); ++dim)
    extents.push_back(box[dim].size());
  return mergeRows(extents, view.strides, rowDims);
}

/// Checks that the rows of `box`, which is not empty, lie in the memory of `tensor` as a product with `rowDims` wants.
static absl::Status checkRows(const RankMemory &memory, uint32_t tensor, const layout::Box &box, int rowDims) {
  const MemoryView &view = memory.memory(tensor);
  if (rowDims == 1 || mergeRows(view, box, rowDims))
    return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("damaged plan: the rows of ", memory.name(tensor), " do not follow each other in memory"));
}

absl::StatusOr<ProductGeometry> ProductGeometry::plan(const RankMemory &memory, const MatMulCall &call,
                                                      const layout::Box &loops) {
  ProductGeometry result;
  result.outBox = std::vector<layout::Interval>(loops.begin(), loops.end() - 1);
  result.aBox = layout::needOf(call.aAccess, loops);
  result.bBox = layout::needOf(call.bAccess, loops);
  result.nothingToSum = loops[loops.rank() - 1].empty();
  if (!result.nothingToSum)
    for (auto [tensor, box] : {std::pair(call.a, &result.aBox), std::pair(call.b, &result.bBox)})
      if (absl::Status status = memory.checkHeld(tensor, *box); !status.ok())
        return status;
  if (absl::Status status = checkRows(memory, call.output, result.outBox, call.rowDims); !status.ok())
    return status;
  if (!result.nothingToSum)
    if (absl::Status status = checkRows(memory, call.a, result.aBox, call.rowDims); !status.ok())
      return status;
  return result;
}
