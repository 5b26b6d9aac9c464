//===- PadOp.cpp - Padding -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines padding and cropping in all modes.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// What happens to one dimension: `crop` elements are cut off in front and `extent` of them remain, which go to
/// [low, low + extent) of `result` elements.
struct PaddedDim {
  int64_t crop, extent, low, result;

  PaddedDim(int64_t operandExtent, int64_t lowPad, int64_t highPad)
      : crop(std::max<int64_t>(0, -lowPad)), extent(operandExtent - crop - std::max<int64_t>(0, -highPad)),
        low(std::max<int64_t>(0, lowPad)), result(low + extent + std::max<int64_t>(0, highPad)) {}

  bool isExtended() const { return result > extent; }
};
} // namespace

/// How `mode` continues a dimension.
static layout::Border getBorder(PadMode mode) {
  switch (mode) {
  case PadMode::Constant:
    return layout::Border::None;
  case PadMode::Edge:
    return layout::Border::Edge;
  case PadMode::Reflect:
    return layout::Border::Reflect;
  case PadMode::Wrap:
    return layout::Border::Wrap;
  }
  llvm_unreachable("a mode that is none");
}

FailureOr<RankedTensorType> PadOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto type = llvm::cast<RankedTensorType>(adaptor.getOperand().getType());
  ArrayRef<int64_t> low = adaptor.getLow(), high = adaptor.getHigh();
  auto rank = static_cast<size_t>(type.getRank());
  if (low.size() != rank || high.size() != rank)
    return emitOptionalError(location, "'dovetail.pad' op has ", low.size(), " low and ", high.size(),
                             " high pads for the ", rank, " dimensions of ", type);
  if (Value value = adaptor.getValue()) {
    auto valueType = llvm::cast<RankedTensorType>(value.getType());
    if (valueType.getRank() != 0 || valueType.getElementType() != type.getElementType())
      return emitOptionalError(location, "'dovetail.pad' op pads ", type, " with a value of type ", valueType,
                               "; it must be a scalar of the same element type");
  }
  SmallVector<int64_t> shape;
  constexpr int64_t limit = int64_t(1) << 40;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    if (std::min(low[dim], high[dim]) < -limit || std::max(low[dim], high[dim]) > limit)
      return emitOptionalError(location, "'dovetail.pad' op has pads ", low[dim], " and ", high[dim], " in dimension ",
                               dim, "; pads are limited to 2^40");
    PaddedDim padded(extent, low[dim], high[dim]);
    if (padded.extent < 0)
      return emitOptionalError(location, "'dovetail.pad' op crops ", extent - padded.extent, " of ", extent,
                               " elements in dimension ", dim, " of ", type);
    if (padded.extent == 0 && padded.isExtended() && adaptor.getMode() != PadMode::Constant)
      return emitOptionalError(location, "'dovetail.pad' op continues nothing in mode ",
                               stringifyPadMode(adaptor.getMode()), ": dimension ", dim, " of ", type,
                               " has no elements left");
    shape.push_back(padded.result);
  }
  return RankedTensorType::get(shape, type.getElementType());
}

Definition PadOp::getDefinition() {
  Definition definition = Definition::over(getType());
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (auto [dim, extent] : llvm::enumerate(getOperand().getType().getShape())) {
    PaddedDim padded(extent, getLow()[dim], getHigh()[dim]);
    layout::IndexExpr index = Definition::at(dim) - getLow()[dim];
    if (padded.isExtended())
      dims.push_back({index, getBorder(getMode()), {padded.crop, padded.crop + padded.extent}});
    else
      dims.push_back(index);
  }
  if (getValue())
    definition.addRead(1);
  return definition;
}

SmallVector<Value> PadOp::emitBody(BodyBuilder &body) {
  return {body.readOr(0, [&] {
    return getValue() ? body.read(1) : body.elements.zero(ElementBuilder::scalarType(getType().getElementType()));
  })};
}
