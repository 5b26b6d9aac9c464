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

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

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

OpRelation GatherElementsOp::getRelation() {
  int64_t axis = getAxisOf(getAxis(), getType().getRank());
  OpRelation relation;
  relation.operands.resize(2);
  for (auto [dim, extent] : llvm::enumerate(getType().getShape())) {
    relation.loops.push_back({extent});
    auto loop = static_cast<int>(dim);
    relation.operands[0].push_back(loop == axis ? DimRelation::whole() : DimRelation::identity(loop));
    relation.operands[1].push_back(DimRelation::identity(loop));
  }
  return relation;
}

Value GatherElementsOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  int64_t axis = getAxisOf(getAxis(), getType().getRank());
  int64_t extent = tensorType(getOperand()).getDimSize(axis);
  Value given = builder.create<arith::IndexCastOp>(builder.getBuilder().getIndexType(), elements.read(1, index));
  Value isNegative = builder.compareI(arith::CmpIPredicate::slt, given, builder.index(0));
  SmallVector<Value> coordinates(index);
  coordinates[axis] = builder.clampI(builder.select(isNegative, builder.addI(given, extent), given), 0, extent - 1);
  return elements.read(0, coordinates);
}
