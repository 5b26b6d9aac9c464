//===- LrnOp.cpp - Local response normalisation -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.lrn`.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

FailureOr<RankedTensorType> LrnOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto input = cast<RankedTensorType>(adaptor.getInput().getType());
  if (input.getRank() < 2 || !isa<FloatType>(input.getElementType()))
    return emitOptionalError(location, "'", getOperationName(), "' op needs floats over [N, C, ...], but has ", input);
  int64_t size = adaptor.getSize();
  if (size < 1 || size > (int64_t(1) << 30))
    return emitOptionalError(location, "'", getOperationName(), "' op has size ", size,
                             ", but needs a channel or more");
  return RankedTensorType::get(input.getShape(), input.getElementType());
}

Definition LrnOp::getDefinition() {
  Definition definition = Definition::over(getType());
  definition.isFold = true;
  int64_t size = getSize();
  IndexExpr neighbour = definition.addLoop(size, LoopKind::Tap) - (size - 1) / 2;
  for (bool isNeighbour : {true, false}) {
    SmallVector<layout::AccessDim> &dims = definition.addRead(0);
    for (int64_t dim = 0; dim < getType().getRank(); ++dim)
      dims.push_back(dim == 1 && isNeighbour ? Definition::at(dim) + neighbour : Definition::at(dim));
  }
  return definition;
}

FormatPreference LrnOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

SmallVector<Value> LrnOp::emitBody(BodyBuilder &body) {
  Value x = widen(body.elements, body.read(0), getAccumulatorType(getType().getElementType()));
  return {body.elements.mul(x, x)};
}

SmallVector<Value> LrnOp::emitFinish(BodyBuilder &body, ValueRange accumulators) {
  ElementBuilder &builder = body.elements;
  Value squares = accumulators.front();
  Type type = squares.getType();
  float beta = getBeta().convertToFloat();
  Value base = builder.add(builder.constant(type, getBias().convertToFloat()),
                           builder.mul(builder.constant(type, getAlpha().convertToFloat() / getSize()), squares));
  Value divisor;
  if (beta == 0.75f) // The usual exponent, without a general power.
    divisor = builder.create<math::SqrtOp>(builder.mul(base, builder.create<math::SqrtOp>(base)));
  else
    divisor = builder.create<math::PowFOp>(base, builder.constant(type, beta));
  Value x = widen(builder, body.read(1), type);
  return {narrow(builder, builder.div(x, divisor), getType().getElementType())};
}
