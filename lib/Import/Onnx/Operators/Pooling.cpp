//===- Pooling.cpp - Import of pooling -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pooling over windows and over all of the spatial dimensions, and local response normalisation.
//
//===----------------------------------------------------------------------===//

#include "WindowAttributes.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

/// A pool of windows that are placed, or whose elements are counted, by an extent that varies from run to run.
static llvm::LogicalResult importVaryingPool(OnnxNode &node, Windows window, PoolKind kind, int64_t p) {
  mlir::Value input = node.getInput(0);
  bool isMean = kind == PoolKind::AverageExcludePad || kind == PoolKind::AverageIncludePad;
  Counts counts;
  llvm::SmallVector<mlir::Value> numbers;
  mlir::Value arranged =
      window.arrange(node, input, kind == PoolKind::Max ? ReduceKind::Max : ReduceKind::Sum, counts,
                     isMean ? &numbers : nullptr, /*countsPads=*/kind == PoolKind::AverageIncludePad);
  mlir::Type elementType = node.getType(input).getElementType();
  if (isMean)
    arranged = node.state(node.widen(arranged), Counts(node.getCounts(arranged)));
  mlir::Value result =
      node.state(node.create<PoolOp>(arranged, isMean ? PoolKind::AverageIncludePad : kind, window.kernel,
                                     window.strides, window.dilations, window.padsLow, window.padsHigh,
                                     /*ceil_mode=*/false, p),
                 counts);
  // The mean of all elements of a window, of which some do not count.
  for (auto [dim, number] : llvm::enumerate(numbers)) {
    mlir::Value all = node.scalarLike(number, static_cast<double>(window.kernel[dim]));
    mlir::Value factor = node.cast(node.create<DivOp>(all, number), node.getType(result).getElementType());
    result = node.state(node.create<MulOp>(result, factor), counts);
  }
  return node.setResult(isMean ? node.state(node.cast(result, elementType), counts) : result);
}

static llvm::LogicalResult importPool(OnnxNode &node, PoolKind kind, int64_t p = 2) {
  mlir::Value input = node.getInput(0);
  if (failed(node.requireRank(0, 3)))
    return llvm::failure();
  auto window = readWindows(node, input);
  if (failed(window) || failed(applyAutoPad(node, *window, input)))
    return llvm::failure();
  // They are positions in the whole tensor, but for the first dimension.
  for (unsigned dim = 1, rank = node.getRank(input); kind == PoolKind::Max && node.isResultUsed(1) && dim < rank; ++dim)
    if (node.getCount(input, dim))
      return node.unsupported(importer::describeBounded("operand 0", dim, node.getShape(input)[dim],
                                                        "indices of maxima are counted with it"));
  if (kind == PoolKind::Max && node.isResultUsed(1) &&
      failed(node.setResult(1, node.create<MaxPoolIndicesOp>(input, window->kernel, window->strides, window->dilations,
                                                             window->padsLow, window->padsHigh, window->isCeil,
                                                             node.getInt("storage_order", 0) != 0))))
    return llvm::failure();
  if (window->varies(node, input, /*countsElements=*/kind == PoolKind::AverageExcludePad))
    return importVaryingPool(node, *window, kind, p);
  mlir::Value filled = window->fillTails(node, input, kind == PoolKind::Max ? ReduceKind::Max : ReduceKind::Sum);
  mlir::Value result = node.create<PoolOp>(filled, kind, window->kernel, window->strides, window->dilations,
                                           window->padsLow, window->padsHigh, window->isCeil, p);
  return node.setResult(window->boundResult(node, input, result));
}

static OperatorImport maxPool("MaxPool", [](OnnxNode &node) { return importPool(node, PoolKind::Max); });

static OperatorImport averagePool("AveragePool", [](OnnxNode &node) {
  return importPool(node,
                    node.getInt("count_include_pad", 0) ? PoolKind::AverageIncludePad : PoolKind::AverageExcludePad);
});

static OperatorImport lpPool("LpPool", [](OnnxNode &node) {
  if (node.getInt("p", 2) < 1)
    return node.invalid("'p' must be positive");
  return importPool(node, PoolKind::Lp, node.getInt("p", 2));
});

/// The dimensions after [N, C].
static llvm::SmallVector<int64_t> getSpatialDims(OnnxNode &node) {
  return llvm::to_vector(llvm::seq<int64_t>(2, node.getRank(node.getInput(0))));
}

static OperatorImport globalMaxPool("GlobalMaxPool", [](OnnxNode &node) -> llvm::LogicalResult {
  if (failed(node.requireRank(0, 2)))
    return llvm::failure();
  return node.setResult(node.reduce(node.getInput(0), ReduceKind::Max, getSpatialDims(node)));
});

static OperatorImport globalAveragePool("GlobalAveragePool", [](OnnxNode &node) -> llvm::LogicalResult {
  if (failed(node.requireRank(0, 2)))
    return llvm::failure();
  return node.setResult(node.mean(node.getInput(0), getSpatialDims(node)));
});

static OperatorImport globalLpPool("GlobalLpPool", [](OnnxNode &node) -> llvm::LogicalResult {
  if (failed(node.requireRank(0, 2)))
    return llvm::failure();
  int64_t p = node.getInt("p", 2);
  if (p < 1)
    return node.invalid("'p' must be positive");
  mlir::Value value = node.widen(node.getInput(0));
  mlir::Value powers = node.create<PowOp>(node.create<AbsOp>(value), node.scalarLike(value, p));
  mlir::Value total = node.reduce(powers, ReduceKind::Sum, getSpatialDims(node));
  mlir::Value root = node.create<PowOp>(total, node.scalarLike(value, 1.0 / p));
  return node.setResult(node.cast(root, node.getType(node.getInput(0)).getElementType()));
});

static OperatorImport lrn("LRN", [](OnnxNode &node) -> llvm::LogicalResult {
  if (failed(node.requireRank(0, 2)))
    return llvm::failure();
  if (node.getInt("size", 0) < 1)
    return node.invalid("'size' must be positive");
  auto f32 = [&](double value) { return llvm::APFloat(static_cast<float>(value)); };
  return node.setResult(node.create<LrnOp>(node.getInput(0), node.getInt("size", 1), f32(node.getFloat("alpha", 1e-4f)),
                                           f32(node.getFloat("beta", 0.75f)), f32(node.getFloat("bias", 1.0f))));
});
