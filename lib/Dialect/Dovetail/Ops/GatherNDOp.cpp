//===- GatherNDOp.cpp - Slices at tuples of indices ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.gather_nd`, which looks up each dimension that a tuple indexes.
//
//===----------------------------------------------------------------------===//

#include "IndexSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/IndexingOps.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::IndexExpr;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

FailureOr<RankedTensorType> GatherNDOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType type = tensorType(adaptor.getOperand()), indices = tensorType(adaptor.getIndices());
  auto batchDims = static_cast<int64_t>(adaptor.getBatchDims());
  if (!isa<IntegerType>(indices.getElementType()) || indices.getElementType().isInteger(1))
    return emitOptionalError(location, "'", getOperationName(), "' op has indices of type ", indices,
                             "; they must be integers");
  bool fits = batchDims >= 0 && batchDims < type.getRank() && batchDims < indices.getRank();
  int64_t depth = fits ? indices.getShape().back() : 0;
  fits = fits && depth >= 1 && batchDims + depth <= type.getRank() &&
         type.getShape().take_front(batchDims) == indices.getShape().take_front(batchDims);
  if (!fits)
    return emitOptionalError(location, "'", getOperationName(), "' op cannot take slices of ", type,
                             " by indices of type ", indices, " behind ", batchDims, " batch dimensions");
  ArrayRef<int64_t> places = indices.getShape().drop_back();
  for (int64_t dim = batchDims; dim < batchDims + depth; ++dim)
    if (type.getDimSize(dim) == 0 && !llvm::is_contained(places, 0))
      return emitOptionalError(location, "'", getOperationName(), "' op takes elements from dimension ", dim, " of ",
                               type, ", which has none");
  SmallVector<int64_t> shape(places);
  llvm::append_range(shape, type.getShape().drop_front(batchDims + depth));
  return RankedTensorType::get(shape, type.getElementType());
}

Definition GatherNDOp::getDefinition() {
  RankedTensorType type = tensorType(getOperand()), indices = tensorType(getIndices());
  unsigned batchDims = getBatchDims(), numPlaces = indices.getRank() - 1;
  int64_t depth = indices.getShape().back();
  Definition definition = Definition::over(getType());
  SmallVector<AccessDim> dims, index;
  for (unsigned dim = 0; dim < batchDims; ++dim)
    dims.push_back(Definition::at(dim));
  for (int64_t component = 0; component < depth; ++component) {
    int64_t extent = type.getDimSize(batchDims + component);
    AccessDim position = definition.addLookup(extent, /*index=*/1);
    // Tables go by one loop.
    if (numPlaces <= 1 && extent > 0)
      if (auto positions = getPositions(getIndices(), extent, component, depth); positions && !positions->empty())
        position = IndexExpr::unknown(component, numPlaces ? Definition::at(0) : IndexExpr(0), *positions, *positions);
    dims.push_back(position);
  }
  for (unsigned dim = batchDims + depth; dim < type.getRank(); ++dim)
    dims.push_back(Definition::at(numPlaces + dim - batchDims - depth));
  for (unsigned dim = 0; dim < numPlaces; ++dim)
    index.push_back(Definition::at(dim));
  index.push_back(IndexExpr::unknown(0));
  definition.addRead(0) = std::move(dims);
  definition.addRead(1) = std::move(index);
  return definition;
}
