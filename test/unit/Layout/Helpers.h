//===- Helpers.h - What tests of Layout share -------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_UNIT_LAYOUT_HELPERS_H
#define DOVETAIL_TEST_UNIT_LAYOUT_HELPERS_H

#include "dovetail/Layout/DimMap.h"
#include "dovetail/Layout/Exchange.h"
#include "dovetail/Layout/Sharding.h"

#include <algorithm>

namespace dovetail::layout {

/// Whether `cuts` starts at 0, ends at `extent` and never decreases.
inline bool isValidCuts(std::span<const int64_t> cuts, int64_t extent) {
  return !cuts.empty() && cuts.front() == 0 && cuts.back() == extent && std::is_sorted(cuts.begin(), cuts.end());
}

/// The adjoint of a window: o needs each i with `o = i*stride - padLo + k*dilation` for a k < kernel (the hull of
/// those). All but `padLo` must be positive.
inline DimMap transposedWindow(int64_t kernel, int64_t stride, int64_t dilation, int64_t padLo) {
  // The first index is rounded up: ceil(x / s) = floor((x + s - 1) / s).
  return DimMap::affine(1, stride, padLo - (kernel - 1) * dilation + stride - 1, padLo);
}

/// Axes, ascending, along which a value is replicated.
inline std::vector<int> replicaAxes(const Sharding &sharding, const Mesh &mesh) {
  std::vector<bool> used(mesh.numAxes());
  for (const DimSharding &dim : sharding.dims)
    for (int axis : dim.axes)
      used[axis] = true;
  for (int axis : sharding.partialAxes)
    used[axis] = true;
  std::vector<int> axes;
  for (int axis = 0; axis < mesh.numAxes(); ++axis)
    if (!used[axis])
      axes.push_back(axis);
  return axes;
}

} // namespace dovetail::layout

#endif // DOVETAIL_TEST_UNIT_LAYOUT_HELPERS_H
