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

Definition dovetail::getElementwiseDefinition(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  Definition definition = Definition::over(result);
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    auto type = cast<RankedTensorType>(operand.getType());
    SmallVector<layout::AccessDim> &dims = definition.addRead(number);
    for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
      unsigned loop = result.getRank() - type.getRank() + dim;
      dims.push_back(extent == result.getDimSize(loop) ? Definition::at(loop) : layout::IndexExpr(0));
    }
  }
  return definition;
}

SmallVector<Value> dovetail::readAll(BodyBuilder &body) {
  SmallVector<Value> scalars;
  for (unsigned read = 0; read < body.getDefinition().reads.size(); ++read)
    scalars.push_back(body.read(read));
  return scalars;
}
