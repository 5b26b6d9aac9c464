//===- FramesOp.cpp - Overlapping pieces of a dimension -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.frames`.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/SpectralOps.h"

using namespace mlir;
using namespace dovetail;

FailureOr<RankedTensorType> FramesOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  auto axis = static_cast<int64_t>(adaptor.getAxis()), length = static_cast<int64_t>(adaptor.getLength()),
       step = static_cast<int64_t>(adaptor.getStep());
  if (axis < 0 || axis >= operand.getRank())
    return emitOptionalError(location, "'", getOperationName(), "' op has axis ", axis, ", which ", operand,
                             " does not have");
  int64_t extent = operand.getDimSize(axis);
  if (step < 1 || length < 1 || length > extent)
    return emitOptionalError(location, "'", getOperationName(), "' op takes pieces of ", length, " elements, ", step,
                             " apart, of ", extent, " in dimension ", axis);
  SmallVector<int64_t> shape(operand.getShape());
  shape[axis] = (extent - length) / step + 1;
  shape.insert(shape.begin() + axis + 1, length);
  return RankedTensorType::get(shape, operand.getElementType());
}

Definition FramesOp::getDefinition() {
  unsigned axis = getAxis();
  Definition definition = Definition::over(getType());
  definition.loops[axis + 1].kind = LoopKind::Whole;
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned dim = 0; dim + 1 < definition.resultRank; ++dim)
    dims.push_back(Definition::at(dim + (dim > axis)));
  // Of one piece, the step may be as large as integers go.
  bool isSingle = getType().getDimSize(axis) == 1;
  dims[axis] = Definition::at(axis) * (isSingle ? 1 : static_cast<int64_t>(getStep())) + Definition::at(axis + 1);
  return definition;
}
