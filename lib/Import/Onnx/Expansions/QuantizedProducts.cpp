//===- QuantizedProducts.cpp - Products of integers of 8 bits -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States QGemm, QLinearConv with channels last, MatMulIntegerToFloat and DynamicQuantizeMatMul: sums are in i32, and
// scaled.
//
//===----------------------------------------------------------------------===//

#include "Quantized.h"

using namespace dovetail;
using namespace dovetail::importer;

/// A scale of the second factor: one number, or one for each column.
static std::string getColumnScale(Expansion &node, llvm::StringRef scale) {
  return node.getType(scale).getNumElements() == 1 ? getScalar(node, scale) : scale.str();
}

static std::string transposeMatrix(Expansion &node, llvm::StringRef operand, bool transposed) {
  return transposed ? node.add("Transpose", {operand.str()}, {{"perm", {1, 0}}}) : operand.str();
}

static OperatorExpansion gemm("com.microsoft", "QGemm", [](Expansion &node) -> llvm::LogicalResult {
  if (node.getRank("A") != 2 || node.getRank("B") != 2)
    return node.invalid("'A' and 'B' need 2 dimensions");
  if (failed(requireScalars(node, {"a_scale", "a_zero_point", "y_scale", "y_zero_point"})))
    return llvm::failure();
  if (node.hasOperand("y_scale") != node.hasOperand("y_zero_point"))
    return node.invalid("'y_scale' and 'y_zero_point' need each other");
  if (node.getRank("b_scale") > 1 || node.getRank("b_zero_point") > 1)
    return node.invalid("'b_scale' and 'b_zero_point' need one number, or one for each column of 'B'");
  mlir::Type f32 = node.getType("a_scale").getElementType();
  std::string a = transposeMatrix(node, "A", node.getInt("transA")),
              b = transposeMatrix(node, "B", node.getInt("transB"));
  std::string sum = node.add("MatMulInteger", {a, b, "a_zero_point", "b_zero_point"});
  if (node.hasOperand("C"))
    sum = node.add("Add", {sum, "C"});
  std::string factor = getScalar(node, "a_scale");
  if (double alpha = node.getFloat("alpha"); alpha != 1)
    factor = node.add("Mul", {node.scalar(alpha, f32), factor});
  factor = node.add("Mul", {factor, getColumnScale(node, "b_scale")});
  if (!node.hasOperand("y_scale")) {
    node.setResult("Y", node.add("Mul", {node.cast(sum, f32), factor}));
    return llvm::success();
  }
  factor = node.add("Div", {factor, getScalar(node, "y_scale")});
  std::string steps = node.add("Mul", {node.cast(sum, f32), factor});
  node.setResult("Y", roundSteps(node, steps, "y_zero_point", node.getType("y_zero_point").getElementType()));
  return llvm::success();
});

static OperatorExpansion conv("com.microsoft", "QLinearConv", [](Expansion &node) -> llvm::LogicalResult {
  int64_t rank = node.getRank("x");
  if (rank < 3)
    return node.invalid("'x' needs 3 dimensions or more");
  llvm::SmallVector<Expansion::Attr> attributes = {{"auto_pad", node.getString("auto_pad")},
                                                   {"group", node.getInt("group")}};
  for (const char *name : {"dilations", "kernel_shape", "pads", "strides"})
    if (node.hasAttr(name))
      attributes.emplace_back(name, node.getInts(name));
  bool isLast = node.getInt("channels_last") != 0;
  std::string x = isLast ? node.moveChannels("x", rank, /*toFront=*/true) : "x";
  std::string result = node.add(
      "QLinearConv",
      {x, "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point", "y_scale", "y_zero_point", node.getOperand("B")},
      attributes);
  node.setResult("y", isLast ? node.moveChannels(result, rank, /*toFront=*/false) : result);
  return llvm::success();
});

/// `sum`, in i32, times both scales, plus 'bias', in `type`.
static std::string scaleSum(Expansion &node, const std::string &sum, const std::string &scale, mlir::Type type) {
  mlir::Type f32 = mlir::Float32Type::get(type.getContext());
  std::string factor = node.add("Mul", {node.cast(scale, f32), node.cast(getColumnScale(node, "b_scale"), f32)});
  std::string result = node.add("Mul", {node.cast(sum, f32), factor});
  if (node.hasOperand("bias"))
    result = node.add("Add", {result, node.cast("bias", f32)});
  return node.cast(result, type);
}

static OperatorExpansion toFloat("com.microsoft", "MatMulIntegerToFloat", [](Expansion &node) -> llvm::LogicalResult {
  if (failed(requireScalars(node, {"a_scale", "a_zero_point"})))
    return llvm::failure();
  std::string zero = node.hasOperand("a_zero_point") ? getScalar(node, "a_zero_point") : "";
  std::string sum = node.add("MatMulInteger", {"A", "B", zero, node.getOperand("b_zero_point")});
  node.setResult("Y", scaleSum(node, sum, getScalar(node, "a_scale"), node.getType("a_scale").getElementType()));
  return llvm::success();
});

static OperatorExpansion dynamic("com.microsoft", "DynamicQuantizeMatMul", [](Expansion &node) {
  // Integers, scale and zero point.
  auto quantized = node.addMany("DynamicQuantizeLinear", 3, {"A"});
  std::string sum = node.add("MatMulInteger", {quantized[0], "B", quantized[2], node.getOperand("b_zero_point")});
  node.setResult("Y", scaleSum(node, sum, quantized[1], node.getType("A").getElementType()));
  return llvm::success();
});
