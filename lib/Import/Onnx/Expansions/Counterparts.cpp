//===- Counterparts.cpp - Operators that ONNX has another form of ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States operators of com.microsoft for which ONNX has one by now: Trilu, ExpandDims, GridSample, Range, Pad, GatherND,
// Unique, Rfft, Irfft. CropAndResize is a GridSample.
//
//===----------------------------------------------------------------------===//

#include "../Expansion.h"
#include "../TensorData.h"

#include "llvm/ADT/Sequence.h"

using namespace dovetail;
using namespace dovetail::importer;

/// Whole numbers that an operand must have when the model is compiled.
static llvm::FailureOr<llvm::SmallVector<int64_t>> readConstant(Expansion &node, llvm::StringRef operand) {
  mlir::ElementsAttr constant = node.getConstant(operand);
  if (auto numbers = constant ? readInts(constant) : std::nullopt)
    return std::move(*numbers);
  return node.unsupported("operand '" + operand + "' is not constant");
}

/// An operand of one number, without dimensions.
static std::string getNumber(Expansion &node, llvm::StringRef operand) {
  if (node.getRank(operand) == 0)
    return operand.str();
  if (mlir::ElementsAttr constant = node.getConstant(operand))
    return node.constant(reshapeConstant(constant, {}));
  return node.add("Reshape", {operand.str(), node.ints({})});
}

static OperatorExpansion trilu("com.microsoft", "Trilu", [](Expansion &node) {
  node.setResult("Y", node.add("Trilu", {"X", node.getOperand("k")}, {{"upper", node.getInt("upper")}}));
  return llvm::success();
});

static OperatorExpansion expandDims("com.microsoft", "ExpandDims", [](Expansion &node) -> llvm::LogicalResult {
  auto axis = readConstant(node, "axis");
  if (failed(axis))
    return llvm::failure();
  if (axis->size() != 1)
    return node.invalid("'axis' is not one number");
  node.setResult("Y", node.add("Unsqueeze", {"X", node.ints(*axis)}));
  return llvm::success();
});

static OperatorExpansion gridSample("com.microsoft", "GridSample", [](Expansion &node) -> llvm::LogicalResult {
  llvm::StringRef mode = node.getString("mode");
  llvm::StringRef name = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode;
  if (name == mode && mode != "nearest")
    return node.invalid("attribute 'mode' is '" + mode + "': expected bilinear, nearest or bicubic");
  node.setResult("Y", node.add("GridSample", {"X", "Grid"},
                               {{"align_corners", node.getInt("align_corners")},
                                {"mode", name},
                                {"padding_mode", node.getString("padding_mode")}}));
  return llvm::success();
});

static OperatorExpansion range("com.microsoft", "Range", [](Expansion &node) -> llvm::LogicalResult {
  for (const char *name : {"start", "limit", "delta"})
    if (node.hasOperand(name) && node.getType(name).getNumElements() != 1)
      return node.invalid("'" + llvm::Twine(name) + "' is not one number");
  std::string delta =
      node.hasOperand("delta") ? getNumber(node, "delta") : node.scalar(1, node.getType("start").getElementType());
  node.setResult("Y", node.add("Range", {getNumber(node, "start"), getNumber(node, "limit"), delta}));
  return llvm::success();
});

static OperatorExpansion pad("com.microsoft", "Pad", [](Expansion &node) -> llvm::LogicalResult {
  auto pads = readConstant(node, "pads");
  if (failed(pads))
    return llvm::failure();
  if (node.hasOperand("value") && node.getType("value").getNumElements() != 1)
    return node.invalid("'value' is not one number");
  std::string value = node.hasOperand("value") ? getNumber(node, "value") : "";
  node.setResult("output", node.add("Pad", {"data", node.ints(*pads), value}, {{"mode", node.getString("mode")}}));
  return llvm::success();
});

static OperatorExpansion gatherNd("com.microsoft", "GatherND", [](Expansion &node) {
  mlir::Type i64 = mlir::IntegerType::get(node.getType("indices").getContext(), 64);
  node.setResult("output", node.add("GatherND", {"data", node.cast("indices", i64)}));
  return llvm::success();
});

/// In the order of the first of equal elements.
static OperatorExpansion unique("com.microsoft", "Unique", [](Expansion &node) -> llvm::LogicalResult {
  if (node.getRank("x") != 1)
    return node.invalid("'x' needs 1 dimension");
  auto results = node.addMany("Unique", 4, {"x"}, {{"sorted", 0}});
  node.setResult("y", results[0]);
  node.setResult("idx", results[2]);
  node.setResult("counts", results[3]);
  return llvm::success();
});

//===----------------------------------------------------------------------===//
// Fourier transforms
//===----------------------------------------------------------------------===//

static llvm::LogicalResult checkTransform(Expansion &node) {
  for (auto [name, wanted] : {std::pair("onesided", 1), std::pair("normalized", 0), std::pair("signal_ndim", 1)})
    if (node.getInt(name) != wanted)
      return node.unsupported("attribute '" + llvm::Twine(name) + "' is " + llvm::Twine(node.getInt(name)) + "; " +
                              llvm::Twine(wanted) + " is supported");
  return llvm::success();
}

static OperatorExpansion rfft("com.microsoft", "Rfft", [](Expansion &node) -> llvm::LogicalResult {
  if (failed(checkTransform(node)))
    return llvm::failure();
  if (node.getRank("X") < 1)
    return node.invalid("'X' needs 1 dimension or more");
  std::string value = node.add("Unsqueeze", {"X", node.ints({-1})});
  node.setResult("Y", node.add("DFT", {value, "", node.ints({-2})}, {{"onesided", 1}}));
  return llvm::success();
});

static OperatorExpansion irfft("com.microsoft", "Irfft", [](Expansion &node) -> llvm::LogicalResult {
  if (failed(checkTransform(node)))
    return llvm::failure();
  int64_t rank = node.getRank("X");
  if (rank < 2 || node.getShape("X").back() != 2 || node.getShape("X")[rank - 2] < 2)
    return node.invalid("'X' does not have 2 as its last extent, with 2 or more before it");
  if (node.isBounded("X", rank - 2))
    return node.unsupported("operand 'X' has lines whose extent only runs know");
  // Lines are of even length.
  int64_t length = 2 * (node.getShape("X")[rank - 2] - 1);
  mlir::Type i64 = mlir::IntegerType::get(node.getType("X").getContext(), 64);
  std::string value = node.add("DFT", {"X", node.scalar(static_cast<double>(length), i64), node.ints({-2})},
                               {{"onesided", 1}, {"inverse", 1}});
  node.setResult("Y", node.add("Squeeze", {value, node.ints({-1})}));
  return llvm::success();
});

//===----------------------------------------------------------------------===//
// CropAndResize
//===----------------------------------------------------------------------===//

namespace {

/// Where a box is sampled along a dimension of the image, and where that is inside of the image.
struct Line {
  std::string places, inside;
};

} // namespace

/// `count` places in elements of the image, which has `extent` of them, in the shape [boxes, count]. Columns `first`
/// and `last` of 'rois' say where boxes begin and end.
static Line placeLine(Expansion &node, int64_t first, int64_t last, int64_t count, int64_t extent, mlir::Type type) {
  auto getColumn = [&](int64_t column) {
    std::string value = node.add("Slice", {"rois", node.ints({column}), node.ints({column + 1}), node.ints({1})});
    return node.add("Mul", {value, node.scalar(static_cast<double>(extent - 1), type)});
  };
  std::string begin = getColumn(first), end = getColumn(last), places;
  if (count == 1) {
    places = node.add("Mul", {node.add("Add", {begin, end}), node.scalar(0.5, type)});
  } else {
    std::string step =
        node.add("Div", {node.add("Sub", {end, begin}), node.scalar(static_cast<double>(count - 1), type)});
    mlir::Type i64 = mlir::IntegerType::get(type.getContext(), 64);
    std::string steps =
        node.add("Range", {node.scalar(0, i64), node.scalar(static_cast<double>(count), i64), node.scalar(1, i64)});
    places = node.add("Add", {begin, node.add("Mul", {step, node.cast(steps, type)})});
    // The last place is the end itself, which rounding may not move out of the image.
    std::string isLast = node.add("Equal", {steps, node.scalar(static_cast<double>(count - 1), i64)});
    places = node.add("Where", {isLast, end, places});
  }
  std::string inside =
      node.add("And", {node.add("GreaterOrEqual", {places, node.scalar(0, type)}),
                       node.add("LessOrEqual", {places, node.scalar(static_cast<double>(extent - 1), type)})});
  return {places, inside};
}

/// Places as GridSample counts them, from -1 at the first element to 1 at the last one.
static std::string normalizePlaces(Expansion &node, std::string places, bool isNearest, int64_t extent,
                                   mlir::Type type) {
  // Halves are rounded up.
  if (isNearest)
    places = node.add("Floor", {node.add("Add", {places, node.scalar(0.5, type)})});
  if (extent == 1)
    return node.add("Mul", {places, node.scalar(0, type)});
  places = node.add("Mul", {places, node.scalar(2.0 / static_cast<double>(extent - 1), type)});
  return node.add("Sub", {places, node.scalar(1, type)});
}

static OperatorExpansion cropAndResize("com.microsoft", "CropAndResize", [](Expansion &node) -> llvm::LogicalResult {
  llvm::StringRef mode = node.getString("mode");
  bool isNearest = mode == "nearest";
  if (!isNearest && mode != "bilinear")
    return node.invalid("attribute 'mode' is '" + mode + "': expected bilinear or nearest");
  auto size = readConstant(node, "crop_size");
  if (failed(size))
    return llvm::failure();
  if (node.getRank("X") != 4 || node.getRank("rois") != 2 || node.getShape("rois")[1] != 4)
    return node.invalid("'X' needs 4 dimensions, and 'rois' two, of which the second has 4 elements");
  if (size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1)
    return node.invalid("'crop_size' is not two positive numbers");
  int64_t boxes = node.getShape("rois")[0], high = (*size)[0], wide = (*size)[1];
  int64_t height = node.getShape("X")[2], width = node.getShape("X")[3];
  if (height < 1 || width < 1)
    return node.invalid("'X' has images without elements");
  if (node.isBounded("rois", 0) || node.isBounded("X", 2) || node.isBounded("X", 3))
    return node.unsupported("operands 'X' and 'rois' have extents that only runs know");
  mlir::Type type = node.getType("X").getElementType();
  Line rows = placeLine(node, 0, 2, high, height, type), columns = placeLine(node, 1, 3, wide, width, type);
  auto spread = [&](const std::string &places, int64_t axis) {
    std::string value = node.add("Unsqueeze", {places, node.ints({axis})});
    value = node.add("Expand", {value, node.ints({boxes, high, wide})});
    return node.add("Unsqueeze", {value, node.ints({-1})});
  };
  std::string x = spread(normalizePlaces(node, columns.places, isNearest, width, type), 1);
  std::string y = spread(normalizePlaces(node, rows.places, isNearest, height, type), 2);
  std::string images = node.add("Gather", {"X", "batch_indices"}, {{"axis", 0}});
  std::string sampled =
      node.add("GridSample", {images, node.add("Concat", {x, y}, {{"axis", -1}})},
               {{"align_corners", 1}, {"mode", isNearest ? "nearest" : "linear"}, {"padding_mode", "border"}});
  std::string inside = node.add("And", {node.add("Unsqueeze", {rows.inside, node.ints({2})}),
                                        node.add("Unsqueeze", {columns.inside, node.ints({1})})});
  std::string outside = node.scalar(node.getFloat("extrapolation_value"), type);
  node.setResult("Y", node.add("Where", {node.add("Unsqueeze", {inside, node.ints({1})}), sampled, outside}));
  return llvm::success();
});
