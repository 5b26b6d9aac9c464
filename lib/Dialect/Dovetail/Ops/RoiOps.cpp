//===- RoiOps.cpp - Pooling of regions ------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.roi_align` and `dovetail.max_roi_pool`.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "SampleSupport.h"
#include "dovetail/Dialect/Dovetail/Ops/SamplingOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;

static RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The loops of both operations: the result's, then those of the image but the channels.
namespace {
enum RoiLoop : unsigned { Roi, Channel, BinY, BinX, Batch, Row, Column };
} // namespace

template <typename AdaptorT>
static FailureOr<RankedTensorType> inferRoiType(std::optional<Location> location, StringRef name, AdaptorT adaptor) {
  RankedTensorType image = tensorType(adaptor.getImage()), rois = tensorType(adaptor.getRois()),
                   batches = tensorType(adaptor.getBatchIndices());
  if (image.getRank() != 4)
    return emitOptionalError(location, "'", name, "' op has an image of type ", image, ", which is not [N, C, H, W]");
  if (rois.getRank() != 2 || rois.getDimSize(1) != 4 || batches.getRank() != 1 ||
      batches.getDimSize(0) != rois.getDimSize(0))
    return emitOptionalError(location, "'", name, "' op has regions of type ", rois, " and batch indices of type ",
                             batches, "; these are [R, 4] and [R]");
  if (batches.getElementType().isInteger(1))
    return emitOptionalError(location, "'", name, "' op has batch indices of type ", batches,
                             "; they must be integers");
  ArrayRef<int64_t> pooled = adaptor.getPooled();
  if (pooled.size() != 2 ||
      llvm::any_of(pooled, [](int64_t extent) { return extent < 1 || extent > std::numeric_limits<int32_t>::max(); }))
    return emitOptionalError(location, "'", name, "' op needs two positive extents of its result");
  SmallVector<int64_t> shape{rois.getDimSize(0), image.getDimSize(1), pooled[0], pooled[1]};
  if (failed(sample::verifyImage(location, name, image, shape)))
    return failure();
  return RankedTensorType::get(shape, image.getElementType());
}

/// What each rank has combines by `kind`.
static Definition defineRois(RankedTensorType type, RankedTensorType image, ReduceKind kind) {
  Definition definition = Definition::over(type);
  sample::addSampled(definition, image.getDimSize(0), /*index=*/2, kind);
  sample::addSampled(definition, image.getDimSize(2), /*index=*/1, kind);
  sample::addSampled(definition, image.getDimSize(3), /*index=*/1, kind);
  definition.addRead(0) = {Definition::at(Batch), Definition::at(Channel), Definition::at(Row), Definition::at(Column)};
  definition.addRead(1) = {Definition::at(Roi), layout::IndexExpr::unknown(0)};
  definition.addRead(2) = {Definition::at(Roi)};
  return definition;
}

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> RoiAlignOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto ratio = static_cast<int64_t>(adaptor.getSamplingRatio());
  if (ratio < 0 || ratio > std::numeric_limits<int32_t>::max())
    return emitOptionalError(location, "'", getOperationName(), "' op has sampling ratio ", ratio,
                             ", which must be a number of samples, or 0");
  return inferRoiType(location, getOperationName(), adaptor);
}

Definition RoiAlignOp::getDefinition() {
  return defineRois(getType(), tensorType(getImage()), getMax() ? ReduceKind::Max : ReduceKind::Sum);
}

bool RoiAlignOp::isCheapElement() { return false; }

FormatPreference RoiAlignOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

namespace {
/// The samples of a bin along one dimension.
struct Bin {
  Value start, size;
  Value count;         ///< Of samples, of type index.
  Value countAsNumber; ///< As a float.
};
} // namespace

/// The bin of the result's element along dimension `dim` of the image.
static Bin getBin(BodyBuilder &body, RoiAlignOp op, unsigned dim, Type type) {
  ElementBuilder &builder = body.elements;
  auto number = [&](double value) { return builder.constant(type, value); };
  auto corner = [&](unsigned index) {
    Value given = builder.convertFloat(body.read(1, {builder.index(index)}), cast<FloatType>(type));
    Value scaled = builder.mul(given, number(op.getSpatialScale().convertToFloat()));
    return op.getHalfPixel() ? builder.sub(scaled, number(0.5)) : scaled;
  };
  // Corners are x, then y.
  Value start = corner(1 - dim), size = builder.sub(corner(3 - dim), start);
  if (!op.getHalfPixel())
    size = builder.select(builder.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, size, number(1)), size, number(1));
  size = builder.div(size, number(static_cast<double>(op.getPooled()[dim])));
  Bin bin;
  bin.start = builder.add(start, builder.mul(sample::toFloat(builder, body.getLoop(BinY + dim), type), size));
  bin.size = size;
  if (int64_t ratio = op.getSamplingRatio()) {
    bin.count = builder.index(ratio);
    bin.countAsNumber = number(static_cast<double>(ratio));
  } else {
    constexpr int64_t most = 1 << 30;
    bin.countAsNumber = sample::limit(builder, builder.create<math::CeilOp>(size), 0, most);
    bin.count = sample::toIndex(builder, bin.countAsNumber, most);
  }
  return bin;
}

/// Sample number `index` of a bin: its neighbours, and whether (i1) it is near enough to the image.
static std::pair<sample::Taps, Value> getSample(BodyBuilder &body, const Bin &bin, unsigned loop, Value index) {
  ElementBuilder &builder = body.elements;
  Type type = bin.size.getType();
  int64_t extent = body.getDefinition().loops[loop].extent;
  auto last = static_cast<double>(extent - 1);
  auto number = [&](double value) { return builder.constant(type, value); };
  Value middle = builder.add(sample::toFloat(builder, index, type), number(0.5));
  Value x = builder.add(bin.start, builder.div(builder.mul(middle, bin.size), bin.countAsNumber));
  Value isNear = builder.andB(builder.create<arith::CmpFOp>(arith::CmpFPredicate::OGE, x, number(-1)),
                              builder.create<arith::CmpFOp>(arith::CmpFPredicate::OLE, x, number(last + 1)));
  x = sample::limit(builder, x, 0, last);
  Value low = builder.create<math::FloorOp>(x), high = sample::limit(builder, builder.add(low, number(1)), 0, last);
  Value t = builder.sub(x, low);
  sample::Taps taps{loop, {}};
  taps.taps.push_back({sample::toIndex(builder, low, extent), {}, builder.sub(number(1), t)});
  taps.taps.push_back({sample::toIndex(builder, high, extent), {}, t});
  return {taps, isNear};
}

SmallVector<Value> RoiAlignOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  RankedTensorType image = tensorType(getImage());
  Type elementType = image.getElementType(), type = getAccumulatorType(elementType);
  FloatType position = sample::getPositionType(image, tensorType(getRois()).getElementType());
  auto accumulated = [&](Value weight) { return builder.convertFloat(weight, cast<FloatType>(type)); };
  Value hasBatch = body.lookUp(Batch), zero = builder.zero(type), lowest = builder.lowest(type);
  Bin rows = getBin(body, *this, 0, position), columns = getBin(body, *this, 1, position);

  // A term of a maximum that this rank does not have is the least, one of a sum is nothing; a sample that is not near
  // the image is zero in both.
  auto combine = [&](Value a, Value b) {
    return getMax() ? emitReductionCombine(builder, ReduceKind::Max, /*isUnsigned=*/false, a, b) : builder.add(a, b);
  };
  auto sampleAt = [&](Value row, Value column, Value carried) {
    auto [ys, isNearY] = getSample(body, rows, Row, row);
    auto [xs, isNearX] = getSample(body, columns, Column, column);
    Value isNear = builder.andB(isNearY, isNearX);
    for (const sample::Tap &y : ys.taps)
      for (const sample::Tap &x : xs.taps) {
        body.setLoop(Row, y.coordinate);
        body.setLoop(Column, x.coordinate);
        Value weight = accumulated(builder.mul(y.weight, x.weight));
        bool isWhole = sample::hasAll(body, Batch) && sample::hasAll(body, Row) && sample::hasAll(body, Column);
        auto term = [&] { return builder.mul(weight, widen(builder, body.read(0), type)); };
        Value isOwn =
            builder.andB(builder.andB(hasBatch, sample::hasCurrent(body, Row)), sample::hasCurrent(body, Column));
        Value own = isWhole ? term() : builder.guarded(isOwn, type, term, getMax() ? lowest : zero);
        carried = combine(carried, builder.select(isNear, own, zero));
      }
    return carried;
  };
  Value sum = builder
                  .forLoop(builder.index(0), rows.count, {getMax() ? lowest : zero},
                           [&](Value row, ValueRange carried) {
                             return builder.forLoop(builder.index(0), columns.count, carried,
                                                    [&](Value column, ValueRange inner) -> SmallVector<Value> {
                                                      return {sampleAt(row, column, inner.front())};
                                                    });
                           })
                  .front();
  Value count = accumulated(builder.mul(rows.countAsNumber, columns.countAsNumber));
  Value isEmpty = builder.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, count, zero);
  Value result = getMax() ? sum : builder.div(sum, count);
  return {narrow(builder, builder.select(isEmpty, zero, result), elementType)};
}

//===----------------------------------------------------------------------===//
// MaxRoiPool
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> MaxRoiPoolOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  return inferRoiType(location, getOperationName(), adaptor);
}

Definition MaxRoiPoolOp::getDefinition() { return defineRois(getType(), tensorType(getImage()), ReduceKind::Max); }

bool MaxRoiPoolOp::isCheapElement() { return false; }

FormatPreference MaxRoiPoolOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

/// The elements of a bin along one dimension, [lo, hi).
static std::pair<Value, Value> getElements(BodyBuilder &body, MaxRoiPoolOp op, unsigned dim, Type type) {
  ElementBuilder &builder = body.elements;
  int64_t extent = tensorType(op.getImage()).getDimSize(dim + 2);
  auto number = [&](double value) { return builder.constant(type, value); };
  auto corner = [&](unsigned index) {
    Value given = builder.convertFloat(body.read(1, {builder.index(index)}), cast<FloatType>(type));
    return builder.create<math::RoundOp>(builder.mul(given, number(op.getSpatialScale().convertToFloat())));
  };
  Value start = corner(1 - dim), size = builder.add(builder.sub(corner(3 - dim), start), number(1));
  size = builder.select(builder.create<arith::CmpFOp>(arith::CmpFPredicate::OGT, size, number(1)), size, number(1));
  size = builder.div(size, number(static_cast<double>(op.getPooled()[dim])));
  Value bin = sample::toFloat(builder, body.getLoop(BinY + dim), type);
  auto bound = [&](Value x) {
    return sample::toIndex(builder, sample::limit(builder, builder.add(x, start), 0, static_cast<double>(extent)),
                           extent);
  };
  Value lo = bound(builder.create<math::FloorOp>(builder.mul(bin, size)));
  Value hi = bound(builder.create<math::CeilOp>(builder.mul(builder.add(bin, number(1)), size)));
  return {lo, hi};
}

SmallVector<Value> MaxRoiPoolOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  RankedTensorType image = tensorType(getImage());
  Type elementType = image.getElementType(), type = getAccumulatorType(elementType);
  FloatType position = sample::getPositionType(image, tensorType(getRois()).getElementType());
  Value hasBatch = body.lookUp(Batch);
  auto rows = getElements(body, *this, 0, position), columns = getElements(body, *this, 1, position);
  auto isLess = [&](Value a, Value b) { return builder.compareI(arith::CmpIPredicate::slt, a, b); };
  Value isFilled = builder.andB(isLess(rows.first, rows.second), isLess(columns.first, columns.second));

  auto getOwn = [&](unsigned loop, std::pair<Value, Value> bounds) -> std::pair<Value, Value> {
    if (sample::hasAll(body, loop))
      return bounds;
    auto [lo, hi] = body.getRange(loop);
    return {builder.maxI(bounds.first, lo), builder.minI(bounds.second, hi)};
  };
  auto [firstRow, rowEnd] = getOwn(Row, rows);
  auto [firstColumn, columnEnd] = getOwn(Column, columns);
  // Ranks that do not have the batch go through nothing.
  rowEnd = builder.select(hasBatch, rowEnd, firstRow);
  Value largest = builder
                      .forLoop(firstRow, rowEnd, {builder.lowest(type)},
                               [&](Value row, ValueRange carried) {
                                 return builder.forLoop(firstColumn, columnEnd, carried,
                                                        [&](Value column, ValueRange inner) -> SmallVector<Value> {
                                                          body.setLoop(Row, row);
                                                          body.setLoop(Column, column);
                                                          Value element = widen(builder, body.read(0), type);
                                                          Value isLarger = builder.create<arith::CmpFOp>(
                                                              arith::CmpFPredicate::OGT, element, inner.front());
                                                          return {builder.select(isLarger, element, inner.front())};
                                                        });
                               })
                      .front();
  return {narrow(builder, builder.select(isFilled, largest, builder.zero(type)), elementType)};
}
