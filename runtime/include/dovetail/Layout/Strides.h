//===- Strides.h - Dimensions that are one in memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_STRIDES_H
#define DOVETAIL_LAYOUT_STRIDES_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dovetail::layout {

/// A dimension in memory: how many elements, and from one to the next.
struct StridedDim {
  int64_t extent = 1, stride = 1;

  friend bool operator==(const StridedDim &, const StridedDim &) = default;
};

/// Several dimensions, outermost first, as one that goes through all of their elements in row-major order; nothing if
/// the elements do not follow each other at one distance. Strides of dimensions of extent 1 do not matter: where all
/// are, the result has the stride of the last. All extents are positive and there is at least one dimension.
inline std::optional<StridedDim> mergeDims(std::span<const int64_t> extents, std::span<const int64_t> strides) {
  StridedDim merged{1, strides.back()};
  for (size_t dim = extents.size(); dim-- > 0;) {
    if (extents[dim] == 1)
      continue;
    if (merged.extent == 1)
      merged.stride = strides[dim];
    else if (strides[dim] != merged.extent * merged.stride)
      return std::nullopt;
    merged.extent *= extents[dim];
  }
  return merged;
}

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_STRIDES_H
