//===- BoundedResize.cpp - Resize of extents that vary --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Imports Resize of dimensions whose extents vary from run to run. Where the ratio of the extents is constant,
// coordinates are those of the bound, and the last element is repeated in the tail. Otherwise, coordinates
// are computed when the program runs, and elements are looked up.
//
//===----------------------------------------------------------------------===//

#include "Resize.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

namespace {

class BoundedResize {
public:
  BoundedResize(GraphBuilder &builder, const Resize &resize, mlir::Value input)
      : builder(builder), resize(resize), fixed(resize), value(input), counts(builder.getCounts(value)) {
    counts.resize(GraphBuilder::getRank(value));
  }

  mlir::Value build();

private:
  /// One dimension, before and behind the resize.
  struct Dim {
    unsigned number;
    Extent from, to;
    /// The scale, where that is one in all runs.
    std::optional<double> scale;
  };

  Dim describe(unsigned number);
  /// Of the scale `scale`, which the model gives or which follows from extents.
  Extent scaleExtent(const Extent &extent, double scale);
  /// The number that `to` is of `from` in all runs, if there is one.
  std::optional<double> findRatio(const Extent &from, const Extent &to);
  /// Whether coordinates of the bound are those of all runs, for dimensions that are scaled by one number.
  bool isFixed(const Dim &dim) const;
  /// Whether nothing beyond the last element is read.
  bool staysInside(const Dim &dim) const;
  llvm::LogicalResult checkComputed(const Dim &dim);

  // Vectors of f32, an element for each of the result, and scalars.
  mlir::Value real(const Extent &extent) {
    return builder.cast(builder.toScalar(extent), builder.getBuilder().getF32Type());
  }
  mlir::Value plus(mlir::Value a, double number) { return builder.create<AddOp>(a, builder.scalarLike(a, number)); }
  mlir::Value limit(mlir::Value x, mlir::Value most) {
    return builder.create<MaxOp>(builder.create<MinOp>(x, most), builder.scalarLike(x, 0));
  }
  mlir::Value findSource(const Dim &dim);
  mlir::Value roundNearest(mlir::Value x);
  /// `value`, at these places along a dimension.
  mlir::Value lookUp(const Dim &dim, mlir::Value place);
  /// The sum of `value` at places, by weights.
  mlir::Value mix(const Dim &dim, llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> taps);
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> findTaps(const Dim &dim, mlir::Value x, mlir::Value last);
  void resample(const Dim &dim);

  GraphBuilder &builder;
  const Resize &resize;
  Resize fixed; ///< The dimensions that are not computed.
  mlir::Value value;
  Counts counts; ///< Of `value`.
};

} // namespace

Extent BoundedResize::scaleExtent(const Extent &extent, double scale) {
  int64_t number = Resize::scaleExtent(extent.number, scale);
  if (!extent.count)
    return {number, {}};
  // Products of few bits are exact in floats, too.
  constexpr int64_t denominator = int64_t(1) << 10;
  if (double scaled = scale * denominator; scaled == std::floor(scaled) && scaled <= denominator * 1024.0) {
    auto factor = static_cast<int64_t>(scaled);
    return {number, builder.computeCount(extent.count, [&](const CountForm &form) {
              std::optional<CountForm> product = form.times(factor);
              return product ? product->dividedBy(denominator) : product;
            })};
  }
  // Others are looked up.
  mlir::Value count = builder.shareCount(extent.count, {llvm::bit_cast<int64_t>(scale), extent.number, -1}, [&] {
    llvm::SmallVector<int64_t> table;
    for (int64_t i = 0; i <= extent.number; ++i)
      table.push_back(Resize::scaleExtent(i, scale));
    return builder.create<GatherOp>(builder.constantInts(table), extent.count, /*axis=*/int64_t(0));
  });
  return {number, count};
}

std::optional<double> BoundedResize::findRatio(const Extent &from, const Extent &to) {
  if (from == to)
    return 1;
  if (!from.count || !to.count)
    return std::nullopt;
  const Extent &less = from.number < to.number ? from : to, &more = from.number < to.number ? to : from;
  int64_t ratio = less.number == 0 ? 0 : more.number / less.number;
  if (ratio == 0 || ratio * less.number != more.number || builder.multiplyCount(less.count, ratio, 0) != more.count)
    return std::nullopt;
  return from.number < to.number ? static_cast<double>(ratio) : 1.0 / static_cast<double>(ratio);
}

BoundedResize::Dim BoundedResize::describe(unsigned number) {
  Extent from{GraphBuilder::getShape(value)[number], counts[number]};
  if (resize.extents.empty()) {
    double scale = resize.scales[number];
    return {number, from, scaleExtent(from, scale), scale};
  }
  Extent to = resize.extents[number];
  std::optional<double> ratio = from.count || to.count ? findRatio(from, to) : resize.scales[number];
  return {number, from, to, ratio};
}

bool BoundedResize::isFixed(const Dim &dim) const {
  if (!dim.from.count && !dim.to.count)
    return true;
  if (!dim.scale)
    return false;
  if (*dim.scale == 1)
    return true;
  bool isWhole = *dim.scale == std::floor(*dim.scale);
  if (resize.mode == ResizeMode::Cubic && resize.excludeOutside)
    return false;
  switch (resize.coordinates) {
  case CoordinateMode::HalfPixel:
  case CoordinateMode::Asymmetric:
  case CoordinateMode::TfHalfPixelForNN:
    return true;
  // A single element comes from the first one, which is that of the bound where the tensor grows.
  case CoordinateMode::PytorchHalfPixel:
  case CoordinateMode::HalfPixelSymmetric:
    return isWhole;
  case CoordinateMode::AlignCorners:
  case CoordinateMode::TfCropAndResize:
    return false;
  }
  llvm_unreachable("unknown coordinate mode");
}

bool BoundedResize::staysInside(const Dim &dim) const {
  if (*dim.scale == 1)
    return true;
  bool isWhole = *dim.scale == std::floor(*dim.scale);
  if (resize.mode != ResizeMode::Nearest || !isWhole)
    return false;
  return resize.coordinates == CoordinateMode::Asymmetric ? resize.nearest == NearestMode::Floor
                                                          : resize.nearest != NearestMode::Ceil;
}

llvm::LogicalResult BoundedResize::checkComputed(const Dim &dim) {
  auto refuse = [&](const llvm::Twine &what) {
    const Extent &varying = dim.from.count ? dim.from : dim.to;
    return builder.unsupported(importer::describeBounded(dim.from.count ? "operand 0" : "the result", dim.number,
                                                         varying.number, what + " needs a constant ratio of extents")
                                   .reason,
                               "export the model with constant scales, or with coordinates of mode half_pixel");
  };
  if (resize.coordinates == CoordinateMode::TfCropAndResize || resize.coordinates == CoordinateMode::HalfPixelSymmetric)
    return refuse("coordinate_transformation_mode '" + stringifyCoordinateMode(resize.coordinates) + "'");
  if (resize.mode == ResizeMode::Cubic && resize.excludeOutside)
    return refuse("'exclude_outside'");
  if (resize.mode != ResizeMode::Nearest && !llvm::isa<mlir::FloatType>(GraphBuilder::getType(value).getElementType()))
    return refuse("interpolation of integers");
  return llvm::success();
}

mlir::Value BoundedResize::findSource(const Dim &dim) {
  mlir::Value i = builder.cast(builder.count(0, dim.to.number), builder.getBuilder().getF32Type());
  mlir::Value from = real(dim.from), to = real(dim.to), zero = builder.scalarLike(i, 0), one = builder.scalarLike(i, 1);
  // Of an empty tensor nothing is asked.
  mlir::Value scale = dim.scale && resize.extents.empty()
                          ? builder.scalarLike(i, *dim.scale)
                          : builder.create<DivOp>(builder.create<MaxOp>(to, one), builder.create<MaxOp>(from, one));
  auto halfPixel = [&] { return plus(builder.create<DivOp>(plus(i, 0.5), scale), -0.5); };
  switch (resize.coordinates) {
  case CoordinateMode::HalfPixel:
    return halfPixel();
  case CoordinateMode::PytorchHalfPixel:
    return builder.create<SelectOp>(builder.create<GreaterOp>(to, one), halfPixel(), zero);
  case CoordinateMode::Asymmetric:
    return builder.create<DivOp>(i, scale);
  case CoordinateMode::TfHalfPixelForNN:
    return builder.create<DivOp>(plus(i, 0.5), scale);
  case CoordinateMode::AlignCorners:
    return builder.create<DivOp>(builder.create<MulOp>(i, plus(from, -1)), builder.create<MaxOp>(plus(to, -1), one));
  default:
    llvm_unreachable("refused before");
  }
}

mlir::Value BoundedResize::roundNearest(mlir::Value x) {
  mlir::Value below = builder.create<FloorOp>(x), fraction = builder.create<SubOp>(x, below), above = plus(below, 1);
  mlir::Value half = builder.scalarLike(x, 0.5);
  switch (resize.nearest) {
  case NearestMode::Floor:
    return below;
  case NearestMode::Ceil:
    return builder.create<CeilOp>(x);
  case NearestMode::RoundPreferFloor:
    return builder.create<SelectOp>(builder.create<LessOp>(half, fraction), above, below);
  case NearestMode::RoundPreferCeil:
    return builder.create<SelectOp>(builder.create<LessOp>(fraction, half), below, above);
  }
  llvm_unreachable("unknown nearest mode");
}

mlir::Value BoundedResize::lookUp(const Dim &dim, mlir::Value place) {
  mlir::Value index = builder.cast(place, builder.getBuilder().getI64Type());
  return builder.state(builder.create<GatherOp>(value, index, static_cast<int64_t>(dim.number)), counts);
}

llvm::SmallVector<std::pair<mlir::Value, mlir::Value>> BoundedResize::findTaps(const Dim &dim, mlir::Value x,
                                                                               mlir::Value last) {
  mlir::Value one = builder.scalarLike(x, 1);
  if (resize.mode == ResizeMode::Linear) {
    x = limit(x, last);
    mlir::Value below = builder.create<FloorOp>(x), distance = builder.create<SubOp>(x, below);
    return {{below, builder.create<SubOp>(one, distance)}, {limit(plus(below, 1), last), distance}};
  }
  // Keys' cubic kernel.
  double a = resize.cubicCoeffA;
  mlir::Value below = builder.create<FloorOp>(x), fraction = builder.create<SubOp>(x, below);
  auto times = [&](mlir::Value b, mlir::Value c) { return builder.create<MulOp>(b, c); };
  auto scaled = [&](mlir::Value b, double number) { return times(b, builder.scalarLike(b, number)); };
  auto near = [&](mlir::Value t) { return plus(times(times(plus(scaled(t, a + 2), -(a + 3)), t), t), 1); };
  auto far = [&](mlir::Value t) { return plus(times(plus(times(plus(scaled(t, a), -5 * a), t), 8 * a), t), -4 * a); };
  mlir::Value behind = builder.create<SubOp>(one, fraction);
  return {{limit(plus(below, -1), last), far(plus(fraction, 1))},
          {limit(below, last), near(fraction)},
          {limit(plus(below, 1), last), near(behind)},
          {limit(plus(below, 2), last), far(plus(behind, 1))}};
}

mlir::Value BoundedResize::mix(const Dim &dim, llvm::ArrayRef<std::pair<mlir::Value, mlir::Value>> taps) {
  llvm::SmallVector<int64_t> shape(GraphBuilder::getRank(value), 1);
  shape[dim.number] = dim.to.number;
  mlir::Value sum;
  for (auto [place, weight] : taps) {
    mlir::Value weights = builder.cast(builder.reshape(weight, shape), GraphBuilder::getType(value).getElementType());
    mlir::Value term = builder.state(builder.create<MulOp>(lookUp(dim, place), weights), counts);
    sum = sum ? builder.state(builder.create<AddOp>(sum, term), counts) : term;
  }
  return sum;
}

void BoundedResize::resample(const Dim &dim) {
  mlir::Value x = findSource(dim), last = plus(real(dim.from), -1);
  // A lookup has the extent of the result.
  counts[dim.number] = dim.to.count;
  value =
      resize.mode == ResizeMode::Nearest ? lookUp(dim, limit(roundNearest(x), last)) : mix(dim, findTaps(dim, x, last));
}

mlir::Value BoundedResize::build() {
  auto unsupported = [&](const llvm::Twine &why) {
    (void)builder.unsupported(builder.describeBounded("operand 0", value, why));
    return mlir::Value();
  };
  if (resize.isAntialiased && resize.mode != ResizeMode::Nearest)
    return unsupported("'antialias' needs extents that are constant");
  if (resize.keepsAspect)
    return unsupported("'keep_aspect_ratio_policy' needs extents that are constant");
  llvm::SmallVector<Dim> computed;
  mlir::Type elementType = GraphBuilder::getType(value).getElementType();
  for (unsigned number = 0; number < counts.size(); ++number) {
    Dim dim = describe(number);
    if (!isFixed(dim)) {
      if (failed(checkComputed(dim)))
        return {};
      // There is nothing to interpolate, where something is asked for.
      if (dim.from.count && !resize.extents.empty())
        builder.requireExtent(dim.from, 1);
      computed.push_back(dim);
      fixed.sizes[number] = GraphBuilder::getShape(value)[number];
      fixed.scales[number] = 1;
      continue;
    }
    fixed.scales[number] = *dim.scale;
    fixed.sizes[number] = dim.to.number;
    if (dim.from.count && !staysInside(dim))
      value = builder.repeatLast(value, number);
    counts[number] = dim.to.count;
  }
  value = builder.state(fixed.build(builder, value), counts);
  if (resize.mode != ResizeMode::Nearest && !computed.empty())
    value = builder.state(builder.widen(value), counts);
  for (const Dim &dim : computed)
    if (value)
      resample(dim);
  if (value && GraphBuilder::getType(value).getElementType() != elementType)
    value = builder.state(builder.cast(value, elementType), counts);
  return value;
}

mlir::Value dovetail::importer::buildBoundedResize(GraphBuilder &builder, const Resize &resize, mlir::Value input) {
  return BoundedResize(builder, resize, input).build();
}
