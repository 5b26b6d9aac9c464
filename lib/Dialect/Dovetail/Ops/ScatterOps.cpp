//===- ScatterOps.cpp - Placing elements where data say -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.scatter_nd`, `dovetail.scatter_elements` and `dovetail.tensor_scatter`.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"
#include "dovetail/Dialect/Dovetail/Ops/IndexingOps.h"
#include "dovetail/Dialect/Dovetail/Ops/SelectionOps.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::IndexExpr;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The type of `data`, if elements of `updates` can go where `indices` say; `fits` are what is demanded of the shapes.
static FailureOr<RankedTensorType> inferScatter(std::optional<Location> location, StringRef name, RankedTensorType data,
                                                RankedTensorType indices, RankedTensorType updates,
                                                std::optional<ReduceKind> reduction, bool fits) {
  if (!isa<IntegerType>(indices.getElementType()) || indices.getElementType().isInteger(1))
    return emitOptionalError(location, "'", name, "' op has indices of type ", indices, "; they must be integers");
  if (!fits || data.getElementType() != updates.getElementType())
    return emitOptionalError(location, "'", name, "' op cannot place ", updates, " in ", data, " by indices of type ",
                             indices);
  if (reduction == ReduceKind::Owner)
    return emitOptionalError(location, "'", name, "' op cannot combine by kind ", stringifyReduceKind(*reduction));
  if (data.getElementType().isInteger(1) && (reduction == ReduceKind::Sum || reduction == ReduceKind::Prod))
    return emitOptionalError(location, "'", name, "' op that adds or multiplies needs numbers, but has elements of i1");
  if (isNarrow(data.getElementType()) && reduction)
    return emitOptionalError(location, "'", name, "' op that combines needs numbers, but has elements of ",
                             data.getElementType(), ", which are only stored");
  return RankedTensorType::get(data.getShape(), data.getElementType());
}

/// Places `count` updates, one after the other, along dimension `axis`, and leaves the others where they are. There is
/// an index for each element or, where indices are those of the batch, for each update of an entry of the batch.
static Definition defineAlong(RankedTensorType type, unsigned axis, int64_t count, bool isOfBatch) {
  Definition definition = Definition::over(type);
  definition.lines.push_back(axis);
  SmallVector<AccessDim> at;
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    at.push_back(Definition::at(dim));
  definition.addRead(0) = at;
  definition.writes = at;
  (*definition.writes)[axis] = IndexExpr::unknown(0);
  at[axis] = definition.addLoop(count, LoopKind::Tap);
  definition.addRead(2) = at;
  definition.addRead(1) = isOfBatch ? SmallVector<AccessDim>{at[0], at[axis]} : at;
  definition.indexRead = 2;
  return definition;
}

/// What is there, combined with an update.
static SmallVector<Value> emitUpdate(ElementBuilder &builder, Type type, std::optional<ReduceKind> reduction, Value old,
                                     Value update) {
  if (!reduction)
    return {update};
  Type elementType = cast<RankedTensorType>(type).getElementType();
  Value combined = emitReductionCombine(builder, *reduction, isUnsignedElement(type),
                                        emitReductionTerm(builder, *reduction, elementType, old),
                                        emitReductionTerm(builder, *reduction, elementType, update));
  return {narrow(builder, combined, elementType)};
}

//===----------------------------------------------------------------------===//
// ScatterND
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> ScatterNDOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType data = tensorType(adaptor.getData()), indices = tensorType(adaptor.getIndices()),
                   updates = tensorType(adaptor.getUpdates());
  bool fits = indices.getRank() >= 1 && indices.getShape().back() >= 1 && indices.getShape().back() <= data.getRank();
  if (fits) {
    SmallVector<int64_t> shape(indices.getShape().drop_back());
    llvm::append_range(shape, data.getShape().drop_front(indices.getShape().back()));
    fits = updates.getShape() == ArrayRef(shape);
  }
  return inferScatter(location, getOperationName(), data, indices, updates, adaptor.getReduction(), fits);
}

Definition ScatterNDOp::getDefinition() {
  RankedTensorType indices = tensorType(getIndices());
  unsigned depth = indices.getShape().back(), rank = getType().getRank();
  Definition definition = Definition::over(getType());
  SmallVector<AccessDim> data, update, index, &writes = definition.writes.emplace();
  for (unsigned dim = 0; dim < rank; ++dim)
    data.push_back(Definition::at(dim));
  for (int64_t extent : indices.getShape().drop_back()) {
    update.push_back(definition.addLoop(extent, LoopKind::Tap));
    index.push_back(update.back());
  }
  for (unsigned dim = 0; dim < rank; ++dim) {
    if (dim < depth) {
      definition.lines.push_back(dim);
      writes.push_back(IndexExpr::unknown(dim));
    } else {
      update.push_back(Definition::at(dim));
      writes.push_back(Definition::at(dim));
    }
  }
  index.push_back(IndexExpr::unknown(0));
  definition.addRead(0) = std::move(data);
  definition.addRead(2) = std::move(update);
  definition.addRead(1) = std::move(index);
  definition.indexRead = 2;
  return definition;
}

SmallVector<Value> ScatterNDOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  return emitUpdate(builder, getType(), getReduction(), accumulators.front(), term.front());
}

//===----------------------------------------------------------------------===//
// ScatterElements
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> ScatterElementsOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType data = tensorType(adaptor.getData()), indices = tensorType(adaptor.getIndices()),
                   updates = tensorType(adaptor.getUpdates());
  auto axis = static_cast<int64_t>(adaptor.getAxis());
  if (axis < 0 || axis >= data.getRank())
    return emitOptionalError(location, "'", getOperationName(), "' op has axis ", axis, ", which ", data,
                             " does not have");
  bool fits = indices.getShape() == updates.getShape() && indices.getRank() == data.getRank();
  for (int64_t dim = 0; fits && dim < data.getRank(); ++dim)
    fits = dim == axis || indices.getDimSize(dim) <= data.getDimSize(dim);
  return inferScatter(location, getOperationName(), data, indices, updates, adaptor.getReduction(), fits);
}

Definition ScatterElementsOp::getDefinition() {
  unsigned axis = getAxis();
  return defineAlong(getType(), axis, tensorType(getIndices()).getDimSize(axis), /*isOfBatch=*/false);
}

SmallVector<Value> ScatterElementsOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  return emitUpdate(builder, getType(), getReduction(), accumulators.front(), term.front());
}

//===----------------------------------------------------------------------===//
// TensorScatter
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> TensorScatterOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType data = tensorType(adaptor.getData()), indices = tensorType(adaptor.getIndices()),
                   updates = tensorType(adaptor.getUpdates());
  auto axis = static_cast<int64_t>(adaptor.getAxis());
  if (axis < 1 || axis >= data.getRank())
    return emitOptionalError(location, "'", getOperationName(), "' op has axis ", axis, ", which is not one of ", data,
                             " after the batch dimensions");
  bool fits = updates.getRank() == data.getRank() && indices.getRank() == 2 &&
              indices.getDimSize(0) == data.getDimSize(0) && indices.getDimSize(1) == updates.getDimSize(axis);
  for (int64_t dim = 0; fits && dim < data.getRank(); ++dim)
    fits = dim == axis || updates.getDimSize(dim) == data.getDimSize(dim);
  return inferScatter(location, getOperationName(), data, indices, updates, /*reduction=*/std::nullopt, fits);
}

Definition TensorScatterOp::getDefinition() {
  unsigned axis = getAxis();
  return defineAlong(getType(), axis, tensorType(getUpdates()).getDimSize(axis), /*isOfBatch=*/true);
}

SmallVector<Value> TensorScatterOp::emitCombine(ElementBuilder &, ValueRange, ValueRange term) {
  return {term.front()};
}
