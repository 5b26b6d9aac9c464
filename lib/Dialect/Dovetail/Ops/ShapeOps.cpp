//===- ShapeOps.cpp - Transpose, broadcast, slice, concat and range -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the operations that move elements by a fixed rule in each dimension, and range.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ScalarSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

static RankedTensorType tensorType(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// TransposeOp
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> TransposeOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType type = tensorType(adaptor.getOperand());
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  if (!llvm::equal(sorted, llvm::seq<int64_t>(0, type.getRank())))
    return emitOptionalError(location, "'dovetail.transpose' op has permutation [", permutation,
                             "], which is not one of the dimensions of ", type);
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  return RankedTensorType::get(shape, type.getElementType());
}

Definition TransposeOp::getDefinition() {
  Definition definition = Definition::over(getType());
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  dims.resize(getPermutation().size());
  for (auto [loop, dim] : llvm::enumerate(getPermutation()))
    dims[dim] = Definition::at(loop);
  return definition;
}

//===----------------------------------------------------------------------===//
// BroadcastOp
//===----------------------------------------------------------------------===//

LogicalResult BroadcastOp::verify() {
  RankedTensorType from = getOperand().getType();
  bool fits = from.getElementType() == getType().getElementType() && from.getRank() <= getType().getRank();
  for (int64_t i = 0; fits && i < from.getRank(); ++i) {
    int64_t extent = from.getDimSize(i);
    fits = extent == 1 || extent == getType().getDimSize(getType().getRank() - from.getRank() + i);
  }
  if (!fits)
    return emitOpError("cannot repeat ") << from << " to " << getType();
  return success();
}

Definition BroadcastOp::getDefinition() { return getElementwiseDefinition(getOperation()); }

//===----------------------------------------------------------------------===//
// SliceOp
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> SliceOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType type = tensorType(adaptor.getOperand());
  auto starts = adaptor.getStarts(), sizes = adaptor.getSizes(), steps = adaptor.getSteps();
  auto rank = static_cast<size_t>(type.getRank());
  if (starts.size() != rank || sizes.size() != rank || steps.size() != rank)
    return emitOptionalError(location, "'dovetail.slice' op has ", starts.size(), " starts, ", sizes.size(),
                             " sizes and ", steps.size(), " steps for the ", rank, " dimensions of ", type);
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    // Bounding the step first keeps the last position from overflowing.
    int64_t start = starts[dim], size = sizes[dim], step = steps[dim];
    bool inside = size == 0;
    if (size > 0 && step != 0 && start >= 0 && start < extent) {
      int64_t room = step > 0 ? extent - 1 - start : start;
      uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
      inside = static_cast<uint64_t>(size - 1) <= static_cast<uint64_t>(room) / stride;
    }
    if (!inside || step == 0)
      return emitOptionalError(location, "'dovetail.slice' op takes ", size, " elements from ", start, " with step ",
                               step, " in dimension ", dim, " of ", type);
  }
  return RankedTensorType::get(sizes, type.getElementType());
}

Definition SliceOp::getDefinition() {
  Definition definition = Definition::over(getType());
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (auto [dim, start, size, step] : llvm::enumerate(getStarts(), getSizes(), getSteps())) {
    // One element has no use for a step, which may be as large as integers go, and none for a start.
    dims.push_back(Definition::at(dim) * (size > 1 ? step : 1) + (size > 0 ? start : 0));
  }
  return definition;
}

//===----------------------------------------------------------------------===//
// ConcatOp
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> ConcatOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  if (adaptor.getInputs().empty())
    return emitOptionalError(location, "'dovetail.concat' op has no inputs");
  RankedTensorType first = tensorType(adaptor.getInputs().front());
  auto axis = static_cast<int64_t>(adaptor.getAxis());
  if (axis < 0 || axis >= first.getRank())
    return emitOptionalError(location, "'dovetail.concat' op has axis ", axis, ", which ", first, " does not have");
  SmallVector<int64_t> shape(first.getShape());
  for (Value input : adaptor.getInputs().drop_front()) {
    RankedTensorType type = tensorType(input);
    bool fits = type.getRank() == first.getRank() && type.getElementType() == first.getElementType();
    for (int64_t dim = 0; fits && dim < first.getRank(); ++dim)
      fits = dim == axis || type.getDimSize(dim) == first.getDimSize(dim);
    if (!fits)
      return emitOptionalError(location, "'dovetail.concat' op cannot join ", first, " and ", type, " along dimension ",
                               axis);
    shape[axis] += type.getDimSize(axis);
  }
  return RankedTensorType::get(shape, first.getElementType());
}

Definition ConcatOp::getDefinition() {
  Definition definition = Definition::over(getType());
  int64_t start = 0;
  for (auto [number, input] : llvm::enumerate(getInputs())) {
    SmallVector<layout::AccessDim> &dims = definition.addRead(number);
    for (unsigned dim = 0; dim < getType().getRank(); ++dim)
      dims.push_back(Definition::at(dim));
    dims[getAxis()] = Definition::at(getAxis()) - start;
    start += tensorType(input).getDimSize(getAxis());
  }
  return definition;
}

/// Reads one of `inputs`, the first that has an element.
static Value emitFirst(BodyBuilder &body, ArrayRef<unsigned> inputs) {
  // The last needs no condition.
  if (inputs.size() == 1)
    return body.read(inputs.front());
  return body.readOr(inputs.front(), [&] { return emitFirst(body, inputs.drop_front()); });
}

SmallVector<Value> ConcatOp::emitBody(BodyBuilder &body) {
  SmallVector<unsigned> inputs;
  for (auto [number, input] : llvm::enumerate(getInputs()))
    if (tensorType(input).getDimSize(getAxis()) > 0)
      inputs.push_back(number);
  // Where none has elements, the result has none: any will do.
  if (inputs.empty())
    inputs.push_back(0);
  return {emitFirst(body, inputs)};
}

//===----------------------------------------------------------------------===//
// RangeOp
//===----------------------------------------------------------------------===//

LogicalResult RangeOp::verify() {
  Type element = getType().getElementType();
  auto fits = [&](TypedAttr value) {
    return isa<FloatAttr, IntegerAttr>(value) && value.getType() == ElementBuilder::scalarType(element);
  };
  if (getType().getRank() != 1)
    return emitOpError("has a result of rank ") << getType().getRank() << "; it is a vector";
  if (!fits(getStart()) || !fits(getStep()))
    return emitOpError("has start ") << getStart() << " and step " << getStep() << ", which must be of type "
                                     << ElementBuilder::scalarType(element) << " as the elements";
  return success();
}

Definition RangeOp::getDefinition() { return Definition::over(getType()); }

SmallVector<Value> RangeOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  Type type = ElementBuilder::scalarType(getType().getElementType());
  Type positionType = builder.getBuilder().getI64Type();
  Value position = builder.create<arith::IndexCastOp>(positionType, body.getLoop(0));
  Value start = arith::ConstantOp::create(builder.getBuilder(), builder.getLoc(), getStart());
  Value step = arith::ConstantOp::create(builder.getBuilder(), builder.getLoc(), getStep());
  if (!isa<FloatType>(type))
    return {builder.add(start, builder.mul(scalar::cast(builder, position, positionType, type), step))};
  FloatType wide = scalar::wideType(type);
  Value distance = builder.mul(scalar::cast(builder, position, positionType, wide), builder.convertFloat(step, wide));
  return {builder.convertFloat(builder.add(builder.convertFloat(start, wide), distance), llvm::cast<FloatType>(type))};
}
