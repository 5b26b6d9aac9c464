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

#include "../../Build/Resize.h"

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

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
  if (failed(mode) || failed(resize.setScales(node, node.getInput(0), scales)))
    return llvm::failure();
  resize.mode = *mode;
  mlir::Value input = node.getInput(0);
  if (!node.getCounts(input).empty()) {
    // One dimension may need other places than the next.
    if (*mode == ResizeMode::Nearest && llvm::any_of(scales, [](double scale) { return scale < 1; }))
      return node.unsupported(
          node.describeBounded("operand 0", input, "scales below 1 need extents that are constant").reason,
          "export the model for opset 11 or a newer one");
    return node.setResult(buildBoundedResize(node, resize, input));
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
  resize.isAntialiased = node.getInt("antialias", 0) != 0;
  resize.keepsAspect = node.getString("keep_aspect_ratio_policy", "stretch") != "stretch";

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
    if (failed(resize.setScales(node, node.getInput(0),
                                spread<double>(*scales, *axes, llvm::SmallVector<double>(rank, 1)))))
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
    return node.setResult(buildBoundedResize(node, resize, input));
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
  if (resize.isAntialiased && resize.mode != ResizeMode::Nearest &&
      llvm::any_of(resize.scales, [](double scale) { return scale < 1; }))
    return node.setResult(buildAntialiased(node, resize, input));
  return node.setResult(resize.build(node, input));
});
