//===- GatherOp.cpp - Gather -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines gather, whose relation is exact when the indices are a constant vector.
//
//===----------------------------------------------------------------------===//

#include "IndexSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

static RankedTensorType tensorType(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

FailureOr<RankedTensorType> GatherOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType type = tensorType(adaptor.getOperand());
  RankedTensorType indices = tensorType(adaptor.getIndices());
  auto axis = static_cast<int64_t>(adaptor.getAxis());
  if (axis < 0 || axis >= type.getRank())
    return emitOptionalError(location, "'dovetail.gather' op has axis ", axis, ", which ", type, " does not have");
  if (!isa<IntegerType>(indices.getElementType()))
    return emitOptionalError(location, "'dovetail.gather' op has indices of type ", indices, "; they must be integers");
  if (type.getDimSize(axis) == 0 && !llvm::is_contained(indices.getShape(), 0))
    return emitOptionalError(location, "'dovetail.gather' op takes elements from dimension ", axis, " of ", type,
                             ", which has none");
  SmallVector<int64_t> shape(type.getShape().take_front(axis));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, type.getShape().drop_front(axis + 1));
  return RankedTensorType::get(shape, type.getElementType());
}

Definition GatherOp::getDefinition() {
  RankedTensorType type = tensorType(getOperand());
  unsigned axis = getAxis(), indexRank = tensorType(getIndices()).getRank();
  int64_t extent = type.getDimSize(axis);
  Definition definition = Definition::over(getType());
  layout::AccessDim position = definition.addLookup(extent, /*index=*/1);
  // Tables go by one loop: indices of rank 2 or more have several.
  if (indexRank == 1 && extent > 0)
    if (auto positions = getPositions(getIndices(), extent); positions && !positions->empty())
      position = IndexExpr::unknown(0, Definition::at(axis), *positions, *positions);
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned dim = 0; dim < type.getRank(); ++dim)
    dims.push_back(dim == axis ? position : Definition::at(dim < axis ? dim : dim + indexRank - 1));
  SmallVector<layout::AccessDim> &indexDims = definition.addRead(1);
  for (unsigned dim = 0; dim < indexRank; ++dim)
    indexDims.push_back(Definition::at(axis + dim));
  return definition;
}
