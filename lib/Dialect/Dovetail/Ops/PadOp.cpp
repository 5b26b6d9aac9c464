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

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

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

/// The position that `mode` reads for position `i`, before or behind [0, extent) or in it.
static int64_t continueInside(int64_t i, int64_t extent, PadMode mode) {
  auto floorMod = [](int64_t a, int64_t b) { return ((a % b) + b) % b; };
  switch (mode) {
  case PadMode::Edge:
    return std::clamp<int64_t>(i, 0, extent - 1);
  case PadMode::Wrap:
    return floorMod(i, extent);
  case PadMode::Reflect: {
    if (extent == 1)
      return 0;
    int64_t period = 2 * (extent - 1);
    int64_t position = floorMod(i, period);
    return std::min(position, period - position);
  }
  case PadMode::Constant:
    break;
  }
  return i;
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

OpRelation PadOp::getRelation() {
  OpRelation relation;
  SmallVector<DimRelation> &dims = relation.operands.emplace_back();
  for (auto [dim, extent] : llvm::enumerate(getOperand().getType().getShape())) {
    PaddedDim padded(extent, getLow()[dim], getHigh()[dim]);
    relation.loops.push_back({padded.result});
    DimRelation &related = dims.emplace_back(DimRelation::identity(static_cast<int>(dim)));
    if (getMode() == PadMode::Constant || !padded.isExtended()) {
      related.map = layout::DimMap::shift(-getLow()[dim]);
      continue;
    }
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < padded.result; ++i)
      positions.push_back(padded.crop + continueInside(i - padded.low, padded.extent, getMode()));
    related.map = layout::DimMap::table(positions, positions);
  }
  if (getValue())
    relation.operands.emplace_back();
  return relation;
}

/// `continueInside` for a coordinate that is not known.
static Value emitContinued(ElementBuilder &builder, Value i, int64_t extent, PadMode mode) {
  switch (mode) {
  case PadMode::Edge:
    return builder.clampI(i, 0, extent - 1);
  case PadMode::Wrap:
    return builder.floorModI(i, extent);
  case PadMode::Reflect: {
    if (extent == 1)
      return builder.index(0);
    int64_t period = 2 * (extent - 1);
    Value position = builder.floorModI(i, period);
    return builder.minI(position, builder.subI(builder.index(period), position));
  }
  case PadMode::Constant:
    break;
  }
  return i;
}

Value PadOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  SmallVector<Value> coordinates;
  Value inside = builder.boolean(true);
  for (auto [dim, extent] : llvm::enumerate(getOperand().getType().getShape())) {
    PaddedDim padded(extent, getLow()[dim], getHigh()[dim]);
    Value position = builder.addI(index[dim], -padded.low);
    if (padded.isExtended()) {
      if (getMode() == PadMode::Constant)
        inside = builder.andB(inside, builder.inRange(position, 0, padded.extent));
      else
        position = emitContinued(builder, position, padded.extent, getMode());
    }
    coordinates.push_back(builder.addI(position, padded.crop));
  }
  auto read = [&] { return elements.read(0, coordinates); };
  if (getMode() != PadMode::Constant)
    return read();
  Type type = ElementBuilder::scalarType(getType().getElementType());
  return builder.ifElse(inside, type, read, [&] { return getValue() ? elements.read(1, {}) : builder.zero(type); });
}
