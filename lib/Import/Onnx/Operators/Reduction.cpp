//===- Reduction.cpp - Import of reductions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reductions over axes. The dialect has sums, products, maxima and minima; the others are made of these.
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

namespace {

/// Axes, and what becomes of them.
struct Reduction {
  mlir::Value input;
  llvm::SmallVector<int64_t> axes;

  /// `inputSince`: the opset from which on axes are an operand.
  static llvm::FailureOr<Reduction> read(OnnxNode &node, int64_t inputSince) {
    mlir::Value input = node.getInput(0);
    int64_t rank = node.getRank(input);
    auto given = node.getIntsAttrOrInput("axes", 1, inputSince);
    if (failed(given))
      return llvm::failure();
    if (!*given || (*given)->empty()) {
      if (node.getInt("noop_with_empty_axes", 0) != 0)
        return Reduction{input, {}};
      return Reduction{input, llvm::to_vector(llvm::seq<int64_t>(0, rank))};
    }
    auto axes = node.normalizeAxes(**given, rank);
    if (failed(axes))
      return llvm::failure();
    return Reduction{input, *axes};
  }

  /// Drops the reduced dimensions, which have extent 1, unless they are to be kept.
  llvm::LogicalResult setResult(OnnxNode &node, mlir::Value value) {
    if (!value || node.getInt("keepdims", 1) != 0)
      return node.setResult(value);
    llvm::SmallVector<int64_t> shape;
    for (auto [dim, extent] : llvm::enumerate(node.getShape(value)))
      if (!llvm::is_contained(axes, static_cast<int64_t>(dim)))
        shape.push_back(extent);
    return node.setResult(node.reshape(value, shape));
  }
};

} // namespace

template <ReduceKind kind> static llvm::LogicalResult importReduce(OnnxNode &node) {
  auto reduction = Reduction::read(node, kind == ReduceKind::Sum ? 13 : 18);
  if (failed(reduction))
    return llvm::failure();
  return reduction->setResult(node, node.reduce(reduction->input, kind, reduction->axes));
}
static OperatorImport reduceSum("ReduceSum", importReduce<ReduceKind::Sum>);
static OperatorImport reduceProd("ReduceProd", importReduce<ReduceKind::Prod>);

/// Maximum and minimum of booleans are their disjunction and conjunction.
template <ReduceKind kind> static llvm::LogicalResult importExtremum(OnnxNode &node) {
  auto reduction = Reduction::read(node, 18);
  if (failed(reduction))
    return llvm::failure();
  mlir::Type type = node.getType(reduction->input).getElementType();
  if (!type.isInteger(1))
    return reduction->setResult(node, node.reduce(reduction->input, kind, reduction->axes));
  mlir::Value bytes = node.cast(reduction->input, node.getBuilder().getIntegerType(8, /*isSigned=*/false));
  return reduction->setResult(node, node.cast(node.reduce(bytes, kind, reduction->axes), type));
}
static OperatorImport reduceMax("ReduceMax", importExtremum<ReduceKind::Max>);
static OperatorImport reduceMin("ReduceMin", importExtremum<ReduceKind::Min>);

static OperatorImport reduceMean("ReduceMean", [](OnnxNode &node) -> llvm::LogicalResult {
  auto reduction = Reduction::read(node, 18);
  if (failed(reduction))
    return llvm::failure();
  return reduction->setResult(node, node.mean(reduction->input, reduction->axes));
});

static OperatorImport reduceL1("ReduceL1", [](OnnxNode &node) -> llvm::LogicalResult {
  auto reduction = Reduction::read(node, 18);
  if (failed(reduction))
    return llvm::failure();
  return reduction->setResult(node,
                              node.reduce(node.create<AbsOp>(reduction->input), ReduceKind::Sum, reduction->axes));
});

static mlir::Value sumSquares(OnnxNode &node, const Reduction &reduction, mlir::Value input) {
  return node.reduce(node.create<MulOp>(input, input), ReduceKind::Sum, reduction.axes);
}

static OperatorImport reduceSumSquare("ReduceSumSquare", [](OnnxNode &node) -> llvm::LogicalResult {
  auto reduction = Reduction::read(node, 18);
  if (failed(reduction))
    return llvm::failure();
  return reduction->setResult(node, sumSquares(node, *reduction, reduction->input));
});

static OperatorImport reduceL2("ReduceL2", [](OnnxNode &node) -> llvm::LogicalResult {
  auto reduction = Reduction::read(node, 18);
  if (failed(reduction))
    return llvm::failure();
  mlir::Type type = node.getType(reduction->input).getElementType();
  if (type.isInteger())
    return node.unsupported("roots of integers are not supported");
  mlir::Value norm = node.create<SqrtOp>(sumSquares(node, *reduction, node.widen(reduction->input)));
  return reduction->setResult(node, node.cast(norm, type));
});

static OperatorImport reduceLogSum("ReduceLogSum", [](OnnxNode &node) -> llvm::LogicalResult {
  auto reduction = Reduction::read(node, 18);
  if (failed(reduction))
    return llvm::failure();
  mlir::Type type = node.getType(reduction->input).getElementType();
  if (type.isInteger())
    return node.unsupported("logarithms of integers are not supported");
  mlir::Value sum = node.reduce(node.widen(reduction->input), ReduceKind::Sum, reduction->axes);
  return reduction->setResult(node, node.cast(node.create<LogOp>(sum), type));
});

static OperatorImport reduceLogSumExp("ReduceLogSumExp", [](OnnxNode &node) -> llvm::LogicalResult {
  auto reduction = Reduction::read(node, 18);
  if (failed(reduction))
    return llvm::failure();
  mlir::Type type = node.getType(reduction->input).getElementType();
  mlir::Value input = node.widen(reduction->input);
  if (type.isInteger())
    return node.unsupported("logarithms of integers are not supported");
  // The maximum is subtracted before exp, so that it does not overflow, unless it is itself infinite.
  mlir::Value max = node.reduce(input, ReduceKind::Max, reduction->axes);
  mlir::Value shift = node.create<SelectOp>(node.create<IsInfOp>(max), node.scalarLike(input, 0), max);
  mlir::Value powers = node.create<ExpOp>(node.create<SubOp>(input, shift));
  mlir::Value total = node.reduce(powers, ReduceKind::Sum, reduction->axes);
  return reduction->setResult(node, node.cast(node.create<AddOp>(node.create<LogOp>(total), shift), type));
});
