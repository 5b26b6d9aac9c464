//===- GatherElementsOp.cpp - Elements at given coordinates -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines gather_elements.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

static RankedTensorType tensorType(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

/// The axis counted from the front.
static int64_t getAxisOf(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

FailureOr<RankedTensorType> GatherElementsOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType type = tensorType(adaptor.getOperand());
  RankedTensorType indices = tensorType(adaptor.getIndices());
  int64_t axis = getAxisOf(adaptor.getAxis(), type.getRank());
  if (axis < 0 || axis >= type.getRank())
    return emitOptionalError(location, "'dovetail.gather_elements' op has axis ", adaptor.getAxis(), ", which ", type,
                             " does not have");
  if (!indices.getElementType().isSignlessInteger() || indices.getRank() != type.getRank())
    return emitOptionalError(location, "'dovetail.gather_elements' op has indices of type ", indices,
                             "; they must be signed integers and of the rank of ", type);
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != axis && indices.getDimSize(dim) > type.getDimSize(dim))
      return emitOptionalError(location, "'dovetail.gather_elements' op has indices of extent ",
                               indices.getDimSize(dim), " in dimension ", dim, " where ", type, " has less");
  if (type.getDimSize(axis) == 0 && indices.getNumElements() > 0)
    return emitOptionalError(location, "'dovetail.gather_elements' op takes elements from dimension ", axis, " of ",
                             type, ", which has none");
  return RankedTensorType::get(indices.getShape(), type.getElementType());
}

Definition GatherElementsOp::getDefinition() {
  int64_t axis = getAxisOf(getAxis(), getType().getRank());
  Definition definition = Definition::over(getType());
  layout::IndexExpr position = definition.addLookup(tensorType(getOperand()).getDimSize(axis), /*index=*/1);
  for (unsigned operand : {0, 1}) {
    SmallVector<layout::AccessDim> &dims = definition.addRead(operand);
    for (int64_t dim = 0; dim < getType().getRank(); ++dim)
      dims.push_back(operand == 0 && dim == axis ? position : Definition::at(dim));
  }
  return definition;
}
