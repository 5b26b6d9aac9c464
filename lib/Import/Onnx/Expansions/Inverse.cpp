//===- Inverse.cpp - Inverses of matrices ---------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States Inverse: elimination with the largest pivots, a step for each column.
//
//===----------------------------------------------------------------------===//

#include "../Expansion.h"

#include "llvm/ADT/Sequence.h"

using namespace dovetail;
using namespace dovetail::importer;

/// Each column adds some twenty nodes. Models invert matrices of cameras and poses.
static constexpr int64_t kMostColumns = 16;

namespace {

/// Rows [matrix | identity], which become [identity | inverse].
struct Elimination {
  Expansion &node;
  int64_t extent;
  mlir::Type type;
  std::string rows;

  std::string column(int64_t at) {
    return node.add("Slice", {rows, node.ints({at}), node.ints({at + 1}), node.ints({-1})});
  }
  /// The numbers of rows, as a column.
  std::string numbers() {
    auto all = llvm::to_vector(llvm::seq<int64_t>(0, extent));
    return node.add("Unsqueeze", {node.ints(all), node.ints({1})});
  }
  /// Makes column number `step` that of the identity.
  void eliminate(int64_t step);
};

} // namespace

void Elimination::eliminate(int64_t step) {
  mlir::Type i64 = mlir::IntegerType::get(type.getContext(), 64);
  std::string number = node.scalar(static_cast<double>(step), i64), zero = node.scalar(0, type);
  // Rows that are done are no pivots.
  std::string isDone = node.add("Less", {numbers(), number});
  std::string sizes = node.add("Where", {isDone, node.scalar(-1, type), node.add("Abs", {column(step)})});
  std::string largest = node.add("ArgMax", {sizes}, {{"axis", -2}, {"keepdims", 1}});
  std::string isPivot = node.add("Equal", {numbers(), largest}), isHere = node.add("Equal", {numbers(), number});
  std::string pivot = node.add("ReduceSum", {node.add("Where", {isPivot, rows, zero}), node.ints({-2})});
  std::string here = node.add("Slice", {rows, node.ints({step}), node.ints({step + 1}), node.ints({-2})});
  std::string first = node.add("Slice", {pivot, node.ints({step}), node.ints({step + 1}), node.ints({-1})});
  std::string scaled = node.add("Div", {pivot, first});
  // The row of the pivot and this one change places.
  rows = node.add("Where", {isPivot, here, rows});
  std::string reduced = node.add("Sub", {rows, node.add("Mul", {column(step), scaled})});
  rows = node.add("Where", {isHere, scaled, reduced});
}

static OperatorExpansion inverse("com.microsoft", "Inverse", [](Expansion &node) -> llvm::LogicalResult {
  llvm::ArrayRef<int64_t> shape = node.getShape("X");
  size_t rank = shape.size();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2])
    return node.invalid("the last two extents of 'X' are not equal");
  int64_t extent = shape.back();
  if (extent > kMostColumns)
    return node.unsupported("operand 'X' has matrices of " + llvm::Twine(extent) + " columns; up to " +
                            llvm::Twine(kMostColumns) + " are supported");
  for (size_t dim = 0; dim < rank; ++dim)
    if (node.isBounded("X", dim))
      return node.unsupported("operand 'X' has an extent that only runs know");
  mlir::Type narrow = node.getType("X").getElementType();
  mlir::Type wide = narrow.isF64() ? narrow : mlir::Type(mlir::Float32Type::get(narrow.getContext()));
  llvm::SmallVector<int64_t> batch(shape);
  std::string one = node.scalar(1, wide);
  std::string ones = node.add("Expand", {one, node.ints(batch)});
  std::string identity = node.add(
      "Sub", {node.add("Trilu", {ones}, {{"upper", 1}}), node.add("Trilu", {ones, node.ints({1})}, {{"upper", 1}})});
  Elimination elimination{node, extent, wide, node.add("Concat", {node.cast("X", wide), identity}, {{"axis", -1}})};
  for (int64_t step = 0; step < extent; ++step)
    elimination.eliminate(step);
  std::string result =
      node.add("Slice", {elimination.rows, node.ints({extent}), node.ints({2 * extent}), node.ints({-1})});
  node.setResult("Y", node.cast(result, narrow));
  return llvm::success();
});
