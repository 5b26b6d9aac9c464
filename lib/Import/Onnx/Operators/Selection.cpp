//===- Selection.cpp - Import of what compares positions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that find or mark positions. They compare the positions along an axis, a vector that is generated in place,
// so that they split as the operations they are made of.
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/SelectionOps.h"

using namespace dovetail;
using namespace dovetail::importer;

/// The positions along dimension `dim` of a tensor of `rank` dimensions to which they broadcast.
static mlir::Value positionsAlong(OnnxNode &node, int64_t dim, int64_t rank, int64_t extent) {
  llvm::SmallVector<int64_t> shape(rank, 1);
  shape[dim] = extent;
  return node.reshape(node.count(0, extent), shape);
}

/// Where along `axis`, which is kept with extent 1, the first or last maximum or minimum is. As for NumPy, NaN is
/// beyond both.
static mlir::Value findExtremum(OnnxNode &node, mlir::Value input, int64_t axis, ReduceKind kind, bool last) {
  int64_t extent = node.getShape(input)[axis];
  if (extent == 0) {
    (void)node.invalid("dimension " + llvm::Twine(axis) + " has no elements to choose from");
    return {};
  }
  auto found =
      ArgReduceOp::create(node.getBuilder(), node.getLoc(), input, kind, last, axis, /*restarts=*/mlir::ArrayAttr());
  return node.fold(found, /*number=*/1);
}

template <ReduceKind kind> static llvm::LogicalResult importArgExtremum(OnnxNode &node) {
  mlir::Value input = node.getInput(0);
  auto axis = node.normalizeAxis(node.getInt("axis", 0), node.getRank(input));
  if (failed(axis))
    return llvm::failure();
  bool last = node.getInt("select_last_index", 0) != 0;
  // Of equal elements the first one is found, before all tails; the last one would be in the tail.
  if (!last)
    input = node.fillTails(input, *axis, kind);
  mlir::Value result = input ? findExtremum(node, input, *axis, kind, last) : mlir::Value();
  if (!result || node.getInt("keepdims", 1) != 0)
    return node.setResult(result);
  llvm::SmallVector<int64_t> shape(node.getShape(result));
  shape.erase(shape.begin() + *axis);
  return node.setResult(node.reshape(result, shape));
}
static OperatorImport argMax("ArgMax", importArgExtremum<ReduceKind::Max>);
static OperatorImport argMin("ArgMin", importArgExtremum<ReduceKind::Min>);

static OperatorImport hardmax("Hardmax", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  llvm::SmallVector<int64_t> shape(node.getShape(input));
  auto axis = node.normalizeAxis(node.getInt("axis", node.getOpset() < 13 ? 1 : -1), shape.size());
  if (failed(axis))
    return llvm::failure();
  // Before opset 13, all dimensions from `axis` on count as one.
  if (node.getOpset() < 13) {
    llvm::SmallVector<int64_t> flat(llvm::ArrayRef<int64_t>(shape).take_front(*axis));
    flat.push_back(*countElements(llvm::ArrayRef<int64_t>(shape).drop_front(*axis)));
    input = node.reshape(input, flat);
  }
  mlir::Value largest = findExtremum(node, input, *axis, ReduceKind::Max, /*last=*/false);
  if (!largest)
    return llvm::failure();
  mlir::Value positions = positionsAlong(node, *axis, node.getRank(input), node.getShape(input)[*axis]);
  mlir::Value marks = node.cast(node.create<EqualOp>(positions, largest), node.getType(input).getElementType());
  return node.setResult(node.reshape(marks, shape));
});

/// The number of positions that OneHot makes; floats are allowed.
static llvm::FailureOr<int64_t> readDepth(OnnxNode &node) {
  double depth = 0;
  if (llvm::isa<mlir::FloatType>(node.getType(node.getInput(1)).getElementType())) {
    auto values = node.getConstantFloats(1, "depth");
    if (failed(values))
      return llvm::failure();
    depth = values->size() == 1 ? values->front() : 0;
  } else {
    auto values = node.getConstantInts(1, "depth");
    if (failed(values))
      return llvm::failure();
    depth = values->size() == 1 ? static_cast<double>(values->front()) : 0;
  }
  // Also false for NaN.
  if (!(depth >= 1 && depth <= std::numeric_limits<int32_t>::max()))
    return node.invalid("'depth' is not a single positive number");
  return static_cast<int64_t>(depth);
}

static OperatorImport oneHot("OneHot", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value indices = node.getInput(0), values = node.getInput(2);
  auto depth = readDepth(node);
  if (failed(depth))
    return llvm::failure();
  if (node.getShape(values) != llvm::ArrayRef<int64_t>(2))
    return node.invalid("'values' is not the two values off and on");
  int64_t rank = node.getRank(indices) + 1;
  auto axis = node.normalizeAxis(node.getInt("axis", -1), rank);
  if (failed(axis))
    return llvm::failure();
  bool isUnsigned = node.getType(indices).getElementType().isUnsignedInteger();
  llvm::SmallVector<int64_t> shape(node.getShape(indices));
  shape.insert(shape.begin() + *axis, 1);
  mlir::Value hot = node.reshape(node.cast(indices, node.getBuilder().getI64Type()), shape);
  // Negative indices count from the end. Beyond either end, all are off.
  if (!isUnsigned) {
    mlir::Value isNegative = node.create<LessOp>(hot, node.scalarLike(hot, 0));
    mlir::Value fromEnd = node.create<AddOp>(hot, node.scalarLike(hot, *depth));
    hot = node.create<SelectOp>(isNegative, fromEnd, hot);
  }
  mlir::Value isHot = node.create<EqualOp>(hot, positionsAlong(node, *axis, rank, *depth));
  auto value = [&](int64_t index) { return node.reshape(node.slice(values, index, {1}, {1}), {}); };
  return node.setResult(node.create<SelectOp>(isHot, value(1), value(0)));
});

static OperatorImport eyeLike("EyeLike", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::RankedTensorType input = node.getType(node.getInput(0));
  if (input.getRank() != 2)
    return node.invalid("the operand is not a matrix");
  mlir::Type type = input.getElementType();
  if (int64_t given = node.getInt("dtype", 0))
    type = convertElementType(given, node.getBuilder().getContext());
  if (!type)
    return node.unsupported(OnnxNode::describeUnsupportedElements(node.getInt("dtype", 0)));
  // No matrix has a diagonal beyond these.
  int64_t diagonal = std::clamp<int64_t>(node.getInt("k", 0), std::numeric_limits<int32_t>::min(),
                                         std::numeric_limits<int32_t>::max());
  mlir::Value row = node.reshape(node.count(diagonal, input.getDimSize(0)), {input.getDimSize(0), 1});
  return node.setResult(node.cast(node.create<EqualOp>(row, node.count(0, input.getDimSize(1))), type));
});

static OperatorImport topK("TopK", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  llvm::FailureOr<llvm::SmallVector<int64_t>> k = llvm::SmallVector<int64_t>{node.getInt("k", -1)};
  if (node.getOpset() >= 10)
    k = node.getConstantInts(1, "k");
  auto axis = node.normalizeAxis(node.getInt("axis", -1), node.getRank(input));
  if (failed(k) || failed(axis))
    return llvm::failure();
  int64_t extent = node.getShape(input)[*axis];
  if (k->size() != 1)
    return node.invalid("'k' is not a single number");
  int64_t count = k->front();
  if (count < 0 || count > extent)
    return node.invalid("'k' is " + llvm::Twine(count) + ", but dimension " + llvm::Twine(*axis) + " has " +
                        llvm::Twine(extent) + " elements");
  auto op = TopKOp::create(node.getBuilder(), node.getLoc(), input, count, *axis, node.getInt("largest", 1) != 0);
  if (failed(node.setResult(0, op.getValues())))
    return llvm::failure();
  return node.isResultUsed(1) ? node.setResult(1, op.getIndices()) : llvm::success();
});
