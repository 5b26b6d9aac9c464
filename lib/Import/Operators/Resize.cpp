//===- Resize.cpp - Import of Resize and Upsample -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Resize in its forms since opset 10, and Upsample before it.
//
//===----------------------------------------------------------------------===//

#include "Resize.h"
#include "dovetail/Dialect/Dovetail/Ops/IndexingOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/ResampleWindows.h"

using namespace dovetail;
using namespace dovetail::importer;

mlir::Value Resize::build(OnnxNode &node, mlir::Value input) const {
  if (OnnxNode::getShape(input) == llvm::ArrayRef<int64_t>(sizes) && coordinates != CoordinateMode::TfCropAndResize &&
      llvm::all_of(scales, [](double scale) { return scale == 1; }))
    return input;
  return node.create<ResizeOp>(input, sizes, scales, mode, coordinates, nearest, roi, llvm::APFloat(cubicCoeffA),
                               excludeOutside, llvm::APFloat(extrapolationValue));
}

int64_t Resize::scaleExtent(int64_t extent, double scale) {
  return static_cast<int64_t>(std::floor(static_cast<float>(extent) * static_cast<float>(scale)));
}

llvm::LogicalResult Resize::setScales(OnnxNode &node, llvm::ArrayRef<double> values) {
  llvm::ArrayRef<int64_t> shape = OnnxNode::getShape(node.getInput(0));
  if (values.size() != shape.size())
    return node.invalid("'scales' must have one entry for each resized dimension");
  scales.assign(values.begin(), values.end());
  sizes.clear();
  for (auto [extent, scale] : llvm::zip(shape, scales)) {
    // Also false for NaN.
    if (!(scale > 0 && static_cast<double>(extent) * scale <= std::numeric_limits<int32_t>::max()))
      return node.invalid("'scales' has an entry that is out of range");
    sizes.push_back(scaleExtent(extent, scale));
  }
  return llvm::success();
}

static llvm::FailureOr<ResizeMode> readMode(OnnxNode &node) {
  llvm::StringRef mode = node.getString("mode", "nearest");
  if (mode == "nearest")
    return ResizeMode::Nearest;
  if (mode == "linear" || mode == "bilinear")
    return ResizeMode::Linear;
  if (mode == "cubic")
    return ResizeMode::Cubic;
  return node.invalid("'mode' is '" + mode + "'; expected nearest, linear or cubic");
}

/// Upsample, and Resize in opset 10: coordinates are asymmetric; nearest rounds down, or up where the tensor shrinks.
static llvm::LogicalResult importSimple(OnnxNode &node, llvm::ArrayRef<double> scales) {
  Resize resize;
  auto mode = readMode(node);
  if (failed(mode) || failed(resize.setScales(node, scales)))
    return llvm::failure();
  resize.mode = *mode;
  mlir::Value input = node.getInput(0);
  if (!node.getCounts(input).empty()) {
    // One dimension may need other places than the next.
    if (*mode == ResizeMode::Nearest && llvm::any_of(scales, [](double scale) { return scale < 1; }))
      return node.unsupported(
          node.describeBounded("operand 0", input, "scales below 1 need extents that are constant").reason,
          "export the model for opset 11 or a newer one");
    return importBoundedResize(node, resize);
  }
  if (*mode != ResizeMode::Nearest)
    return node.setResult(resize.build(node, input));
  // Dimensions that grow, then those that shrink.
  Resize grow = resize, shrink = resize;
  shrink.nearest = NearestMode::Ceil;
  for (size_t i = 0; i < scales.size(); ++i) {
    bool shrinks = scales[i] < 1;
    if (shrinks)
      grow.sizes[i] = OnnxNode::getShape(input)[i];
    (shrinks ? grow : shrink).scales[i] = 1;
  }
  mlir::Value grown = grow.build(node, input);
  return node.setResult(grown ? shrink.build(node, grown) : grown);
}

static llvm::LogicalResult importUpsample(OnnxNode &node) {
  if (const onnx::AttributeProto *attribute = node.getOpset() < 9 ? node.getAttr("scales") : nullptr)
    return importSimple(node, llvm::SmallVector<double>(attribute->floats().begin(), attribute->floats().end()));
  auto scales = node.getConstantFloats(1, "scales");
  if (failed(scales))
    return llvm::failure();
  return importSimple(node, *scales);
}
static OperatorImport upsample("Upsample", importUpsample);

static llvm::FailureOr<CoordinateMode> readCoordinates(OnnxNode &node) {
  llvm::StringRef name = node.getString("coordinate_transformation_mode", "half_pixel");
  if (auto mode = symbolizeCoordinateMode(name))
    return *mode;
  return node.invalid("'coordinate_transformation_mode' is '" + name + "', which is not a mode of Resize");
}

/// Fills in what the numbers for `axes` leave out.
template <typename T>
static llvm::SmallVector<T> spread(llvm::ArrayRef<T> values, llvm::ArrayRef<int64_t> axes,
                                   llvm::SmallVector<T> defaults) {
  for (auto [axis, value] : llvm::zip(axes, values))
    defaults[axis] = value;
  return defaults;
}

/// Extents asked for, of `axes` alone, which are changed to keep the aspect ratio if `policy` asks for that.
static llvm::LogicalResult setSizes(OnnxNode &node, Resize &resize, llvm::ArrayRef<int64_t> axes,
                                    llvm::ArrayRef<Extent> extents, llvm::StringRef policy) {
  auto sizes = llvm::map_to_vector(extents, [](const Extent &extent) { return extent.number; });
  llvm::ArrayRef<int64_t> shape = OnnxNode::getShape(node.getInput(0));
  if (sizes.size() != axes.size())
    return node.invalid("'sizes' must have one entry for each resized dimension");
  llvm::SmallVector<double> scales;
  for (auto [axis, size] : llvm::zip(axes, sizes)) {
    if (size < 0 || size > std::numeric_limits<int32_t>::max())
      return node.invalid("'sizes' has the entry " + llvm::Twine(size) + ", which is out of range");
    if (shape[axis] == 0)
      return node.invalid("an empty dimension cannot be resized");
    scales.push_back(static_cast<double>(size) / shape[axis]);
  }
  if (policy == "not_larger" || policy == "not_smaller") {
    if (!scales.empty()) {
      double scale = policy == "not_larger" ? *llvm::min_element(scales) : *llvm::max_element(scales);
      scales.assign(scales.size(), scale);
      for (auto [axis, size] : llvm::zip(axes, sizes)) {
        double scaled = std::floor(scale * shape[axis] + 0.5);
        if (scaled > std::numeric_limits<int32_t>::max())
          return node.invalid("'sizes' and the aspect ratio give an extent that is out of range");
        size = static_cast<int64_t>(scaled);
      }
    }
  } else if (policy != "stretch") {
    return node.invalid("'keep_aspect_ratio_policy' is '" + policy + "'; expected stretch, not_larger or not_smaller");
  }
  resize.sizes = spread<int64_t>(sizes, axes, llvm::SmallVector<int64_t>(shape));
  resize.scales = spread<double>(scales, axes, llvm::SmallVector<double>(shape.size(), 1));
  return llvm::success();
}

/// Dimension number `dim` of `value` resized with antialias; sets `isOutside`, which broadcasts to the result, to where
/// elements have another value.
static mlir::Value resample(OnnxNode &node, const Resize &resize, mlir::Value value, unsigned dim,
                            mlir::Value &isOutside) {
  int64_t rank = OnnxNode::getRank(value);
  ResampledDim description{OnnxNode::getShape(value)[dim],
                           resize.sizes[dim],
                           static_cast<float>(resize.scales[dim]),
                           resize.mode,
                           resize.coordinates,
                           resize.cubicCoeffA,
                           resize.excludeOutside};
  if (!resize.roi.empty()) {
    description.roiStart = static_cast<float>(resize.roi[dim]);
    description.roiEnd = static_cast<float>(resize.roi[rank + dim]);
  }
  ResampleWindows windows = computeResampleWindows(description);
  if (llvm::is_contained(windows.isOutside, true)) {
    llvm::SmallVector<int64_t> shape(rank, 1);
    shape[dim] = resize.sizes[dim];
    auto type = mlir::RankedTensorType::get(shape, node.getBuilder().getI1Type());
    mlir::Value own = node.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(windows.isOutside)));
    isOutside = isOutside ? node.create<OrOp>(isOutside, own) : own;
  }
  auto type =
      mlir::RankedTensorType::get({resize.sizes[dim], windows.width}, OnnxNode::getType(value).getElementType());
  return node.create<ResampleOp>(value, node.constantFloats(type, windows.weights), node.constantInts(windows.starts),
                                 dim);
}

/// One dimension after the other, of floats: only the end is rounded to the element type. Integers are rounded to
/// nearest, and saturate.
static mlir::Value buildAntialiased(OnnxNode &node, const Resize &resize, mlir::Value input) {
  llvm::ArrayRef<int64_t> shape = OnnxNode::getShape(input);
  mlir::Type elementType = OnnxNode::getType(input).getElementType();
  if (elementType.isInteger(1))
    return (void)node.invalid("booleans cannot be interpolated"), mlir::Value();
  constexpr int64_t maxExtent = int64_t(1) << 24;
  for (auto [extent, size] : llvm::zip_equal(shape, resize.sizes))
    if (extent != size && std::max(extent, size) > maxExtent)
      return (void)node.unsupported("antialias is supported up to " + llvm::Twine(maxExtent) +
                                    " elements of a dimension"),
             mlir::Value();
  bool isFloat = llvm::isa<mlir::FloatType>(elementType);
  mlir::Value value = isFloat ? node.widen(input) : node.cast(input, node.getBuilder().getF64Type()), isOutside;
  // Those that shrink most come first, as the others then have less to do.
  auto dims = llvm::to_vector(llvm::seq<unsigned>(0, shape.size()));
  llvm::sort(dims,
             [&](unsigned a, unsigned b) { return std::pair(resize.scales[a], a) < std::pair(resize.scales[b], b); });
  for (unsigned dim : dims)
    if (value && shape[dim] > 0 && resize.sizes[dim] > 0 &&
        (resize.scales[dim] != 1 || resize.sizes[dim] != shape[dim]))
      value = resample(node, resize, value, dim, isOutside);
  if (value && !isFloat) {
    unsigned width = elementType.getIntOrFloatBitWidth();
    bool isUnsigned = elementType.isUnsignedInteger();
    auto bound = [&](llvm::APInt number) {
      llvm::APFloat real(llvm::APFloat::IEEEdouble());
      // Below what does not fit: the largest numbers of 64 bits are not doubles.
      real.convertFromAPInt(number, !isUnsigned, llvm::APFloat::rmTowardZero);
      return node.scalarLike(value, real.convertToDouble());
    };
    llvm::APInt least = isUnsigned ? llvm::APInt::getMinValue(width) : llvm::APInt::getSignedMinValue(width);
    llvm::APInt most = isUnsigned ? llvm::APInt::getMaxValue(width) : llvm::APInt::getSignedMaxValue(width);
    value = node.create<MinOp>(node.create<MaxOp>(node.create<RoundOp>(value), bound(least)), bound(most));
  }
  value = node.cast(value, elementType);
  // Empty results have no elements to replace.
  if (value && isOutside && OnnxNode::getType(value).getNumElements() > 0)
    value = node.create<SelectOp>(isOutside, node.scalarLike(value, resize.extrapolationValue), value);
  return value;
}

static OperatorImport resizeImport("Resize", [](OnnxNode &node) -> llvm::LogicalResult {
  if (node.getOpset() < 11)
    return importUpsample(node);
  mlir::Value input = node.getInput(0);
  int64_t rank = node.getRank(input);
  Resize resize;
  auto mode = readMode(node);
  auto coordinates = readCoordinates(node);
  if (failed(mode) || failed(coordinates))
    return llvm::failure();
  resize.mode = *mode;
  resize.coordinates = *coordinates;
  llvm::StringRef nearest = node.getString("nearest_mode", "round_prefer_floor");
  if (auto nearestMode = symbolizeNearestMode(nearest))
    resize.nearest = *nearestMode;
  else
    return node.invalid("'nearest_mode' is '" + nearest + "', which is not a mode of Resize");
  resize.cubicCoeffA = node.getFloat("cubic_coeff_a", -0.75f);
  resize.excludeOutside = node.getInt("exclude_outside", 0) != 0;
  resize.extrapolationValue = node.getFloat("extrapolation_value", 0);

  auto axes = node.normalizeAxes(
      node.hasAttr("axes") ? node.getInts("axes") : llvm::to_vector(llvm::seq<int64_t>(0, rank)), rank);
  if (failed(axes))
    return llvm::failure();
  // Operands that are absent may also be given as empty tensors.
  auto isGiven = [&](unsigned index) {
    return node.hasInput(index) && node.getType(node.getInput(index)).getNumElements() != 0;
  };
  if (isGiven(2) == isGiven(3))
    return node.invalid("exactly one of 'scales' and 'sizes' must be given");
  if (isGiven(2)) {
    auto scales = node.getConstantFloats(2, "scales");
    if (failed(scales))
      return llvm::failure();
    if (scales->size() != axes->size())
      return node.invalid("'scales' must have one entry for each resized dimension");
    if (failed(resize.setScales(node, spread<double>(*scales, *axes, llvm::SmallVector<double>(rank, 1)))))
      return llvm::failure();
  } else {
    auto sizes = node.getExtents(3, "sizes");
    if (failed(sizes) ||
        failed(setSizes(node, resize, *axes, *sizes, node.getString("keep_aspect_ratio_policy", "stretch"))))
      return llvm::failure();
    resize.extents = llvm::map_to_vector(resize.sizes, [](int64_t size) { return Extent{size, {}}; });
    for (auto [axis, extent] : llvm::zip(*axes, *sizes))
      resize.extents[axis].count = extent.count;
  }
  bool isBounded = !node.getCounts(input).empty() ||
                   llvm::any_of(resize.extents, [](const Extent &extent) { return extent.count != mlir::Value(); });
  if (isBounded)
    return importBoundedResize(node, resize);
  if (resize.coordinates == CoordinateMode::TfCropAndResize) {
    if (!isGiven(1))
      return node.invalid("'roi' is missing, which tf_crop_and_resize needs");
    auto roi = node.getConstantFloats(1, "roi");
    if (failed(roi))
      return llvm::failure();
    size_t count = axes->size();
    if (roi->size() != 2 * count)
      return node.invalid("'roi' must have two entries for each resized dimension");
    llvm::ArrayRef<double> values(*roi);
    resize.roi = spread<double>(values.take_front(count), *axes, llvm::SmallVector<double>(rank, 0));
    resize.roi.append(spread<double>(values.drop_front(count), *axes, llvm::SmallVector<double>(rank, 1)));
  }
  // Where nothing shrinks there is nothing to smooth.
  if (node.getInt("antialias", 0) != 0 && resize.mode != ResizeMode::Nearest &&
      llvm::any_of(resize.scales, [](double scale) { return scale < 1; }))
    return node.setResult(buildAntialiased(node, resize, input));
  return node.setResult(resize.build(node, input));
});
