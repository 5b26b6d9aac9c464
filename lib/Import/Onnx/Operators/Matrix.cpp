//===- Matrix.cpp - Import of operators on square matrices ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Determinants.
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/MatrixOps.h"

using namespace dovetail;
using namespace dovetail::importer;

static OperatorImport det("Det", [](OnnxNode &node) -> llvm::LogicalResult {
  if (failed(node.requireRank(0, 2)))
    return llvm::failure();
  mlir::Value input = node.getInput(0);
  llvm::ArrayRef<int64_t> shape = node.getShape(input), batch = shape.drop_back(2);
  int64_t size = shape.back(), rank = batch.size();
  if (shape[rank] != size)
    return node.invalid("the operand is not of square matrices");
  mlir::Type elementType = node.getType(input).getElementType();
  if (size == 0)
    return node.setResult(node.splat(mlir::RankedTensorType::get(batch, elementType), 1));
  mlir::Value value = node.create<EliminateOp>(node.widen(input));
  // The diagonal is every (size + 1)th element.
  llvm::SmallVector<int64_t> flat(batch), starts(rank + 1, 0), steps(rank + 1, 1), sizes(batch);
  flat.push_back(size * size);
  sizes.push_back(size);
  steps.back() = size + 1;
  value = node.reduce(node.slice(node.reshape(value, flat), starts, sizes, steps), ReduceKind::Prod, {rank});
  return node.setResult(node.cast(value ? node.reshape(value, batch) : value, elementType));
});
