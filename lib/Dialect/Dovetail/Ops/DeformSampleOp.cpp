//===- DeformSampleOp.cpp - What deformed windows see ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.deform_sample`.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"
#include "SampleSupport.h"
#include "WindowSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/SamplingOps.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

FailureOr<RankedTensorType> DeformSampleOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  StringRef name = getOperationName();
  RankedTensorType image = tensorType(adaptor.getImage()), offset = tensorType(adaptor.getOffset());
  int64_t rank = image.getRank() - 2, groups = adaptor.getGroups(), taps = 1;
  if (failed(verifySpatial(location, name, "image", image)))
    return failure();
  SmallVector<int64_t> none(rank, 0);
  if (failed(inferWindows(location, name, rank, adaptor.getKernel(), adaptor.getStrides(), adaptor.getDilations(),
                          adaptor.getPadsLow(), none)))
    return failure();
  if (groups < 1 || image.getDimSize(1) % groups != 0)
    return emitOptionalError(location, "'", name, "' op has ", groups, " groups, which do not divide the channels of ",
                             image);
  SmallVector<int64_t> shape{image.getDimSize(0), image.getDimSize(1)};
  for (int64_t extent : adaptor.getKernel())
    if (llvm::MulOverflow(taps, extent, taps) || taps > std::numeric_limits<int32_t>::max())
      return emitOptionalError(location, "'", name, "' op has a window of too many elements");
  SmallVector<int64_t> needed{image.getDimSize(0), groups * taps * rank};
  if (offset.getRank() != rank + 2 || offset.getShape().take_front(2) != ArrayRef(needed))
    return emitOptionalError(location, "'", name, "' op has offsets of type ", offset, "; of ", image, " with ", groups,
                             " groups of ", taps, " taps they need rank ", rank + 2, " and ", needed[1],
                             " elements for each window");
  needed[1] = groups * taps;
  llvm::append_range(needed, offset.getShape().drop_front(2));
  if (Value mask = adaptor.getMask(); mask && tensorType(mask).getShape() != ArrayRef(needed))
    return emitOptionalError(location, "'", name, "' op has a mask of type ", mask.getType(), ", which does not fit ",
                             offset);
  for (auto [extent, kernel] : llvm::zip_equal(offset.getShape().drop_front(2), adaptor.getKernel())) {
    if (extent > std::numeric_limits<int32_t>::max() / kernel)
      return emitOptionalError(location, "'", name, "' op has more windows than there are numbers for");
    shape.push_back(extent * kernel);
  }
  if (failed(sample::verifyImage(location, name, image, shape)))
    return failure();
  return RankedTensorType::get(shape, image.getElementType());
}

Definition DeformSampleOp::getDefinition() {
  RankedTensorType image = tensorType(getImage());
  unsigned rank = getType().getRank() - 2;
  Definition definition = Definition::over(getType());
  SmallVector<layout::AccessDim> dims{Definition::at(0), Definition::at(1)};
  for (unsigned dim = 0; dim < rank; ++dim)
    dims.push_back(sample::addSampled(definition, image.getDimSize(dim + 2), /*index=*/1 + dim, ReduceKind::Sum));
  definition.addRead(0) = std::move(dims);

  // The tap, row-major, of the group.
  IndexExpr tap;
  int64_t taps = 1;
  for (auto [dim, kernel] : llvm::enumerate(getKernel())) {
    tap = tap * kernel + (kernel == 1 ? IndexExpr(0) : Definition::at(dim + 2).mod(kernel));
    taps *= kernel;
  }
  if (getGroups() > 1 && image.getDimSize(1) > 0)
    tap = tap + Definition::at(1).floorDiv(image.getDimSize(1) / getGroups()) * taps;
  auto read = [&](unsigned operand, const IndexExpr &at) {
    SmallVector<layout::AccessDim> &dims = definition.addRead(operand);
    dims = {Definition::at(0), at};
    for (auto [dim, kernel] : llvm::enumerate(getKernel()))
      dims.push_back(Definition::at(dim + 2).floorDiv(kernel));
  };
  for (unsigned dim = 0; dim < rank; ++dim)
    read(1, tap * rank + dim);
  if (getMask())
    read(2, tap);
  return definition;
}

bool DeformSampleOp::isCheapElement() { return false; }

bool DeformSampleOp::isLinearIn(unsigned operand) { return operand != 1; }

FormatPreference DeformSampleOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

SmallVector<Value> DeformSampleOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  RankedTensorType image = tensorType(getImage());
  FloatType position = sample::getPositionType(image, tensorType(getOffset()).getElementType());
  unsigned rank = image.getRank() - 2, resultRank = getType().getRank();
  SmallVector<sample::Taps> taps;
  for (unsigned dim = 0; dim < rank; ++dim) {
    int64_t kernel = getKernel()[dim];
    Value loop = body.getLoop(dim + 2), window = builder.floorDivI(loop, kernel);
    Value tap = builder.subI(loop, builder.mulI(window, kernel));
    Value base = builder.addI(builder.addI(builder.mulI(window, getStrides()[dim]), -getPadsLow()[dim]),
                              builder.mulI(tap, getDilations()[dim]));
    Value offset = builder.convertFloat(body.read(1 + dim), position);
    Value x = builder.add(sample::toFloat(builder, base, position), offset);
    taps.push_back(sample::getTaps(body, resultRank + dim, x, ResizeMode::Linear, PadMode::Constant));
  }
  Type type = getAccumulatorType(image.getElementType());
  Value sum = sample::emitSum(body, 0, taps, type);
  if (getMask())
    sum = builder.mul(sum, widen(builder, body.read(1 + rank), type));
  return {narrow(builder, sum, image.getElementType())};
}
