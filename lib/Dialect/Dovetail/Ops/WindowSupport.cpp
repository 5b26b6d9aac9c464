//===- WindowSupport.cpp - Sliding windows over spatial dimensions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what convolutions and pooling share: checked window attributes and the fold over a window.
//
//===----------------------------------------------------------------------===//

#include "WindowSupport.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace dovetail;
using layout::DimMap;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

Windows dovetail::getWindows(ArrayRef<int64_t> extents, ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                             ArrayRef<int64_t> padsLow, ArrayRef<int64_t> padsHigh) {
  Windows windows;
  for (auto [extent, stride, dilation, low, high] : llvm::zip_equal(extents, strides, dilations, padsLow, padsHigh))
    windows.push_back({extent, stride, dilation, low, high});
  return windows;
}

FailureOr<Windows> dovetail::inferWindows(std::optional<Location> location, StringRef opName, int64_t spatialRank,
                                          ArrayRef<int64_t> extents, ArrayRef<int64_t> strides,
                                          ArrayRef<int64_t> dilations, ArrayRef<int64_t> padsLow,
                                          ArrayRef<int64_t> padsHigh) {
  // Products of two such numbers stay far from the end of 64 bits.
  constexpr int64_t limit = int64_t(1) << 30;
  auto check = [&](StringRef name, ArrayRef<int64_t> values, int64_t least) -> LogicalResult {
    if (static_cast<int64_t>(values.size()) != spatialRank)
      return emitOptionalError(location, "'", opName, "' op has ", values.size(), " ", name, " for ", spatialRank,
                               " spatial dimensions");
    for (int64_t value : values)
      if (value < least || value > limit)
        return emitOptionalError(location, "'", opName, "' op has ", value, " among its ", name, ", not in ", least,
                                 " .. ", limit);
    return success();
  };
  if (failed(check("window extents", extents, 1)) || failed(check("strides", strides, 1)) ||
      failed(check("dilations", dilations, 1)) || failed(check("pads_low", padsLow, -limit)) ||
      failed(check("pads_high", padsHigh, -limit)))
    return failure();
  return getWindows(extents, strides, dilations, padsLow, padsHigh);
}

LogicalResult dovetail::verifySpatial(std::optional<Location> location, StringRef opName, StringRef name,
                                      RankedTensorType tensor) {
  if (tensor.getRank() >= 3)
    return success();
  return emitOptionalError(location, "'", opName, "' op has ", name, " of rank ", tensor.getRank(),
                           ", but needs [N, C, spatial...] with a spatial dimension at least");
}

LogicalResult dovetail::verifyGroups(std::optional<Location> location, StringRef opName, int64_t groups,
                                     int64_t channels, StringRef name) {
  // No channels are no reason for a group without any.
  if (groups == 1 || (groups > 1 && channels > 0 && channels % groups == 0))
    return success();
  return emitOptionalError(location, "'", opName, "' op cannot divide ", channels, " ", name, " into ", groups,
                           " groups");
}

//===----------------------------------------------------------------------===//
// Relation
//===----------------------------------------------------------------------===//

DimRelation dovetail::relateGroups(int64_t operandChannels, int64_t resultChannels, int64_t groups) {
  int64_t perGroup = operandChannels / groups;
  int64_t resultPerGroup = resultChannels / groups;
  if (perGroup == 1)
    return {1, resultPerGroup == 1 ? DimMap::identity() : DimMap::merge(resultPerGroup)};
  if (resultPerGroup == 1)
    return {1, DimMap::split(perGroup)};
  std::vector<int64_t> lo, last;
  for (int64_t channel = 0; channel < resultChannels; ++channel) {
    int64_t first = channel / resultPerGroup * perGroup;
    lo.push_back(first);
    last.push_back(first + perGroup - 1);
  }
  return {1, DimMap::table(std::move(lo), std::move(last))};
}

//===----------------------------------------------------------------------===//
// Fold
//===----------------------------------------------------------------------===//

Value dovetail::getChannelOfGroup(ElementBuilder &builder, Value resultChannel, int64_t resultChannels, Value channel,
                                  int64_t operandChannels, int64_t groups) {
  if (groups == 1)
    return channel;
  Value group = builder.floorDivI(resultChannel, resultChannels / groups);
  return builder.addI(builder.mulI(group, operandChannels / groups), channel);
}

int64_t dovetail::countSharing(RankedTensorType result, int64_t groups, unsigned operand, unsigned loop) {
  int64_t extent = result.getDimSize(loop);
  if (operand == 0)
    return loop == 1 ? extent / groups : 1;
  return loop == 1 ? 1 : extent;
}

Value dovetail::getPosition(ElementBuilder &builder, const WindowDim &window, Value index, Value tap) {
  Value start = builder.addI(builder.mulI(index, window.stride), -window.padLow);
  return builder.addI(start, builder.mulI(tap, window.dilation));
}

Value dovetail::isInsideOperand(ElementBuilder &builder, const WindowDim &window, int64_t operandExtent,
                                int64_t resultExtent, Value tap, Value position) {
  std::optional<int64_t> known = ElementBuilder::getConstantIndex(tap);
  int64_t least = known.value_or(0) * window.dilation - window.padLow;
  int64_t most =
      known.value_or(window.extent - 1) * window.dilation - window.padLow + (resultExtent - 1) * window.stride;
  Value inside = builder.boolean(true);
  if (least < 0)
    inside = builder.compareI(arith::CmpIPredicate::sge, position, builder.index(0));
  if (most >= operandExtent)
    inside = builder.andB(inside, builder.compareI(arith::CmpIPredicate::slt, position, builder.index(operandExtent)));
  return inside;
}

namespace {
/// Emits the loops over a window, outermost dimension first.
struct WindowFold {
  ElementBuilder &builder;
  ArrayRef<WindowDim> windows;
  ArrayRef<int64_t> operandShape;
  ArrayRef<int64_t> resultShape;
  ArrayRef<Value> index;
  function_ref<Value(ArrayRef<Value>, ArrayRef<Value>, Value)> body;
  SmallVector<Value> position;
  SmallVector<Value> taps;

  Value emit(Value init) {
    size_t dim = position.size();
    if (dim == windows.size())
      return body(position, taps, init);
    const WindowDim &window = windows[dim];
    return builder
        .forLoop(
            builder.index(0), builder.index(window.extent), init,
            [&](Value tap, ValueRange carried) -> SmallVector<Value> {
              Value accumulator = carried.front();
              position.push_back(getPosition(builder, window, index[dim], tap));
              taps.push_back(tap);
              Value isInside =
                  isInsideOperand(builder, window, operandShape[dim], resultShape[dim], tap, position.back());
              Value next =
                  builder.guarded(isInside, accumulator.getType(), [&] { return emit(accumulator); }, accumulator);
              position.pop_back();
              taps.pop_back();
              return {next};
            },
            maxUnrolledWindow)
        .front();
  }
};
} // namespace

Value dovetail::foldWindow(ElementBuilder &builder, ArrayRef<WindowDim> windows, ArrayRef<int64_t> operandShape,
                           ArrayRef<int64_t> resultShape, ArrayRef<Value> index, Value init,
                           function_ref<Value(ArrayRef<Value>, ArrayRef<Value>, Value)> body) {
  return WindowFold{builder, windows, operandShape, resultShape, index, body, {}, {}}.emit(init);
}
