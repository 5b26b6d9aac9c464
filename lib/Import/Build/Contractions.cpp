//===- Contractions.cpp - Matrix products and convolutions ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements how matrix products and convolutions are built.
//
//===----------------------------------------------------------------------===//

#include "Contractions.h"

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/IR/TypeUtilities.h"

using namespace dovetail;
using namespace dovetail::importer;

mlir::Value dovetail::importer::convolve(GraphBuilder &node, mlir::Value input, mlir::Value weights, Windows windows,
                                         int64_t groups) {
  if (failed(node.inferBounds(input)))
    return {};
  auto create = [&](mlir::Value value) {
    return node.create<ConvOp>(value, weights, windows.strides, windows.dilations, windows.padsLow, windows.padsHigh,
                               groups);
  };
  if (!windows.varies(node, input, /*countsElements=*/false))
    return windows.boundResult(node, input, create(windows.fillTails(node, input, ReduceKind::Sum)));
  Counts counts;
  mlir::Value arranged = windows.arrange(node, input, ReduceKind::Sum, counts);
  counts[1] = {};
  return node.state(create(arranged), std::move(counts));
}

mlir::Value dovetail::importer::multiplyLastDims(GraphBuilder &node, mlir::Value lhs, mlir::Value rhs) {
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

mlir::Value dovetail::importer::multiplyMatrices(GraphBuilder &node, mlir::Value lhs, mlir::Value rhs) {
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
  mlir::Value product = multiplyLastDims(node, lhs, rhs);
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
