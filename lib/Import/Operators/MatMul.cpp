//===- MatMul.cpp - Import of matrix products -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Matrix products.
//
//===----------------------------------------------------------------------===//

#include "Contractions.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

/// The product of operands of rank 2 or more, whose types messages say.
static mlir::Value multiply(OnnxNode &node, mlir::Value lhs, mlir::Value rhs) {
  if (!lhs || !rhs)
    return {};
  int64_t columns = node.getShape(lhs).back(), rows = *std::prev(node.getShape(rhs).end(), 2);
  if (columns != rows) {
    (void)node.invalid("the first matrix has " + llvm::Twine(columns) + (columns == 1 ? " column" : " columns") +
                       ", and the second " + llvm::Twine(rows) + (rows == 1 ? " row" : " rows") +
                       "; a product needs as many");
    return {};
  }
  return node.create<MatMulOp>(lhs, rhs);
}

mlir::Value dovetail::importer::multiplyMatrices(OnnxNode &node, mlir::Value lhs, mlir::Value rhs) {
  if (!lhs || !rhs)
    return {};
  if (node.getRank(lhs) == 0 || node.getRank(rhs) == 0) {
    (void)node.invalid("an operand of a matrix product has rank 0");
    return {};
  }
  bool isLhsVector = node.getRank(lhs) == 1, isRhsVector = node.getRank(rhs) == 1;
  // Vectors that are as long as memory allows are read where they lie, and not as matrices.
  if (isLhsVector && isRhsVector && lhs.getType() == rhs.getType()) {
    mlir::Value products = node.create<MulOp>(node.widen(lhs), node.widen(rhs));
    mlir::Value sum = node.reduce(products, ReduceKind::Sum, {0});
    return node.reshape(node.cast(sum, mlir::getElementTypeOrSelf(lhs.getType())), {});
  }
  if (isLhsVector)
    lhs = node.reshape(lhs, {1, node.getShape(lhs)[0]});
  if (isRhsVector)
    rhs = node.reshape(rhs, {node.getShape(rhs)[0], 1});
  mlir::Value product = multiply(node, lhs, rhs);
  if (!product)
    return {};
  // The dimensions that were added disappear again.
  llvm::SmallVector<int64_t> shape(node.getShape(product));
  if (isRhsVector)
    shape.pop_back();
  if (isLhsVector)
    shape.erase(shape.end() - (isRhsVector ? 1 : 2));
  return node.reshape(product, shape);
}

static OperatorImport matMul("MatMul", [](OnnxNode &node) {
  return node.setResult(multiplyMatrices(node, node.getInput(0), node.getInput(1)));
});

static OperatorImport gemm("Gemm", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value lhs = node.getInput(0), rhs = node.getInput(1), summand = node.getInput(2);
  if (node.getRank(lhs) != 2 || node.getRank(rhs) != 2)
    return node.invalid("operands A and B must be matrices");
  if (node.getInt("transA", 0) != 0)
    lhs = node.transpose(lhs, {1, 0});
  if (node.getInt("transB", 0) != 0)
    rhs = node.transpose(rhs, {1, 0});
  auto scale = [&](mlir::Value value, double factor) {
    return factor == 1 ? value : node.create<MulOp>(value, node.scalarLike(value, factor));
  };
  mlir::Value product = scale(multiply(node, lhs, rhs), node.getFloat("alpha", 1));
  double beta = node.getFloat("beta", 1);
  if (!summand || beta == 0 || !product)
    return node.setResult(product);
  mlir::Value result = node.create<AddOp>(product, scale(summand, beta));
  if (result && node.getShape(result) != node.getShape(product))
    return node.invalid("operand C does not broadcast to the product");
  return node.setResult(result);
});
