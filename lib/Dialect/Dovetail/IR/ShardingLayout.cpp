//===- ShardingLayout.cpp - Sharding attributes as layouts ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements toLayout for shardings.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/ShardingLayout.h"

using namespace mlir;
using namespace dovetail;

layout::ReductionKind dovetail::toLayout(ReduceKind kind) {
  switch (kind) {
  case ReduceKind::Sum:
    return layout::ReductionKind::Sum;
  case ReduceKind::Prod:
    return layout::ReductionKind::Prod;
  case ReduceKind::Max:
    return layout::ReductionKind::Max;
  case ReduceKind::Min:
    return layout::ReductionKind::Min;
  case ReduceKind::Owner:
    return layout::ReductionKind::Owner;
  }
  return layout::ReductionKind::None;
}

/// The index of mesh axis `name`. Types with other axes do not verify.
static int getAxisIndex(const layout::Mesh &mesh, StringAttr name) {
  return mesh.axisIndex({name.data(), name.size()}).value_or(0);
}

layout::DimSharding dovetail::toLayout(DimShardingAttr dim, const layout::Mesh &mesh) {
  layout::DimSharding result;
  for (StringAttr axis : dim.getAxes())
    result.axes.push_back(getAxisIndex(mesh, axis));
  result.pieces.assign(dim.getIntervals().begin(), dim.getIntervals().end());
  return result;
}

layout::Sharding dovetail::toLayout(ArrayRef<DimShardingAttr> loops, const layout::Mesh &mesh) {
  layout::Sharding result;
  for (DimShardingAttr loop : loops)
    result.dims.push_back(toLayout(loop, mesh));
  return result;
}

layout::Sharding dovetail::toLayout(ShardingAttr sharding, const layout::Mesh &mesh, unsigned rank) {
  if (!sharding)
    return layout::Sharding::replicated(rank);
  layout::Sharding result = toLayout(sharding.getDims(), mesh);
  for (StringAttr axis : sharding.getPartialAxes())
    result.partialAxes.push_back(getAxisIndex(mesh, axis));
  llvm::sort(result.partialAxes);
  if (sharding.isPartial())
    result.partialKind = toLayout(sharding.getPartialKind());
  return result;
}
