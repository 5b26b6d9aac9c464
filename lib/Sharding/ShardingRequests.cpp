//===- ShardingRequests.cpp - Shardings that users ask for -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements readRequest and closeCuts.
//
//===----------------------------------------------------------------------===//

#include "ShardingRequests.h"

#include "dovetail/Layout/Cuts.h"
#include "dovetail/Sharding/ShardingUtils.h"

using namespace mlir;
using namespace dovetail;

FailureOr<ShardingRequest> dovetail::readRequest(ArrayAttr attribute, Value value, MeshOp meshOp, const Twine &name) {
  auto type = cast<RankedTensorType>(value.getType());
  layout::Mesh mesh = meshOp.getMesh();
  Operation *owner = value.getParentBlock()->getParentOp();
  auto error = [&] { return owner->emitError() << name << " cannot be split as requested: "; };
  ShardingRequest request;
  for (Attribute entry : attribute) {
    auto dim = cast<DimShardingAttr>(entry);
    request.push_back(dim);
    for (StringAttr axis : dim.getAxes())
      if (!mesh.axisIndex({axis.data(), axis.size()}))
        return error() << "the mesh has no axis " << axis;
  }
  // Open cuts are checked as if they were chosen.
  ShardingRequest closed = request;
  if (static_cast<int64_t>(request.size()) == type.getRank())
    closed = closeCuts(request, nullptr, mesh, type.getShape());
  auto sharding = ShardingAttr::get(value.getContext(), FlatSymbolRefAttr::get(meshOp), closed, {}, ReduceKind::Sum);
  if (failed(sharding.verifyEncoding(type.getShape(), type.getElementType(), error)))
    return failure();
  std::string why;
  layout::Sharding wanted = toLayout(sharding, mesh, type.getRank());
  if (!wanted.verify(mesh, type.getShape(), &why))
    return error() << why;
  for (auto [dim, extent] : llvm::zip_equal(wanted.dims, type.getShape()))
    if (!dim.isCuts(extent))
      return error() << "the pieces do not tile the dimension of extent " << extent;
  return request;
}

ShardingRequest dovetail::closeCuts(ArrayRef<DimShardingAttr> request, ShardingAttr held, const layout::Mesh &mesh,
                                    ArrayRef<int64_t> shape) {
  ShardingRequest dims(request);
  for (auto [index, dim] : llvm::enumerate(dims)) {
    if (!dim.isSplit() || !dim.getPieces().empty())
      continue;
    if (held && held.getDims()[index].getAxes() == dim.getAxes()) {
      dim = held.getDims()[index];
      continue;
    }
    int64_t parts = 1;
    for (StringAttr axis : dim.getAxes())
      parts *= mesh.axisSize(*mesh.axisIndex({axis.data(), axis.size()}));
    dim = DimShardingAttr::getCuts(dim.getAxes(), layout::balancedCuts(shape[index], parts));
  }
  return dims;
}
