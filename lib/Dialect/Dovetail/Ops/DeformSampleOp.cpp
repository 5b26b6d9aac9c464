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

#include "../Definition/ReductionSupport.h"
#include "SampleSupport.h"
#include "WindowSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/SamplingOps.h"

#include <numeric>

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::IndexExpr;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

namespace {
/// The loops of the result, [N, groups, windows..., taps, blocks, block]. The channels of a block share their group and
/// their offsets, so that positions are computed once for a block.
struct Loops {
  explicit Loops(unsigned rank) : tap(2 + rank), block(3 + rank), channel(4 + rank), first(5 + rank) {}

  static constexpr unsigned batch = 0, group = 1, window = 2;
  unsigned tap, block, channel;
  unsigned first; ///< The first sampled one.
};
} // namespace

FailureOr<RankedTensorType> DeformSampleOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  StringRef name = getOperationName();
  RankedTensorType image = tensorType(adaptor.getImage()), offset = tensorType(adaptor.getOffset());
  auto groups = static_cast<int64_t>(adaptor.getGroups()), shared = static_cast<int64_t>(adaptor.getOffsetGroups());
  if (failed(verifySpatial(location, name, "image", image)))
    return failure();
  int64_t rank = image.getRank() - 2, channels = image.getDimSize(1), taps = 1;
  SmallVector<int64_t> none(rank, 0);
  if (failed(inferWindows(location, name, rank, adaptor.getKernel(), adaptor.getStrides(), adaptor.getDilations(),
                          adaptor.getPadsLow(), none)))
    return failure();
  for (int64_t number : {groups, shared})
    if (number < 1 || channels < number || channels % number != 0)
      return emitOptionalError(location, "'", name, "' op has ", number,
                               " groups, which do not divide the channels of ", image);
  for (int64_t extent : adaptor.getKernel())
    if (llvm::MulOverflow(taps, extent, taps) || taps > std::numeric_limits<int32_t>::max())
      return emitOptionalError(location, "'", name, "' op has a window of too many elements");
  SmallVector<int64_t> needed{image.getDimSize(0), shared * taps * rank};
  if (offset.getRank() != rank + 2 || offset.getShape().take_front(2) != ArrayRef(needed))
    return emitOptionalError(location, "'", name, "' op has offsets of type ", offset, "; of ", image, " with ", shared,
                             " groups of ", taps, " taps they need rank ", rank + 2, " and ", needed[1],
                             " elements for each window");
  needed[1] = shared * taps;
  ArrayRef<int64_t> windows = offset.getShape().drop_front(2);
  llvm::append_range(needed, windows);
  if (Value mask = adaptor.getMask(); mask && tensorType(mask).getShape() != ArrayRef(needed))
    return emitOptionalError(location, "'", name, "' op has a mask of type ", mask.getType(), ", which does not fit ",
                             offset);
  int64_t block = std::gcd(channels / groups, channels / shared);
  SmallVector<int64_t> shape{image.getDimSize(0), groups};
  llvm::append_range(shape, windows);
  shape.append({taps, channels / groups / block, block});
  if (failed(sample::verifyImage(location, name, image, shape)))
    return failure();
  return RankedTensorType::get(shape, image.getElementType());
}

Definition DeformSampleOp::getDefinition() {
  RankedTensorType image = tensorType(getImage());
  unsigned rank = image.getRank() - 2;
  Loops loops(rank);
  int64_t groupSize = image.getDimSize(1) / getGroups(), block = getType().getShape().back();
  int64_t taps = getType().getDimSize(loops.tap), perOffset = image.getDimSize(1) / getOffsetGroups();
  Definition definition = Definition::over(getType());
  // A loop of one iteration is left out, so that the others are known to be alone.
  auto at = [&](unsigned loop) { return getType().getDimSize(loop) == 1 ? IndexExpr(0) : Definition::at(loop); };
  IndexExpr first = at(loops.group) * groupSize + at(loops.block) * block;
  SmallVector<AccessDim> dims{Definition::at(loops.batch), first + at(loops.channel)};
  for (unsigned dim = 0; dim < rank; ++dim)
    dims.push_back(sample::addSampled(definition, image.getDimSize(dim + 2), /*index=*/1 + dim, ReduceKind::Sum));
  definition.addRead(0) = std::move(dims);

  IndexExpr tap = at(loops.tap);
  if (getOffsetGroups() > 1)
    tap = tap + first.floorDiv(perOffset) * taps;
  auto read = [&](unsigned operand, const IndexExpr &index) {
    SmallVector<AccessDim> &dims = definition.addRead(operand);
    dims = {Definition::at(loops.batch), index};
    for (unsigned dim = 0; dim < rank; ++dim)
      dims.push_back(Definition::at(loops.window + dim));
  };
  for (unsigned dim = 0; dim < rank; ++dim)
    read(1, tap * rank + dim);
  if (getMask())
    read(2, tap);
  return definition;
}

bool DeformSampleOp::isCheapElement() { return false; }

FormatPreference DeformSampleOp::getFormatPreference() { return FormatPreference::RowMajor; }

SmallVector<Value> DeformSampleOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  RankedTensorType image = tensorType(getImage());
  FloatType position = sample::getPositionType(image, tensorType(getOffset()).getElementType());
  unsigned rank = image.getRank() - 2;
  Loops loops(rank);
  SmallVector<sample::Taps> taps(rank);
  Value tap = body.getLoop(loops.tap);
  for (unsigned dim = rank; dim-- > 0;) {
    // Taps are numbered row-major.
    int64_t kernel = getKernel()[dim];
    Value outer = builder.floorDivI(tap, kernel), within = builder.subI(tap, builder.mulI(outer, kernel));
    tap = outer;
    Value start = builder.addI(builder.mulI(body.getLoop(loops.window + dim), getStrides()[dim]), -getPadsLow()[dim]);
    Value base = builder.addI(start, builder.mulI(within, getDilations()[dim]));
    Value offset = builder.convertFloat(body.read(1 + dim), position);
    Value x = builder.add(sample::toFloat(builder, base, position), offset);
    taps[dim] = sample::getTaps(body, loops.first + dim, x, ResizeMode::Linear, PadMode::Constant);
  }
  Type type = getAccumulatorType(image.getElementType());
  Value sum = sample::emitSum(body, 0, taps, type);
  if (getMask())
    sum = builder.mul(sum, widen(builder, body.read(1 + rank), type));
  return {narrow(builder, sum, image.getElementType())};
}
