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

#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dovetail;

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

/// The positions along an axis of `extent` that constant indices mean.
static std::optional<std::vector<int64_t>> getPositions(Value indices, int64_t extent) {
  while (auto reshard = indices.getDefiningOp<ReshardOp>())
    indices = reshard.getOperand();
  Attribute constant;
  if (!matchPattern(indices, m_Constant(&constant)))
    return std::nullopt;
  std::optional<ConstantReader> reader = ConstantReader::create(constant);
  if (!reader)
    return std::nullopt;
  bool isUnsigned = isUnsignedElement(indices.getType());
  std::vector<int64_t> positions;
  for (int64_t i = 0, count = tensorType(indices).getNumElements(); i < count; ++i) {
    APInt bits = reader->readBits(i);
    int64_t position = isUnsigned ? static_cast<int64_t>(bits.getLimitedValue(extent)) : bits.getSExtValue();
    positions.push_back(std::clamp<int64_t>(position < 0 ? position + extent : position, 0, extent - 1));
  }
  return positions;
}

OpRelation GatherOp::getRelation() {
  RankedTensorType type = tensorType(getOperand());
  int axis = static_cast<int>(getAxis());
  int indexRank = static_cast<int>(tensorType(getIndices()).getRank());
  OpRelation relation;
  for (int64_t extent : getType().getShape())
    relation.loops.push_back({extent});
  SmallVector<DimRelation> &dims = relation.operands.emplace_back();
  for (int dim = 0; dim < type.getRank(); ++dim)
    dims.push_back(dim == axis ? DimRelation::whole() : DimRelation::identity(dim < axis ? dim : dim + indexRank - 1));
  // A dimension relates to one loop at most: indices of rank 2 or more have several.
  if (indexRank == 1 && type.getDimSize(axis) > 0)
    if (auto positions = getPositions(getIndices(), type.getDimSize(axis)))
      dims[axis] = {axis, layout::DimMap::table(*positions, *positions)};
  SmallVector<DimRelation> &indexDims = relation.operands.emplace_back();
  for (int dim = 0; dim < indexRank; ++dim)
    indexDims.push_back(DimRelation::identity(axis + dim));
  return relation;
}

Value GatherOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  auto axis = static_cast<size_t>(getAxis());
  auto indexRank = static_cast<size_t>(tensorType(getIndices()).getRank());
  int64_t extent = tensorType(getOperand()).getDimSize(axis);
  Value stored = elements.read(1, index.slice(axis, indexRank));
  Type indexType = builder.getBuilder().getIndexType();
  Value position;
  if (isUnsignedElement(getIndices().getType())) {
    position = builder.create<arith::MinUIOp>(builder.create<arith::IndexCastUIOp>(indexType, stored),
                                              builder.index(extent - 1));
  } else {
    Value given = builder.create<arith::IndexCastOp>(indexType, stored);
    Value isNegative = builder.compareI(arith::CmpIPredicate::slt, given, builder.index(0));
    position = builder.clampI(builder.select(isNegative, builder.addI(given, extent), given), 0, extent - 1);
  }
  SmallVector<Value> coordinates(index.take_front(axis));
  coordinates.push_back(position);
  llvm::append_range(coordinates, index.drop_front(axis + indexRank));
  return elements.read(0, coordinates);
}
