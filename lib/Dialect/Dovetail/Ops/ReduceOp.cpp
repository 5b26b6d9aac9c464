//===- ReduceOp.cpp - Reduction over dimensions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.reduce`.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"

using namespace mlir;
using namespace dovetail;

FailureOr<RankedTensorType> ReduceOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  StringRef name = getOperationName();
  ReduceKind kind = adaptor.getKind();
  if (kind == ReduceKind::Moments)
    return emitOptionalError(location, "'", name, "' op cannot have kind moments: use dovetail.moments");
  if (operand.getElementType().isInteger(1) && (kind == ReduceKind::Sum || kind == ReduceKind::Prod))
    return emitOptionalError(location, "'", name, "' op of kind ", stringifyReduceKind(kind),
                             " needs numbers, but has elements of i1");
  if (failed(verifyAxes(location, name, adaptor.getAxes(), operand.getRank())))
    return failure();
  SmallVector<int64_t> shape(operand.getShape());
  for (int64_t axis : adaptor.getAxes())
    shape[axis] = 1;
  return RankedTensorType::get(shape, operand.getElementType());
}

OpRelation ReduceOp::getRelation() {
  RankedTensorType operand = getOperand().getType();
  OpRelation relation;
  SmallVector<DimRelation> &dims = relation.operands.emplace_back();
  for (auto [dim, extent] : llvm::enumerate(operand.getShape())) {
    relation.loops.push_back({extent});
    dims.push_back(DimRelation::identity(dim));
  }
  for (int64_t axis : getAxes()) {
    relation.loops[axis] = {1, LoopKind::Whole};
    dims[axis] = DimRelation::identity(relation.loops.size());
    relation.loops.push_back({operand.getDimSize(axis), LoopKind::Reduction, getKind()});
  }
  return relation;
}

bool ReduceOp::isLinearIn(unsigned operand) { return getKind() == ReduceKind::Sum; }

bool ReduceOp::isCheapElement() { return false; }

Value ReduceOp::emitInit(ElementBuilder &builder) {
  Type elementType = getType().getElementType();
  switch (getKind()) {
  case ReduceKind::Sum:
    return builder.zero(getAccumulatorType(elementType));
  case ReduceKind::Prod:
    return builder.constantInt(getAccumulatorType(elementType), 1);
  case ReduceKind::Max:
    return builder.lowest(elementType);
  case ReduceKind::Min:
    return builder.highest(elementType);
  case ReduceKind::Moments:
    break;
  }
  llvm_unreachable("refused by inferType");
}

Value ReduceOp::emitTerm(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  ArrayRef<int64_t> axes = getAxes();
  SmallVector<Value> coordinates(index.drop_back(axes.size()));
  for (auto [axis, coordinate] : llvm::zip_equal(axes, index.take_back(axes.size())))
    coordinates[axis] = coordinate;
  Value element = elements.read(0, coordinates);
  bool accumulates = getKind() == ReduceKind::Sum || getKind() == ReduceKind::Prod;
  return accumulates ? widen(builder, element, getAccumulatorType(getType().getElementType())) : element;
}

Value ReduceOp::emitCombine(ElementBuilder &builder, Value accumulator, Value term) {
  bool isUnsigned = isUnsignedElement(getType());
  switch (getKind()) {
  case ReduceKind::Sum:
    return builder.add(accumulator, term);
  case ReduceKind::Prod:
    return builder.mul(accumulator, term);
  case ReduceKind::Max:
    return builder.max(accumulator, term, isUnsigned);
  case ReduceKind::Min:
    return builder.min(accumulator, term, isUnsigned);
  case ReduceKind::Moments:
    break;
  }
  llvm_unreachable("refused by inferType");
}

Value ReduceOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  return foldTerms(*this, builder, index, elements, getAxes().size());
}
