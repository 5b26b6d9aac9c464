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

mlir::Value dovetail::importer::convolve(GraphBuilder &builder, mlir::Value input, mlir::Value weights, Windows windows,
                                         int64_t groups) {
  if (failed(builder.inferBounds(input)))
    return {};
  auto create = [&](mlir::Value value) {
    return builder.create<ConvOp>(value, weights, windows.strides, windows.dilations, windows.padsLow, windows.padsHigh,
                                  groups);
  };
  if (!windows.varies(builder, input, /*countsElements=*/false))
    return windows.boundResult(builder, input, create(windows.fillTails(builder, input, ReduceKind::Sum)));
  Counts counts;
  mlir::Value arranged = windows.arrange(builder, input, ReduceKind::Sum, counts);
  counts[1] = {};
  return builder.state(create(arranged), std::move(counts));
}

mlir::Value dovetail::importer::multiplyLastDims(GraphBuilder &builder, mlir::Value lhs, mlir::Value rhs) {
  if (!lhs || !rhs)
    return {};
  int64_t columns = builder.getShape(lhs).back(), rows = *std::prev(builder.getShape(rhs).end(), 2);
  if (columns != rows) {
    (void)builder.invalid("the first matrix has " + llvm::Twine(columns) + (columns == 1 ? " column" : " columns") +
                          ", and the second " + llvm::Twine(rows) + (rows == 1 ? " row" : " rows") +
                          "; a product needs as many");
    return {};
  }
  return builder.create<MatMulOp>(lhs, rhs);
}

mlir::Value dovetail::importer::multiplyMatrices(GraphBuilder &builder, mlir::Value lhs, mlir::Value rhs) {
  if (!lhs || !rhs)
    return {};
  if (builder.getRank(lhs) == 0 || builder.getRank(rhs) == 0) {
    (void)builder.invalid("an operand of a matrix product has rank 0");
    return {};
  }
  bool isLhsVector = builder.getRank(lhs) == 1, isRhsVector = builder.getRank(rhs) == 1;
  // Vectors that are as long as memory allows are read where they lie, and not as matrices.
  if (isLhsVector && isRhsVector && lhs.getType() == rhs.getType()) {
    mlir::Value products = builder.create<MulOp>(builder.widen(lhs), builder.widen(rhs));
    mlir::Value sum = builder.reduce(products, ReduceKind::Sum, {0});
    return builder.reshape(builder.cast(sum, mlir::getElementTypeOrSelf(lhs.getType())), {});
  }
  if (isLhsVector)
    lhs = builder.reshape(lhs, {1, builder.getShape(lhs)[0]});
  if (isRhsVector)
    rhs = builder.reshape(rhs, {builder.getShape(rhs)[0], 1});
  mlir::Value product = multiplyLastDims(builder, lhs, rhs);
  if (!product)
    return {};
  // The dimensions that were added disappear again.
  llvm::SmallVector<int64_t> shape(builder.getShape(product));
  if (isRhsVector)
    shape.pop_back();
  if (isLhsVector)
    shape.erase(shape.end() - (isRhsVector ? 1 : 2));
  return builder.reshape(product, shape);
}
