//===- DftOp.cpp - Discrete Fourier transform -----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.dft`, a row program: fast Fourier transforms of mixed radix, of one line or a vector of lines.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Definition/VectorSquare.h"
#include "dovetail/Dialect/Dovetail/Ops/FourierPlan.h"
#include "dovetail/Dialect/Dovetail/Ops/SpectralOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

FailureOr<RankedTensorType> DftOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  auto table = cast<RankedTensorType>(adaptor.getTable().getType());
  auto axis = static_cast<int64_t>(adaptor.getAxis()), length = static_cast<int64_t>(adaptor.getLength()),
       rank = operand.getRank();
  bool inverse = adaptor.getInverse(), onesided = adaptor.getOnesided();
  if (adaptor.getUnscaled() && !inverse)
    return emitOptionalError(location, "'", getOperationName(), "' op is unscaled, but not inverse");
  Type type = operand.getElementType();
  auto fail = [&](const Twine &why) {
    return emitOptionalError(location, "'", getOperationName(), "' op cannot transform ", operand, ": ", why);
  };
  if (!type.isF32() && !type.isF64())
    return fail("elements are neither f32 nor f64");
  if (axis < 0 || axis >= rank - 1)
    return fail("there is no dimension " + Twine(axis) + " before the last one");
  int64_t parts = operand.getShape().back();
  if (onesided ? parts != (inverse ? 2 : 1) : parts != 1 && parts != 2)
    return fail("the last dimension has " + Twine(parts) + " elements");
  std::optional<FourierPlan> plan = FourierPlan::create(length, onesided);
  if (!plan)
    return fail("there are no factors of length " + Twine(length));
  int64_t half = length / 2 + 1;
  if (int64_t expected = onesided && inverse ? half : length; operand.getDimSize(axis) != expected)
    return fail("dimension " + Twine(axis) + " has not " + Twine(expected) + " elements");
  if (!equalUpToSharding(table, RankedTensorType::get(2 * plan->getTableSize(), type)))
    return emitOptionalError(location, "'", getOperationName(), "' op has table ", table, ", but needs ",
                             2 * plan->getTableSize(), " elements of ", type);
  SmallVector<int64_t> shape(operand.getShape());
  shape[axis] = onesided && !inverse ? half : length;
  shape.back() = onesided && inverse ? 1 : 2;
  return RankedTensorType::get(shape, type);
}

Definition DftOp::getDefinition() {
  unsigned axis = getAxis();
  Definition definition = Definition::over(getType());
  unsigned last = definition.resultRank - 1;
  SmallVector<layout::AccessDim> dims;
  for (unsigned dim = 0; dim < last; ++dim)
    dims.push_back(Definition::at(dim));
  dims.push_back(IndexExpr::unknown(1));
  dims[axis] = IndexExpr::unknown(0);
  definition.addRead(0) = dims;
  definition.addRead(1).push_back(IndexExpr::unknown(0));
  for (unsigned loop : {axis, last}) {
    definition.loops[loop].kind = LoopKind::Whole;
    definition.lines.push_back(loop);
  }
  return definition;
}

bool DftOp::readsReal() { return cast<RankedTensorType>(getOperand().getType()).getShape().back() == 1; }

bool DftOp::writesReal() { return getType().getShape().back() == 1; }

bool DftOp::isPlain() { return getInverse() == getUnscaled() && (getOnesided() || !readsReal()); }

std::optional<CallForm> DftOp::getCallForm() {
  // A library has the roots of one itself.
  if (!isPlain() || !getTable().getDefiningOp<ConstantOp>())
    return std::nullopt;
  calls::TransformForm form{static_cast<size_t>(getAxis()), static_cast<int64_t>(getLength()), readsReal(),
                            writesReal()};
  return TransformCall{form, getInverse()};
}

/// Code of lines does not show it.
bool DftOp::isLinearIn(ArrayRef<unsigned> operands) { return operands == ArrayRef<unsigned>{0}; }
