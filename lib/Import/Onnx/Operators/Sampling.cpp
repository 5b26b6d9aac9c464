//===- Sampling.cpp - Import of what samples images -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that sample images where data say. A deformable convolution is a matrix product of
// what its windows see.
//
//===----------------------------------------------------------------------===//

#include "WindowAttributes.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/SamplingOps.h"

#include "llvm/ADT/StringSwitch.h"

using namespace dovetail;
using namespace dovetail::importer;

//===----------------------------------------------------------------------===//
// GridSample
//===----------------------------------------------------------------------===//

/// The mode, by the names of its opset.
static llvm::FailureOr<ResizeMode> readMode(OnnxNode &node) {
  bool isFirst = node.getOpset() < 20;
  llvm::StringRef linear = isFirst ? "bilinear" : "linear", cubic = isFirst ? "bicubic" : "cubic";
  llvm::StringRef name = node.getString("mode", linear);
  if (name == "nearest")
    return ResizeMode::Nearest;
  if (name == linear)
    return ResizeMode::Linear;
  if (name == cubic)
    return ResizeMode::Cubic;
  return node.invalid("'mode' is '" + name + "'; expected nearest, " + linear + " or " + cubic);
}

static OperatorImport gridSample("GridSample", [](OnnxNode &node) -> llvm::LogicalResult {
  auto mode = readMode(node);
  if (failed(mode))
    return llvm::failure();
  llvm::StringRef name = node.getString("padding_mode", "zeros");
  auto padding = llvm::StringSwitch<std::optional<PadMode>>(name)
                     .Case("zeros", PadMode::Constant)
                     .Case("border", PadMode::Edge)
                     .Case("reflection", PadMode::Reflect)
                     .Default(std::nullopt);
  if (!padding)
    return node.invalid("'padding_mode' is '" + name + "'; expected zeros, border or reflection");
  mlir::Value image = node.getInput(0), grid = node.getInput(1);
  if (node.getOpset() < 20 && node.getRank(image) != 4)
    return node.invalid("operand 0 has rank " + llvm::Twine(node.getRank(image)) + "; before opset 20 it is 4");
  mlir::Type type = node.getType(image).getElementType();
  // What is interpolated between integers is truncated.
  bool isConverted = !llvm::isa<mlir::FloatType>(type) && *mode != ResizeMode::Nearest;
  if (isConverted) {
    bool isWide = type.getIntOrFloatBitWidth() > 16;
    image = node.cast(image, isWide ? mlir::Type(node.getBuilder().getF64Type()) : node.getBuilder().getF32Type());
  }
  mlir::Value result = node.create<GridSampleOp>(image, grid, *mode, *padding, node.getInt("align_corners", 0) != 0);
  if (result && isConverted)
    result = node.cast(result, type);
  return node.setResult(result);
});

//===----------------------------------------------------------------------===//
// DeformConv
//===----------------------------------------------------------------------===//

static OperatorImport deformConv("DeformConv", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value image = node.getInput(0), weights = node.getInput(1), offset = node.getInput(2), bias = node.getInput(3),
              mask = node.getInput(4);
  if (failed(node.requireRank(0, 3)))
    return llvm::failure();
  int64_t rank = node.getRank(image);
  if (node.getRank(weights) != rank || node.getRank(offset) != rank)
    return node.invalid("operand, weights and offsets differ in rank");
  auto window = readWindows(node, image, node.getShape(weights).drop_front(2));
  if (failed(window))
    return llvm::failure();
  for (unsigned dim = 0; dim < window->getRank(); ++dim) {
    int64_t room = node.getShape(image)[dim + 2] + window->padsLow[dim] + window->padsHigh[dim] - window->getReach(dim);
    int64_t windows = room < 0 ? 0 : room / window->strides[dim] + 1;
    if (int64_t given = node.getShape(offset)[dim + 2]; given != windows)
      return node.invalid("the offsets are of " + llvm::Twine(given) + " windows in spatial dimension " +
                          llvm::Twine(dim) + ", which has " + llvm::Twine(windows));
  }
  int64_t groups = node.getInt("group", 1), offsetGroups = node.getInt("offset_group", 1);
  int64_t batch = node.getShape(image)[0], channels = node.getShape(image)[1], results = node.getShape(weights)[0];
  if (groups < 1 || channels % groups != 0 || results % groups != 0 || node.getShape(weights)[1] != channels / groups)
    return node.invalid(llvm::Twine(groups) + " groups do not fit the weights, or the operand's " +
                        llvm::Twine(channels) + " channels");
  if (bias && node.getShape(bias) != llvm::ArrayRef<int64_t>(results))
    return node.invalid("the bias does not have one element for each channel of the result");
  mlir::Value seen = node.create<DeformSampleOp>(image, offset, OptionalOperand{mask}, window->kernel, window->strides,
                                                 window->dilations, window->padsLow, groups, offsetGroups);
  if (!seen)
    return llvm::failure();

  // The product over taps and channels of [N, groups, windows..., them]: windows are its rows.
  llvm::ArrayRef<int64_t> windows = node.getShape(offset).drop_front(2);
  int64_t taps = *countElements(window->kernel), terms = taps * (channels / groups), each = results / groups;
  llvm::SmallVector<int64_t> shape{batch}, weightShape, biasShape, order{0};
  if (groups > 1) {
    shape.push_back(groups);
    weightShape.push_back(groups);
    weightShape.append(windows.size() - 1, 1);
    biasShape.push_back(groups);
    biasShape.append(windows.size(), 1);
    order.push_back(1);
  }
  order.push_back(order.size() + windows.size());
  for (size_t dim = 0; dim < windows.size(); ++dim)
    order.push_back((groups > 1 ? 2 : 1) + dim);
  llvm::append_range(shape, windows);
  shape.push_back(terms);
  weightShape.append({terms, each});
  biasShape.push_back(each);
  mlir::Value factors = node.transpose(node.reshape(weights, {groups, each, channels / groups, taps}), {0, 3, 2, 1});
  mlir::Value result = node.create<MatMulOp>(node.reshape(seen, shape), node.reshape(factors, weightShape));
  if (bias && result)
    result = node.create<AddOp>(result, node.reshape(bias, biasShape));
  shape.assign({batch, results});
  llvm::append_range(shape, windows);
  return node.setResult(node.reshape(node.transpose(result, order), shape));
});

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

static OperatorImport roiAlign("RoiAlign", [](OnnxNode &node) -> llvm::LogicalResult {
  llvm::StringRef mode = node.getString("mode", "avg");
  if (mode != "avg" && mode != "max")
    return node.invalid("'mode' is '" + mode + "', which is neither avg nor max");
  llvm::StringRef coordinates =
      node.getString("coordinate_transformation_mode", node.getOpset() < 16 ? "output_half_pixel" : "half_pixel");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    return node.invalid("'coordinate_transformation_mode' is '" + coordinates +
                        "', which is neither half_pixel nor output_half_pixel");
  llvm::SmallVector<int64_t> pooled{node.getInt("output_height", 1), node.getInt("output_width", 1)};
  auto scale = node.getBuilder().getF32FloatAttr(static_cast<float>(node.getFloat("spatial_scale", 1)));
  return node.setResult(node.create<RoiAlignOp>(node.getInput(0), node.getInput(1), node.getInput(2), pooled,
                                                node.getInt("sampling_ratio", 0), scale.getValue(),
                                                coordinates == "half_pixel", mode == "max"));
});

static OperatorImport maxRoiPool("MaxRoiPool", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value rois = node.getInput(1);
  if (node.getRank(rois) != 2 || node.getShape(rois)[1] != 5)
    return node.invalid("the regions are not [R, 5]: a batch index and two corners");
  llvm::SmallVector<int64_t> pooled = node.getInts("pooled_shape");
  if (pooled.size() != 2)
    return node.invalid("'pooled_shape' does not have two entries");
  int64_t count = node.getShape(rois)[0];
  mlir::Value batches = node.cast(node.slice(rois, {0, 0}, {count, 1}, {1, 1}), node.getBuilder().getI64Type());
  auto scale = node.getBuilder().getF32FloatAttr(static_cast<float>(node.getFloat("spatial_scale", 1)));
  return node.setResult(node.create<MaxRoiPoolOp>(node.getInput(0), node.slice(rois, {0, 1}, {count, 4}, {1, 1}),
                                                  node.reshape(batches, {count}), pooled, scale.getValue()));
});
