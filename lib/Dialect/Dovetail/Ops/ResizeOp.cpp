//===- ResizeOp.cpp - Interpolation to other extents -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.resize`.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "../Definition/ScalarSupport.h"
#include "ResizeCoordinates.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::resize;
using layout::IndexExpr;

//===----------------------------------------------------------------------===//
// Type
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> ResizeOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  StringRef name = getOperationName();
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  int64_t rank = operand.getRank();
  ArrayRef<int64_t> sizes = adaptor.getSizes();
  ArrayRef<double> scales = adaptor.getScales();
  if (static_cast<int64_t>(sizes.size()) != rank || static_cast<int64_t>(scales.size()) != rank)
    return emitOptionalError(location, "'", name, "' op has ", sizes.size(), " sizes and ", scales.size(),
                             " scales for an operand of rank ", rank);
  if (adaptor.getCoordinates() == CoordinateMode::TfCropAndResize &&
      static_cast<int64_t>(adaptor.getRoi().size()) != 2 * rank)
    return emitOptionalError(location, "'", name, "' op has a roi of ", adaptor.getRoi().size(),
                             " numbers, but tf_crop_and_resize needs ", 2 * rank, " for rank ", rank);
  if (adaptor.getMode() != ResizeMode::Nearest && operand.getElementType().isInteger(1))
    return emitOptionalError(location, "'", name, "' op cannot interpolate elements of i1: use mode nearest");
  constexpr double maxScale = double(maxExtent);
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t extent = operand.getDimSize(dim);
    if (!(scales[dim] >= 1 / maxScale && scales[dim] <= maxScale))
      return emitOptionalError(location, "'", name, "' op has scale ", scales[dim], " in dimension ", dim,
                               ", not in 2^-24 .. 2^24");
    if (sizes[dim] < 0 || (extent == 0 && sizes[dim] > 0))
      return emitOptionalError(location, "'", name, "' op cannot resize dimension ", dim, " from ", extent, " to ",
                               sizes[dim]);
    if (sizes[dim] != extent && std::max(sizes[dim], extent) > maxExtent)
      return emitOptionalError(location, "'", name, "' op resizes dimension ", dim, " from ", extent, " to ",
                               sizes[dim], ", but positions beyond ", maxExtent, " are not exact in f32");
  }
  return RankedTensorType::get(sizes, operand.getElementType());
}

//===----------------------------------------------------------------------===//
// Definition
//===----------------------------------------------------------------------===//

/// Dimension number `dim` of a resize.
static Dim getDim(ResizeOp op, unsigned dim) {
  RankedTensorType operand = op.getOperand().getType(), result = op.getType();
  Dim description{operand.getDimSize(dim), result.getDimSize(dim), static_cast<float>(op.getScales()[dim]),
                  op.getCoordinates()};
  if (description.mode == CoordinateMode::TfCropAndResize) {
    description.roiStart = static_cast<float>(op.getRoi()[dim]);
    description.roiEnd = static_cast<float>(op.getRoi()[result.getRank() + dim]);
  }
  description.isCopied = operand.getShape() == result.getShape() ||
                         (description.scale == 1.0f && description.operandExtent == description.resultExtent);
  return description;
}

Table resize::computeTable(const Dim &dim, ResizeMode mode, NearestMode nearest) {
  HostArithmetic host;
  Table table;
  table.first.reserve(dim.resultExtent);
  table.last.reserve(dim.resultExtent);
  auto append = [&](int64_t first, int64_t last) {
    table.first.push_back(first);
    table.last.push_back(last);
  };
  for (int64_t i = 0; i < dim.resultExtent; ++i) {
    float x = getSource(host, dim, i);
    if (dim.mode == CoordinateMode::TfCropAndResize && isOutside(host, dim, x)) {
      table.extrapolates = true;
      append(0, -1);
      continue;
    }
    switch (mode) {
    case ResizeMode::Nearest: {
      int64_t pixel = getNearest(host, dim, nearest, x);
      append(pixel, pixel);
      break;
    }
    case ResizeMode::Linear: {
      LinearTaps<HostArithmetic> taps = getLinear(host, dim, x);
      append(taps.first, taps.second);
      break;
    }
    case ResizeMode::Cubic: {
      CubicTaps<HostArithmetic> taps = getCubic(host, x);
      append(host.clampIndex(taps.position(host, 0), 0, dim.operandExtent - 1),
             host.clampIndex(taps.position(host, 3), 0, dim.operandExtent - 1));
      break;
    }
    }
  }
  return table;
}

/// The pixel at loop `i` as `floor(i / n)` or `start + i*step` where that is what a table has: such indices keep cuts
/// aligned, and are found without floats.
static std::optional<IndexExpr> getExact(const Dim &dim, const Table &table, const IndexExpr &i) {
  const std::vector<int64_t> &pixels = table.first;
  if (table.first != table.last || pixels.empty())
    return std::nullopt;
  auto isEverywhere = [&](auto formula) {
    for (auto [i, pixel] : llvm::enumerate(pixels))
      if (pixel != formula(static_cast<int64_t>(i)))
        return false;
    return true;
  };
  int64_t factor = dim.resultExtent / dim.operandExtent;
  if (factor >= 1 && isEverywhere([&](int64_t i) { return i / factor; }))
    return i.floorDiv(factor);
  int64_t start = pixels.front(), step = pixels.size() > 1 ? pixels[1] - start : 1;
  if (step >= 1 && isEverywhere([&](int64_t i) { return start + i * step; }))
    return i * step + start;
  return std::nullopt;
}

Definition ResizeOp::getDefinition() {
  Definition definition = Definition::over(getType());
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned number = 0; number < getType().getRank(); ++number) {
    Dim dim = getDim(*this, number);
    IndexExpr i = Definition::at(number);
    if (dim.isCopied || dim.resultExtent == 0) {
      dims.push_back(i);
      continue;
    }
    Table table = computeTable(dim, getMode(), getNearest());
    std::optional<IndexExpr> exact = getExact(dim, table, i);
    dims.push_back(exact ? *exact : IndexExpr::unknown(number, i, std::move(table.first), std::move(table.last)));
  }
  return definition;
}

FormatPreference ResizeOp::getFormatPreference() { return FormatPreference::ChannelsLast; }

bool ResizeOp::isCheapElement() { return false; }

//===----------------------------------------------------------------------===//
// Element
//===----------------------------------------------------------------------===//

namespace {
/// The pixels of one dimension that an element reads (null where the definition says which one) and, unless there is
/// only one, their weights (f32).
struct Taps {
  SmallVector<Value, 4> pixels;
  SmallVector<Value, 4> weights;
};
} // namespace

static Taps emitLinear(EmittedArithmetic &a, const Dim &dim, Value x) {
  LinearTaps<EmittedArithmetic> taps = getLinear(a, dim, x);
  ElementBuilder &builder = a.builder;
  Value half = a.constant(0.5f);
  Value same = builder.compareI(arith::CmpIPredicate::eq, taps.first, taps.second);
  Value distance = builder.select(same, half, a.sub(taps.x, a.toReal(taps.first)));
  Value rest = builder.select(same, half, a.sub(a.toReal(taps.second), taps.x));
  return {{taps.first, taps.second}, {rest, distance}};
}

/// Keys' cubic kernel, evaluated in the order of ONNX Runtime.
static Taps emitCubic(EmittedArithmetic &a, const Dim &dim, Value x, float coefficient, bool excludeOutside) {
  CubicTaps<EmittedArithmetic> cubic = getCubic<EmittedArithmetic>(a, x);
  ElementBuilder &builder = a.builder;
  auto farWeight = [&](Value distance) {
    Value sum = a.sub(a.mul(distance, coefficient), 5 * coefficient);
    sum = a.add(a.mul(sum, distance), 8 * coefficient);
    return a.sub(a.mul(sum, distance), 4 * coefficient);
  };
  auto nearWeight = [&](Value distance) {
    Value sum = a.sub(a.mul(distance, coefficient + 2), coefficient + 3);
    return a.add(a.mul(a.mul(sum, distance), distance), 1.0);
  };
  Value fraction = cubic.fraction;
  Value behind = a.sub(a.constant(1.0f), fraction);
  Taps taps;
  taps.weights = {farWeight(a.add(fraction, 1.0)), nearWeight(fraction), nearWeight(behind),
                  farWeight(a.sub(a.constant(2.0f), fraction))};
  Value sum = a.constant(0.0f);
  for (int tap = 0; tap < 4; ++tap) {
    Value position = cubic.position(a, tap);
    if (excludeOutside) {
      Value inside = builder.inRange(position, 0, dim.operandExtent);
      taps.weights[tap] = builder.select(inside, taps.weights[tap], a.constant(0.0f));
      sum = a.add(sum, taps.weights[tap]);
    }
    taps.pixels.push_back(builder.clampI(position, 0, dim.operandExtent - 1));
  }
  if (excludeOutside)
    for (Value &weight : taps.weights)
      weight = a.div(weight, sum);
  return taps;
}

/// Calls `read` for each combination of taps, the last dimension's fastest, with the product of their weights (null if
/// there are none); the product of the last dimensions is formed first.
static void forEachCombination(ElementBuilder &builder, ArrayRef<Taps> taps,
                               function_ref<void(ArrayRef<Value> pixels, Value weight)> read) {
  int64_t count = 1;
  for (const Taps &dim : taps)
    count *= dim.pixels.size();
  SmallVector<Value> pixels(taps.size());
  for (int64_t number = 0; number < count; ++number) {
    int64_t rest = number;
    Value weight;
    for (size_t dim = taps.size(); dim-- > 0;) {
      int64_t tap = rest % taps[dim].pixels.size();
      rest /= taps[dim].pixels.size();
      pixels[dim] = taps[dim].pixels[tap];
      if (!taps[dim].weights.empty())
        weight = weight ? builder.mul(weight, taps[dim].weights[tap]) : taps[dim].weights[tap];
    }
    read(pixels, weight);
  }
}

/// The type in which elements are interpolated.
static Type getInterpolationType(Type elementType) {
  if (isa<FloatType>(elementType))
    return getAccumulatorType(elementType);
  return elementType.getIntOrFloatBitWidth() > 32 ? Type(Float64Type::get(elementType.getContext()))
                                                  : Type(Float32Type::get(elementType.getContext()));
}

SmallVector<Value> ResizeOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  EmittedArithmetic arithmetic{builder};
  Type elementType = getType().getElementType();
  SmallVector<Taps> taps;
  Value inside = builder.boolean(true);
  for (auto [number, access] : llvm::enumerate(body.getDefinition().reads.front().dims)) {
    if (!access.index.hasUnknown()) {
      taps.push_back({{Value()}, {}});
      continue;
    }
    Dim dim = getDim(*this, number);
    Value x = getSource(arithmetic, dim, body.getLoop(number));
    const IndexExpr::Term &pixels = access.index.getTerms().front();
    if (llvm::any_of(llvm::zip(pixels.getFirst(), pixels.getLast()),
                     [](auto range) { return std::get<0>(range) > std::get<1>(range); })) {
      Value outside = isOutside(arithmetic, dim, x);
      inside = builder.select(outside, builder.boolean(false), inside);
    }
    switch (getMode()) {
    case ResizeMode::Nearest:
      taps.push_back({{resize::getNearest(arithmetic, dim, getNearest(), x)}, {}});
      break;
    case ResizeMode::Linear:
      taps.push_back(emitLinear(arithmetic, dim, x));
      break;
    case ResizeMode::Cubic:
      taps.push_back(emitCubic(arithmetic, dim, x, getCubicCoeffA().convertToFloat(), getExcludeOutside()));
      break;
    }
  }

  auto interpolate = [&]() -> Value {
    Type type = getInterpolationType(elementType);
    Value sum, single;
    forEachCombination(builder, taps, [&](ArrayRef<Value> pixels, Value weight) {
      Value element = body.read(0, pixels);
      if (!weight) {
        single = element;
        return;
      }
      Value term = builder.mul(widen(builder, weight, type), scalar::cast(builder, element, elementType, type));
      sum = sum ? builder.add(sum, term) : term;
    });
    return single ? single : scalar::cast(builder, sum, type, elementType);
  };
  Type scalarType = ElementBuilder::scalarType(elementType);
  return {builder.guarded(inside, scalarType, interpolate,
                          builder.constant(scalarType, getExtrapolationValue().convertToFloat()))};
}
