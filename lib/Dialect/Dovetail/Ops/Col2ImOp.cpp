//===- Col2ImOp.cpp - Sums of overlapping blocks -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.col2im`.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "WindowSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/IndexingOps.h"

using namespace mlir;
using namespace dovetail;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

FailureOr<RankedTensorType> Col2ImOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  RankedTensorType type = tensorType(adaptor.getOperand());
  ArrayRef<int64_t> sizes = adaptor.getSizes();
  auto spatialRank = static_cast<int64_t>(sizes.size());
  if (type.getRank() != 2 + 2 * spatialRank || type.getElementType().isInteger(1))
    return emitOptionalError(location, "'", getOperationName(), "' op has an operand ", type,
                             ", but needs numbers of dimensions [N, C, block..., grid...] for ", spatialRank, " sizes");
  ArrayRef<int64_t> block = type.getShape().slice(2, spatialRank), grid = type.getShape().drop_front(2 + spatialRank);
  auto windows = inferWindows(location, getOperationName(), spatialRank, block, adaptor.getStrides(),
                              adaptor.getDilations(), adaptor.getPadsLow(), adaptor.getPadsHigh());
  if (failed(windows))
    return failure();
  for (auto [dim, window] : llvm::enumerate(*windows)) {
    if (sizes[dim] < 0 || sizes[dim] > int64_t(1) << 30)
      return emitOptionalError(location, "'", getOperationName(), "' op has size ", sizes[dim], ", not in 0 .. 2^30");
    int64_t room = sizes[dim] + window.pad + window.padHigh - window.reach();
    if (int64_t places = room < 0 ? 0 : room / window.stride + 1; places != grid[dim])
      return emitOptionalError(location, "'", getOperationName(), "' op has ", grid[dim],
                               " places of blocks along spatial dimension ", dim, ", but ", places, " fit");
  }
  SmallVector<int64_t> shape(type.getShape().take_front(2));
  llvm::append_range(shape, sizes);
  return RankedTensorType::get(shape, type.getElementType());
}

Definition Col2ImOp::getDefinition() {
  unsigned spatialRank = getSizes().size();
  Windows windows = getWindows(tensorType(getOperand()).getShape().slice(2, spatialRank), getStrides(), getDilations(),
                               getPadsLow(), getPadsHigh());
  Definition definition = Definition::over(getType());
  definition.isFold = true;
  SmallVector<layout::IndexExpr> taps = addTaps(definition, windows);
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  dims = {Definition::at(0), Definition::at(1)};
  dims.append(taps.begin(), taps.end());
  for (auto [dim, window] : llvm::enumerate(windows)) {
    window.isTransposed = true;
    dims.push_back(window.at(Definition::at(dim + 2), taps[dim]));
  }
  return definition;
}

SmallVector<Value> Col2ImOp::emitBody(BodyBuilder &body) {
  return {widen(body.elements, body.read(0), getAccumulatorType(getType().getElementType()))};
}
