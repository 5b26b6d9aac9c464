//===- Norms.cpp - Softmax and normalisations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.softmax`, `dovetail.layer_norm` and `dovetail.group_norm`, but for their decompositions.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "WindowSupport.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Traits.h"

using namespace mlir;
using namespace dovetail;

static LogicalResult verifyFloats(std::optional<Location> location, StringRef opName, RankedTensorType operand) {
  if (isa<FloatType>(operand.getElementType()))
    return success();
  return emitOptionalError(location, "'", opName, "' op needs floats, but has elements of ", operand.getElementType());
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> SoftmaxOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  int64_t axis = adaptor.getAxis();
  if (failed(verifyFloats(location, getOperationName(), operand)) ||
      failed(verifyAxes(location, getOperationName(), axis, operand.getRank())))
    return failure();
  return RankedTensorType::get(operand.getShape(), operand.getElementType());
}

//===----------------------------------------------------------------------===//
// Layer and group normalisation
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> LayerNormOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  StringRef name = getOperationName();
  int64_t axis = adaptor.getAxis();
  if (failed(verifyFloats(location, name, operand)) || failed(verifyAxes(location, name, axis, operand.getRank())))
    return failure();
  for (Value parameter : {adaptor.getScale(), adaptor.getBias()}) {
    if (!parameter)
      continue;
    auto type = cast<RankedTensorType>(parameter.getType());
    SmallVector<int64_t> shape;
    if (!OpTrait::util::getBroadcastedShape(operand.getShape(), type.getShape(), shape) ||
        shape != operand.getShape() || !isa<FloatType>(type.getElementType()))
      return emitOptionalError(location, "'", name, "' op has a scale or bias ", type,
                               " that does not broadcast to its operand ", operand);
  }
  return RankedTensorType::get(operand.getShape(), operand.getElementType());
}

FailureOr<RankedTensorType> GroupNormOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  StringRef name = getOperationName();
  if (failed(verifyFloats(location, name, operand)))
    return failure();
  if (operand.getRank() < 2)
    return emitOptionalError(location, "'", name, "' op needs [N, C, spatial...], but has ", operand);
  int64_t channels = operand.getDimSize(1);
  if (failed(verifyGroups(location, name, adaptor.getGroups(), channels, "channels")))
    return failure();
  for (Value parameter : {adaptor.getScale(), adaptor.getBias()}) {
    if (!parameter)
      continue;
    auto type = cast<RankedTensorType>(parameter.getType());
    if (type.getShape() != ArrayRef<int64_t>(channels) || !isa<FloatType>(type.getElementType()))
      return emitOptionalError(location, "'", name, "' op has a scale or bias ", type, " for ", channels, " channels");
  }
  return RankedTensorType::get(operand.getShape(), operand.getElementType());
}
