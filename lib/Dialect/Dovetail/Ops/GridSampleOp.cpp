//===- GridSampleOp.cpp - Sampling at the positions of a grid --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.grid_sample`.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "SampleSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/SamplingOps.h"

using namespace mlir;
using namespace dovetail;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// More terms than this for an element are a mistake, or would take forever to compile.
static constexpr int64_t maxTerms = 1024;

FailureOr<RankedTensorType> GridSampleOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  StringRef name = getOperationName();
  RankedTensorType image = tensorType(adaptor.getImage()), grid = tensorType(adaptor.getGrid());
  int64_t rank = image.getRank() - 2;
  if (rank < 1 || grid.getRank() != rank + 2 || grid.getShape().back() != rank ||
      grid.getDimSize(0) != image.getDimSize(0))
    return emitOptionalError(location, "'", name, "' op cannot sample ", image, " at ", grid,
                             ": the grid needs the batch, positions of as many dimensions as the image, and as many "
                             "coordinates");
  SmallVector<int64_t> shape{image.getDimSize(0), image.getDimSize(1)};
  llvm::append_range(shape, grid.getShape().drop_front().drop_back());
  if (failed(sample::verifyImage(location, name, image, shape)))
    return failure();
  if (adaptor.getPadding() == PadMode::Wrap)
    return emitOptionalError(location, "'", name, "' op cannot pad by wrapping around");
  int64_t terms = adaptor.getMode() == ResizeMode::Nearest ? 1 : adaptor.getMode() == ResizeMode::Linear ? 2 : 4;
  if (terms > 1 && !isa<FloatType>(image.getElementType()))
    return emitOptionalError(location, "'", name, "' op interpolates elements of ", image, ", which are not floats");
  for (int64_t dim = 1, each = terms; dim < rank; ++dim)
    if ((terms *= each) > maxTerms)
      return emitOptionalError(location, "'", name, "' op interpolates more than ", maxTerms, " elements of ", image,
                               " for each of its results");
  return RankedTensorType::get(shape, image.getElementType());
}

Definition GridSampleOp::getDefinition() {
  unsigned rank = getType().getRank() - 2;
  // One element has one owner. Others are sums.
  ReduceKind kind = getMode() == ResizeMode::Nearest ? ReduceKind::Owner : ReduceKind::Sum;
  Definition definition = Definition::over(getType());
  SmallVector<layout::AccessDim> image{Definition::at(0), Definition::at(1)}, grid{Definition::at(0)};
  for (unsigned dim = 0; dim < rank; ++dim) {
    image.push_back(sample::addSampled(definition, tensorType(getImage()).getDimSize(dim + 2), /*index=*/1, kind));
    grid.push_back(Definition::at(dim + 2));
  }
  grid.push_back(layout::IndexExpr::unknown(0));
  definition.addRead(0) = std::move(image);
  definition.addRead(1) = std::move(grid);
  return definition;
}

bool GridSampleOp::isCheapElement() { return false; }

FormatPreference GridSampleOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

SmallVector<Value> GridSampleOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  RankedTensorType image = tensorType(getImage());
  FloatType position = sample::getPositionType(image, tensorType(getGrid()).getElementType());
  unsigned rank = image.getRank() - 2, resultRank = getType().getRank();
  auto number = [&](double value) { return builder.constant(position, value); };
  SmallVector<sample::Taps> taps;
  for (unsigned dim = 0; dim < rank; ++dim) {
    auto extent = static_cast<double>(image.getDimSize(dim + 2));
    Value given = builder.convertFloat(body.read(1, {builder.index(rank - 1 - dim)}), position);
    Value x = builder.add(given, number(1));
    if (getAlignCorners())
      x = builder.mul(builder.mul(x, number(0.5)), number(extent - 1));
    else
      x = builder.mul(builder.sub(builder.mul(x, number(extent)), number(1)), number(0.5));
    taps.push_back(sample::getTaps(body, resultRank + dim, x, getMode(), getPadding(), getAlignCorners()));
  }
  bool isMoved = getMode() == ResizeMode::Nearest;
  Type type = image.getElementType();
  Value sum = sample::emitSum(body, 0, taps, isMoved ? ElementBuilder::scalarType(type) : getAccumulatorType(type));
  return {isMoved ? sum : narrow(builder, sum, type)};
}
