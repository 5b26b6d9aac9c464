//===- Bounded.cpp - Import of what has as many elements as data say -----===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators that select elements by what these are. A mask says which, `dovetail.compact` where they are, and its sum
// how many there are: the count that bounds a dimension of the result. Where the mask is constant, so is the extent.
//
//===----------------------------------------------------------------------===//

#include "../../Build/Coordinates.h"
#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Dovetail/Ops/ScanOps.h"
#include "dovetail/Dialect/Dovetail/Ops/SelectionOps.h"

using namespace dovetail;
using namespace dovetail::importer;

namespace {
/// The positions of what is marked in a vector, and how many of them there are; null if that is known, as the extent.
struct Marked {
  mlir::Value positions, count;
};
} // namespace

/// Which elements of a constant are not zero; none if it is none, or its elements are not known.
static std::optional<llvm::SmallVector<bool>> readMarks(mlir::ElementsAttr constant) {
  auto convert = [](const auto &values) { return llvm::map_to_vector(values, [](auto value) { return value != 0; }); };
  if (!constant || isDataMissing(constant))
    return std::nullopt;
  if (auto values = readInts(constant))
    return llvm::SmallVector<bool>(convert(*values));
  if (auto values = readFloats(constant))
    return llvm::SmallVector<bool>(convert(*values));
  return std::nullopt;
}

static Marked findPositions(OnnxNode &node, llvm::ArrayRef<bool> marks) {
  llvm::SmallVector<int64_t> positions;
  for (auto [position, isMarked] : llvm::enumerate(marks))
    if (isMarked)
      positions.push_back(position);
  return {node.constantInts(positions), {}};
}

/// Of `mask`, a vector of booleans.
static Marked compact(OnnxNode &node, mlir::Value mask) {
  if (!mask)
    return {};
  if (node.getType(mask).getNumElements() == 0)
    return {node.constantInts({}), {}};
  if (auto marks = readMarks(node.getConstant(mask)))
    return findPositions(node, *marks);
  // Of one mask there are as many each time.
  mlir::Value count = node.shareCount(mask, {}, [&] {
    mlir::Value ones = node.cast(mask, node.getBuilder().getI64Type());
    return node.reshape(node.reduce(ones, ReduceKind::Sum, 0), {});
  });
  return {node.create<CompactOp>(mask), count};
}

/// The bounds of a value of `rank` dimensions of which `dim` has as many elements as are marked.
static Counts boundsOf(const Marked &marked, int64_t rank, int64_t dim) {
  Counts counts(rank);
  counts[dim] = marked.count;
  return counts;
}

//===----------------------------------------------------------------------===//
// NonZero and Compress
//===----------------------------------------------------------------------===//

static OperatorImport nonZero("NonZero", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  llvm::SmallVector<int64_t> shape(node.getShape(input));
  int64_t rank = shape.size(), size = node.getType(input).getNumElements();
  Marked marked;
  if (auto marks = readMarks(node.getConstant(input)))
    marked = findPositions(node, *marks);
  else
    marked = compact(node, node.reshape(node.cast(node.clearTails(input), node.getBuilder().getI1Type()), {size}));
  if (!marked.positions)
    return llvm::failure();
  int64_t found = node.getShape(marked.positions).front();
  // A scalar has no coordinates.
  auto type = mlir::RankedTensorType::get({rank, found}, node.getBuilder().getI64Type());
  if (type.getNumElements() == 0)
    return node.setResult(node.bound(node.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef<int64_t>())),
                                     boundsOf(marked, 2, 1)));
  if (!marked.count) {
    auto positions = readInts(node.getConstant(marked.positions));
    llvm::SmallVector<int64_t> coordinates;
    for (int64_t dim = 0, stride = size; dim < rank; ++dim) {
      stride /= shape[dim];
      for (int64_t position : *positions)
        coordinates.push_back(position / stride % shape[dim]);
    }
    return node.setResult(node.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef(coordinates))));
  }
  llvm::SmallVector<mlir::Value> rows;
  for (int64_t dim = 0, stride = size; dim < rank; ++dim) {
    stride /= shape[dim];
    rows.push_back(node.reshape(getCoordinate(node, marked.positions, stride, shape[dim]), {1, found}));
  }
  mlir::Value result = rank == 1 ? rows.front() : node.create<ConcatOp>(mlir::ValueRange(rows), /*axis=*/int64_t(0));
  return node.setResult(node.bound(result, boundsOf(marked, 2, 1)));
});

static OperatorImport compress("Compress", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value data = node.getInput(0), condition = node.getInput(1);
  if (node.getRank(condition) != 1)
    return node.invalid("'condition' is not a vector");
  llvm::FailureOr<int64_t> axis = 0;
  if (node.hasAttr("axis"))
    axis = node.normalizeAxis(node.getInt("axis", 0), node.getRank(data));
  else if (node.getRank(data) != 1 && !node.getCounts(data).empty())
    return node.unsupported(node.describeBounded("'input'", data, "its elements are numbered through all dimensions"));
  else
    data = node.reshape(data, {node.getType(data).getNumElements()});
  if (failed(axis) || !data)
    return llvm::failure();
  Counts counts(node.getCounts(data));
  counts.resize(node.getRank(data));
  llvm::ArrayRef<mlir::Value> own = node.getCounts(condition);
  if (counts[*axis] && (own.empty() || own[0] != counts[*axis]))
    return node.unsupported(
        node.describeBounded("'input'", data, "'condition' has another one, which may reach beyond it"));
  condition = node.clearTails(condition);
  int64_t length = std::min(node.getShape(condition)[0], node.getShape(data)[*axis]);
  Marked marked = compact(node, node.slice(condition, 0, length, 1));
  counts[*axis] = marked.count;
  return node.setResult(node.bound(node.create<GatherOp>(data, marked.positions, *axis), counts));
});

//===----------------------------------------------------------------------===//
// NonMaxSuppression
//===----------------------------------------------------------------------===//

static OperatorImport nonMaxSuppression("NonMaxSuppression", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value boxes = node.getInput(0), scores = node.getInput(1);
  if (node.getRank(boxes) != 3 || node.getRank(scores) != 3)
    return node.invalid("'boxes' and 'scores' must have three dimensions");
  int64_t batches = node.getShape(scores)[0], classes = node.getShape(scores)[1], size = node.getShape(scores)[2];
  mlir::Type i64 = node.getBuilder().getI64Type();
  auto scalar = [&](unsigned index, mlir::Type type) -> mlir::Value {
    mlir::Value given = node.getInput(index);
    if (given && node.getType(given).getNumElements() != 1) {
      (void)node.invalid("input " + llvm::Twine(index) + " is not a single number");
      return {};
    }
    if (given)
      return node.cast(node.reshape(given, {}), type);
    return node.splat(mlir::RankedTensorType::get({}, type), 0);
  };
  mlir::Type type = node.getType(boxes).getElementType();
  mlir::Value limit = scalar(2, i64), overlap = scalar(3, type), threshold = scalar(4, type);
  if (!limit || !overlap || !threshold)
    return llvm::failure();
  int64_t most = size;
  if (auto known = node.getConstant(limit); known && !isDataMissing(known))
    most = std::clamp<int64_t>(readInts(known)->front(), 0, size);
  int64_t number = batches * classes * most;
  if (number == 0)
    return node.setResult(node.constant(
        mlir::DenseElementsAttr::get(mlir::RankedTensorType::get({0, 3}, i64), llvm::ArrayRef<int64_t>())));
  mlir::Value selected = node.create<SelectBoxesOp>(boxes, scores, limit, overlap,
                                                    OptionalOperand{node.hasInput(4) ? threshold : mlir::Value()},
                                                    node.getInt("center_point_box", 0) != 0);
  selected = node.slice(selected, {0, 0, 0}, {batches, classes, most}, {1, 1, 1});
  selected = node.reshape(selected, number);
  if (!selected)
    return llvm::failure();
  Marked marked = compact(node, node.create<GreaterOrEqualOp>(selected, node.scalarLike(selected, 0)));
  if (!marked.positions)
    return llvm::failure();
  int64_t found = node.getShape(marked.positions)[0];
  llvm::SmallVector<mlir::Value> columns = {getCoordinate(node, marked.positions, classes * most, batches),
                                            getCoordinate(node, marked.positions, most, classes),
                                            node.create<GatherOp>(selected, marked.positions, /*axis=*/int64_t(0))};
  for (mlir::Value &column : columns)
    column = node.reshape(column, {found, 1});
  return node.setResult(
      node.bound(node.create<ConcatOp>(mlir::ValueRange(columns), /*axis=*/int64_t(1)), boundsOf(marked, 2, 0)));
});

//===----------------------------------------------------------------------===//
// Unique
//===----------------------------------------------------------------------===//

namespace {
/// Rows of a matrix, sorted, so that equal ones follow each other: a group. All are vectors of an element for each row,
/// in the order of the rows or in sorted order, or for each group.
class Groups {
public:
  Groups(OnnxNode &node, mlir::Value rows) : node(node), size(node.getShape(rows)[0]) {
    order = node.create<SortRowsOp>(rows);
    isFirst = findFirst(rows);
    firsts = compact(node, isFirst);
    numbers = count(isFirst);
  }

  /// For each row whether it is the first one of its group.
  mlir::Value markFirst() { return node.create<GreaterOp>(toRows(toInts(isFirst)), zero()); }
  /// The first row of each group.
  mlir::Value getFirst() { return gather(order, firsts.positions); }
  /// For each row its group, and for that the first row.
  mlir::Value getNumber() { return toRows(numbers); }
  mlir::Value getFirstOfRow() { return toRows(gather(getFirst(), numbers)); }
  /// The number of rows of each group.
  mlir::Value getSizes();
  const Marked &getMarked() const { return firsts; }

  /// How many are marked up to each position, less one.
  mlir::Value count(mlir::Value marks) {
    mlir::Value sum = node.create<ScanOp>(toInts(marks), OptionalOperand(), ReduceKind::Sum, /*axis=*/int64_t(0),
                                          /*exclusive=*/false, /*reverse=*/false, llvm::ArrayRef<int64_t>());
    return node.create<SubOp>(sum, node.scalarLike(sum, 1));
  }
  mlir::Value gather(mlir::Value values, mlir::Value positions) {
    return node.create<GatherOp>(values, positions, /*axis=*/int64_t(0));
  }

private:
  mlir::Value toInts(mlir::Value marks) { return node.cast(marks, node.getBuilder().getI64Type()); }
  mlir::Value zero() { return node.splat(mlir::RankedTensorType::get({}, node.getBuilder().getI64Type()), 0); }
  /// In sorted order whether a row is the first one of its group.
  mlir::Value findFirst(mlir::Value rows);
  /// From sorted order to that of the rows.
  mlir::Value toRows(mlir::Value values) {
    mlir::Value none = node.splat(mlir::RankedTensorType::get(size, node.getBuilder().getI64Type()), 0);
    return node.create<ScatterElementsOp>(none, order, values, /*axis=*/int64_t(0), ReduceKindAttr());
  }

  OnnxNode &node;
  int64_t size;
  mlir::Value order, isFirst, numbers;
  Marked firsts;
};
} // namespace

mlir::Value Groups::findFirst(mlir::Value rows) {
  mlir::Value yes = node.splat(mlir::RankedTensorType::get(1, node.getBuilder().getI1Type()), 1);
  if (size == 1)
    return yes;
  int64_t columns = node.getShape(rows)[1];
  mlir::Value sorted = gather(rows, order);
  mlir::Value before = node.slice(sorted, {0, 0}, {size - 1, columns}, {1, 1});
  mlir::Value after = node.slice(sorted, {1, 0}, {size - 1, columns}, {1, 1});
  mlir::Value isEqual = node.create<EqualOp>(before, after);
  // What is no number is equal to its like.
  if (sorted && llvm::isa<mlir::FloatType>(node.getType(sorted).getElementType())) {
    mlir::Value isNumber = node.create<OrOp>(node.create<EqualOp>(before, before), node.create<EqualOp>(after, after));
    isEqual = node.create<OrOp>(isEqual, node.create<NotOp>(isNumber));
  }
  mlir::Value equal = node.reduce(toInts(isEqual), ReduceKind::Min, 1);
  mlir::Value differs = node.create<EqualOp>(node.reshape(equal, size - 1), zero());
  if (!differs)
    return {};
  return node.create<ConcatOp>(mlir::ValueRange{yes, differs}, /*axis=*/int64_t(0));
}

mlir::Value Groups::getSizes() {
  if (!firsts.positions)
    return {};
  int64_t groups = node.getShape(firsts.positions)[0];
  mlir::Value end = node.constantInts(size), next = node.slice(firsts.positions, 1, groups - 1, 1);
  next = groups == 1 ? end : node.create<ConcatOp>(mlir::ValueRange{next, end}, /*axis=*/int64_t(0));
  if (firsts.count) {
    mlir::Value last = node.create<SubOp>(firsts.count, node.scalarLike(firsts.count, 1));
    next = node.create<SelectOp>(node.create<EqualOp>(node.count(0, groups), last), end, next);
  }
  return node.create<SubOp>(next, firsts.positions);
}

static OperatorImport unique("Unique", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  llvm::FailureOr<int64_t> axis = 0;
  if (node.hasAttr("axis"))
    axis = node.normalizeAxis(node.getInt("axis", 0), node.getRank(input));
  else
    input = node.reshape(input, {node.getType(input).getNumElements()});
  if (failed(axis) || !input)
    return llvm::failure();
  llvm::SmallVector<int64_t> shape(node.getShape(input));
  int64_t size = shape[*axis], rank = shape.size();
  if (size == 0) {
    for (unsigned index : {1, 2, 3})
      if (failed(node.setResult(index, node.constantInts({}))))
        return llvm::failure();
    return node.setResult(input);
  }
  llvm::SmallVector<int64_t> permutation = {*axis};
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != *axis)
      permutation.push_back(dim);
  int64_t columns = node.getType(input).getNumElements() / size;
  // Rows without elements are all equal.
  mlir::Value rows = node.reshape(node.transpose(input, permutation), {size, columns});
  if (columns == 0)
    rows = node.splat(mlir::RankedTensorType::get({size, 1}, node.getBuilder().getI64Type()), 0);
  if (!rows)
    return llvm::failure();

  Groups groups(node, rows);
  bool isSorted = node.getInt("sorted", 1) != 0;
  mlir::Value isFirst = isSorted ? mlir::Value() : groups.markFirst();
  Marked marked = isSorted ? groups.getMarked() : compact(node, isFirst);
  mlir::Value firsts = isSorted ? groups.getFirst() : marked.positions;
  auto setResult = [&](unsigned index, mlir::Value value) {
    return node.setResult(index, node.bound(value, boundsOf(marked, 1, 0)));
  };
  if (node.isResultUsed(0) &&
      failed(node.setResult(0, node.bound(node.create<GatherOp>(input, firsts, *axis), boundsOf(marked, rank, *axis)))))
    return llvm::failure();
  if (node.isResultUsed(1) && failed(setResult(1, firsts)))
    return llvm::failure();
  if (node.isResultUsed(2)) {
    mlir::Value inverse = isSorted ? groups.getNumber() : groups.gather(groups.count(isFirst), groups.getFirstOfRow());
    if (failed(node.setResult(2, inverse)))
      return llvm::failure();
  }
  if (node.isResultUsed(3)) {
    mlir::Value sizes = groups.getSizes();
    if (!isSorted)
      sizes = groups.gather(sizes, groups.gather(groups.getNumber(), firsts));
    return setResult(3, sizes);
  }
  return llvm::success();
});
