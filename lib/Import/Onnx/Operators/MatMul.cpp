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

#include "../../Build/Contractions.h"
#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

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
  mlir::Value product = scale(multiplyLastDims(node, lhs, rhs), node.getFloat("alpha", 1));
  double beta = node.getFloat("beta", 1);
  if (!summand || beta == 0 || !product)
    return node.setResult(product);
  mlir::Value result = node.create<AddOp>(product, scale(summand, beta));
  if (result && node.getShape(result) != node.getShape(product))
    return node.invalid("operand C does not broadcast to the product");
  return node.setResult(result);
});
