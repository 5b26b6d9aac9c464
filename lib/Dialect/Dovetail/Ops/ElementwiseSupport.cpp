//===- ElementwiseSupport.cpp - What elementwise operations share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines broadcasting for elementwise operations: types, relations and reads.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/Dialect/Traits.h"

using namespace mlir;
using namespace dovetail;

FailureOr<RankedTensorType> dovetail::inferElementwiseType(std::optional<Location> location, StringRef opName,
                                                           ValueRange operands, Type elementType) {
  SmallVector<int64_t> shape;
  for (Value operand : operands) {
    auto type = cast<RankedTensorType>(operand.getType());
    SmallVector<int64_t> merged;
    if (!OpTrait::util::getBroadcastedShape(shape, type.getShape(), merged)) {
      if (location) {
        InFlightDiagnostic diagnostic = emitError(*location)
                                        << "'" << opName << "' op has operands that do not broadcast:";
        for (Value each : operands)
          diagnostic << " " << each.getType();
      }
      return failure();
    }
    shape = merged;
  }
  return RankedTensorType::get(shape, elementType);
}

OpRelation dovetail::getElementwiseRelation(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  OpRelation relation;
  for (int64_t extent : result.getShape())
    relation.loops.push_back({extent});
  for (Value operand : op->getOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    int offset = result.getRank() - type.getRank();
    SmallVector<DimRelation> &dims = relation.operands.emplace_back();
    for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
      int loop = offset + static_cast<int>(dim);
      dims.push_back(extent == result.getDimSize(loop) ? DimRelation::identity(loop) : DimRelation::broadcast());
    }
  }
  return relation;
}

SmallVector<Value> dovetail::readBroadcast(Operation *op, ElementBuilder &builder, ArrayRef<Value> index,
                                           ElementSource &elements) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<Value> scalars;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    auto type = cast<RankedTensorType>(operand.getType());
    int offset = result.getRank() - type.getRank();
    SmallVector<Value> coordinates;
    for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
      int loop = offset + static_cast<int>(dim);
      coordinates.push_back(extent == result.getDimSize(loop) ? index[loop] : builder.index(0));
    }
    scalars.push_back(elements.read(number, coordinates));
  }
  return scalars;
}
