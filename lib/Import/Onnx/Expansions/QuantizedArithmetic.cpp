//===- QuantizedArithmetic.cpp - Elementwise operators of 8 bits ----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States operators that dequantise their operands, compute in f32, and quantise the result: QLinearAdd, QLinearMul,
// QLinearSigmoid, QLinearLeakyRelu, QLinearSoftmax, QLinearWhere, QLinearConcat, pools; QuantizeLinear and
// DequantizeLinear.
//
//===----------------------------------------------------------------------===//

#include "Quantized.h"

#include "../TensorData.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace dovetail;
using namespace dovetail::importer;

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

std::string importer::dequantize(Expansion &node, llvm::StringRef operand, llvm::StringRef scale,
                                 llvm::StringRef zeroPoint) {
  return node.add("DequantizeLinear", {operand.str(), scale.str(), node.getOperand(zeroPoint)});
}

std::string importer::quantize(Expansion &node, const std::string &value, llvm::StringRef scale,
                               llvm::StringRef zeroPoint, mlir::Type type) {
  if (node.hasOperand(zeroPoint))
    return node.add("QuantizeLinear", {value, scale.str(), zeroPoint.str()});
  return node.add("QuantizeLinear", {value, scale.str()},
                  {{"output_dtype", static_cast<int64_t>(convertElementType(type))}});
}

std::string importer::roundSteps(Expansion &node, const std::string &value, llvm::StringRef zeroPoint,
                                 mlir::Type type) {
  std::string one = node.scalar(1, mlir::Float32Type::get(type.getContext()));
  return quantize(node, value, one, zeroPoint, type);
}

llvm::LogicalResult importer::requireScalars(Expansion &node, llvm::ArrayRef<llvm::StringRef> operands) {
  for (llvm::StringRef operand : operands)
    if (node.hasOperand(operand) && (node.getRank(operand) > 1 || node.getType(operand).getNumElements() != 1))
      return node.invalid("'" + operand + "' is not one number");
  return llvm::success();
}

std::string importer::getScalar(Expansion &node, llvm::StringRef operand) {
  return node.getRank(operand) == 0 ? operand.str() : node.add("Reshape", {operand.str(), node.ints({})});
}

//===----------------------------------------------------------------------===//
// Elementwise operators
//===----------------------------------------------------------------------===//

template <bool isMul> static llvm::LogicalResult expandBinary(Expansion &node) {
  if (failed(requireScalars(node, {"A_scale", "A_zero_point", "B_scale", "B_zero_point", "C_scale", "C_zero_point"})))
    return llvm::failure();
  std::string a = dequantize(node, "A", "A_scale", "A_zero_point");
  std::string b = dequantize(node, "B", "B_scale", "B_zero_point");
  std::string result = node.add(isMul ? "Mul" : "Add", {a, b});
  node.setResult("C", quantize(node, result, "C_scale", "C_zero_point", node.getType("A").getElementType()));
  return llvm::success();
}

static OperatorExpansion add("com.microsoft", "QLinearAdd", expandBinary<false>);
static OperatorExpansion mul("com.microsoft", "QLinearMul", expandBinary<true>);

static llvm::LogicalResult expandUnary(Expansion &node, llvm::StringRef op,
                                       llvm::ArrayRef<Expansion::Attr> attributes) {
  if (failed(requireScalars(node, {"X_scale", "X_zero_point", "Y_scale", "Y_zero_point"})))
    return llvm::failure();
  std::string result = node.add(op, {dequantize(node, "X", "X_scale", "X_zero_point")}, attributes);
  node.setResult("Y", quantize(node, result, "Y_scale", "Y_zero_point", node.getType("X").getElementType()));
  return llvm::success();
}

static OperatorExpansion sigmoid("com.microsoft", "QLinearSigmoid",
                                 [](Expansion &node) { return expandUnary(node, "Sigmoid", {}); });

static OperatorExpansion leakyRelu("com.microsoft", "QLinearLeakyRelu", [](Expansion &node) {
  return expandUnary(node, "LeakyRelu", {{"alpha", node.getFloat("alpha")}});
});

static OperatorExpansion where("com.microsoft", "QLinearWhere", [](Expansion &node) -> llvm::LogicalResult {
  if (failed(requireScalars(node, {"x_scale", "x_zero_point", "y_scale", "y_zero_point", "z_scale", "z_zero_point"})))
    return llvm::failure();
  std::string x = dequantize(node, "X", "x_scale", "x_zero_point");
  std::string y = dequantize(node, "Y", "y_scale", "y_zero_point");
  std::string result = node.add("Where", {"condition", x, y});
  node.setResult("Z", quantize(node, result, "z_scale", "z_zero_point", node.getType("X").getElementType()));
  return llvm::success();
});

static OperatorExpansion softmax("com.microsoft", "QLinearSoftmax", [](Expansion &node) -> llvm::LogicalResult {
  if (failed(requireScalars(node, {"X_scale", "x_zero_point", "y_scale", "y_zero_point"})))
    return llvm::failure();
  int64_t axis = node.getInt("axis"), rank = node.getRank("X");
  if (axis < -rank || axis >= rank)
    return node.invalid("attribute 'axis' is " + llvm::Twine(axis) + ", but 'X' has " + llvm::Twine(rank) +
                        " dimensions");
  axis = axis < 0 ? axis + rank : axis;
  std::string value = dequantize(node, "X", "X_scale", "x_zero_point");
  // Before opset 13, all dimensions from 'axis' on count as one.
  bool isFlat = node.getInt("opset") < 13 && axis != rank - 1;
  if (isFlat) {
    for (int64_t dim = 0; dim < rank; ++dim)
      if (node.isBounded("X", dim))
        return node.unsupported("attribute 'opset' is below 13, and 'X' has an extent that only runs know",
                                "export the model for opset 13 or newer");
    value = node.add("Softmax", {node.add("Flatten", {value}, {{"axis", axis}})}, {{"axis", 1}});
    value = node.add("Reshape", {value, node.ints(node.getShape("X"))}, {{"allowzero", 1}});
  } else {
    value = node.add("Softmax", {value}, {{"axis", axis}});
  }
  node.setResult("Y", quantize(node, value, "y_scale", "y_zero_point", node.getType("X").getElementType()));
  return llvm::success();
});

static OperatorExpansion concat("com.microsoft", "QLinearConcat", [](Expansion &node) -> llvm::LogicalResult {
  auto name = [](unsigned index) { return "inputs_" + std::to_string(index); };
  unsigned count = 0;
  while (node.hasOperand(name(count)))
    ++count;
  if (count == 0 || count % 3 != 0)
    return node.invalid("it has " + llvm::Twine(count) +
                        " operands behind 'Y_zero_point': expected a tensor, a scale and a zero point for each part");
  mlir::Type type = node.getType("Y_zero_point").getElementType();
  llvm::SmallVector<std::string> parts;
  for (unsigned first = 0; first < count; first += 3) {
    std::string data = name(first), scale = name(first + 1), zero = name(first + 2);
    if (!node.getType(scale).getElementType().isF32() || node.getType(data).getElementType() != type ||
        node.getType(zero).getElementType() != type)
      return node.invalid(
          "part " + llvm::Twine(first / 3) +
          " is not a tensor and a zero point of the type of 'Y_zero_point', with a scale of f32 between");
    if (failed(requireScalars(node, {scale, zero})))
      return llvm::failure();
    parts.push_back(dequantize(node, data, scale, zero));
  }
  if (failed(requireScalars(node, {"Y_scale", "Y_zero_point"})))
    return llvm::failure();
  std::string result = node.add("Concat", parts, {{"axis", node.getInt("axis")}});
  node.setResult("Y", quantize(node, result, "Y_scale", "Y_zero_point", type));
  return llvm::success();
});

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

/// Sets 'ceil_mode' and 'pads' of an AveragePool. Where padding counts, windows that reach beyond it have as many
/// elements as others. In ONNX they have fewer: 'pads' reach as far as windows do.
static llvm::LogicalResult addPads(Expansion &node, llvm::SmallVectorImpl<Expansion::Attr> &attributes) {
  llvm::SmallVector<int64_t> pads = node.getInts("pads"), strides = node.getInts("strides"),
                             kernel = node.getInts("kernel_shape");
  llvm::StringRef autoPad = node.getString("auto_pad");
  bool isSame = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  int64_t ceil = node.getInt("ceil_mode"), first = node.getInt("channels_last") ? 1 : 2;
  if (!ceil || !node.getInt("count_include_pad") || isSame) {
    attributes.emplace_back("ceil_mode", ceil);
    attributes.emplace_back("auto_pad", autoPad);
    if (!pads.empty())
      attributes.emplace_back("pads", pads);
    return llvm::success();
  }
  size_t dims = node.getRank("X") - 2;
  if (pads.empty() || autoPad == "VALID")
    pads.assign(2 * dims, 0);
  if (strides.empty())
    strides.assign(dims, 1);
  if (kernel.size() != dims || strides.size() != dims || pads.size() != 2 * dims)
    return node.invalid(
        "'kernel_shape', 'strides' and 'pads' do not have as many numbers as 'X' has spatial dimensions");
  for (size_t dim = 0; dim < dims; ++dim) {
    if (node.isBounded("X", first + dim))
      return node.unsupported("attributes 'ceil_mode' and 'count_include_pad' need spatial extents that are known");
    int64_t size = node.getShape("X")[first + dim], begin = pads[dim], &end = pads[dims + dim];
    if (strides[dim] < 1 || size + begin + end < kernel[dim])
      return node.invalid("no window fits into spatial dimension " + llvm::Twine(dim) + " of 'X'");
    int64_t last = llvm::divideCeil(size + begin + end - kernel[dim], strides[dim]);
    // A window that would begin behind the elements is left out.
    if (last * strides[dim] >= size + begin)
      --last;
    end = std::max<int64_t>(last * strides[dim] + kernel[dim] - size - begin, 0);
  }
  attributes.emplace_back("pads", pads);
  return llvm::success();
}

static OperatorExpansion averagePool("com.microsoft", "QLinearAveragePool", [](Expansion &node) -> llvm::LogicalResult {
  if (failed(requireScalars(node, {"x_scale", "x_zero_point", "y_scale", "y_zero_point"})))
    return llvm::failure();
  int64_t rank = node.getRank("X");
  if (rank < 3)
    return node.invalid("'X' needs 3 dimensions or more");
  bool isLast = node.getInt("channels_last") != 0;
  std::string value = dequantize(node, "X", "x_scale", "x_zero_point");
  if (isLast)
    value = node.moveChannels(value, rank, /*toFront=*/true);
  llvm::SmallVector<Expansion::Attr> attributes = {{"count_include_pad", node.getInt("count_include_pad")},
                                                   {"kernel_shape", node.getInts("kernel_shape")}};
  if (node.hasAttr("strides"))
    attributes.emplace_back("strides", node.getInts("strides"));
  if (failed(addPads(node, attributes)))
    return llvm::failure();
  value = node.add("AveragePool", {value}, attributes);
  if (isLast)
    value = node.moveChannels(value, rank, /*toFront=*/false);
  node.setResult("Y", quantize(node, value, "y_scale", "y_zero_point", node.getType("X").getElementType()));
  return llvm::success();
});

static OperatorExpansion
    globalPool("com.microsoft", "QLinearGlobalAveragePool", [](Expansion &node) -> llvm::LogicalResult {
      if (failed(requireScalars(node, {"x_scale", "x_zero_point", "y_scale", "y_zero_point"})))
        return llvm::failure();
      int64_t rank = node.getRank("X"), first = node.getInt("channels_last") ? 1 : 2;
      if (rank < 3)
        return node.invalid("'X' needs 3 dimensions or more");
      std::string value = dequantize(node, "X", "x_scale", "x_zero_point");
      auto axes = llvm::to_vector(llvm::seq<int64_t>(first, first + rank - 2));
      value = node.add("ReduceMean", {value, node.ints(axes)});
      node.setResult("Y", quantize(node, value, "y_scale", "y_zero_point", node.getType("X").getElementType()));
      return llvm::success();
    });

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// The attribute 'axis', which may be absent.
static llvm::SmallVector<Expansion::Attr> getAxis(Expansion &node) {
  llvm::SmallVector<Expansion::Attr> attributes;
  if (node.hasAttr("axis"))
    attributes.emplace_back("axis", node.getInt("axis"));
  return attributes;
}

static OperatorExpansion quantizeLinear("com.microsoft", "QuantizeLinear", [](Expansion &node) {
  llvm::SmallVector<Expansion::Attr> attributes = getAxis(node);
  // Quotients of f16 are not rounded twice.
  attributes.emplace_back("precision", static_cast<int64_t>(onnx::TensorProto::FLOAT));
  node.setResult("y", node.add("QuantizeLinear", {"x", "y_scale", node.getOperand("y_zero_point")}, attributes));
  return llvm::success();
});

static OperatorExpansion dequantizeLinear("com.microsoft", "DequantizeLinear", [](Expansion &node) {
  node.setResult("y", node.add("DequantizeLinear", {"x", "x_scale", node.getOperand("x_zero_point")}, getAxis(node)));
  return llvm::success();
});
