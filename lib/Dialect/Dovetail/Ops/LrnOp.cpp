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

#include "ReductionSupport.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;
using layout::DimMap;

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

OpRelation LrnOp::getRelation() {
  OpRelation relation;
  SmallVector<DimRelation> &dims = relation.operands.emplace_back();
  for (auto [dim, extent] : llvm::enumerate(getType().getShape())) {
    relation.loops.push_back({extent});
    dims.push_back(DimRelation::identity(dim));
  }
  int64_t size = getSize();
  dims[1].map = DimMap::window(size, /*stride=*/1, /*dilation=*/1, (size - 1) / 2);
  return relation;
}

FormatPreference LrnOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

bool LrnOp::isCheapElement() { return false; }

Value LrnOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  Type elementType = getType().getElementType();
  Type type = getAccumulatorType(elementType);
  int64_t size = getSize();
  Value first = builder.addI(index[1], -((size - 1) / 2));
  Value squares = builder
                      .forLoop(builder.index(0), builder.index(size), builder.zero(type),
                               [&](Value iv, ValueRange carried) -> SmallVector<Value> {
                                 Value accumulator = carried.front();
                                 Value channel = builder.addI(first, iv);
                                 auto addSquare = [&] {
                                   SmallVector<Value> neighbour(index);
                                   neighbour[1] = channel;
                                   Value x = widen(builder, elements.read(0, neighbour), type);
                                   return builder.add(accumulator, builder.mul(x, x));
                                 };
                                 return {builder.guarded(builder.inRange(channel, 0, getType().getDimSize(1)), type,
                                                         addSquare, accumulator)};
                               })
                      .front();

  float beta = getBeta().convertToFloat();
  Value base = builder.add(builder.constant(type, getBias().convertToFloat()),
                           builder.mul(builder.constant(type, getAlpha().convertToFloat() / size), squares));
  Value divisor;
  if (beta == 0.75f) // The usual exponent, without a general power.
    divisor = builder.create<math::SqrtOp>(builder.mul(base, builder.create<math::SqrtOp>(base)));
  else
    divisor = builder.create<math::PowFOp>(base, builder.constant(type, beta));
  Value x = widen(builder, elements.read(0, index), type);
  return narrow(builder, builder.div(x, divisor), elementType);
}
