//===- GraphMatch.h - What patterns on the graph share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares helpers with which the patterns of simplify look at producers and constants, and the function that applies
// patterns.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_TRANSFORMS_GRAPHMATCH_H
#define DOVETAIL_LIB_TRANSFORMS_GRAPHMATCH_H

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "mlir/IR/PatternMatch.h"

#include <optional>

namespace dovetail {

/// Fails, with an error, if a type below `root` carries a sharding: a user may have asked for it on a value that a pass
/// would remove.
llvm::LogicalResult requireUnsharded(mlir::Operation *root);

/// Applies `patterns` below `root` until nothing changes. Constants stay where they are, with their locations. Fails
/// where `requireUnsharded` does.
llvm::LogicalResult applyToGraph(mlir::Operation *root, mlir::RewritePatternSet patterns);

inline mlir::RankedTensorType typeOf(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return typeOf(value).getShape(); }

/// The shape of `value` with ones in front, in `rank` dimensions: as it is broadcast.
inline llvm::SmallVector<int64_t> alignedShape(mlir::Value value, size_t rank) {
  llvm::SmallVector<int64_t> shape(rank - typeOf(value).getRank(), 1);
  llvm::append_range(shape, shapeOf(value));
  return shape;
}

/// The operation of type `OpT` that defines `value`, if it has no use outside of `user`; null otherwise.
template <typename OpT> OpT getSoleProducer(mlir::Value value, mlir::Operation *user) {
  auto isUser = [&](mlir::Operation *other) { return other == user; };
  return value && llvm::all_of(value.getUsers(), isUser) ? value.getDefiningOp<OpT>() : OpT();
}
/// The same where `value` has one use.
template <typename OpT> OpT getSoleProducer(mlir::Value value) {
  return value.hasOneUse() ? value.getDefiningOp<OpT>() : OpT();
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

/// True if `value` depends on constants alone: what computes it runs once, before everything else.
bool isConstantOnly(mlir::Value value);

/// The elements of a constant of floats; none for other values.
std::optional<llvm::SmallVector<double>> getFloats(mlir::Value value);

/// The number that all elements of a constant are equal to; none for other values, and if there are no elements.
std::optional<double> getSplat(mlir::Value value);

/// True if `value` is `expected` up to the rounding of a literal in the float `type`.
bool isClose(double value, double expected, mlir::Type type);
/// True if all elements of `value` are close to `expected`.
bool isSplatOf(mlir::Value value, double expected);

/// A constant of floats of `type` all of which are `number`.
mlir::Value createSplat(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type, double number);

/// True if `value` is a constant of f32 or f64 whose elements are zero or of moderate size, so that a product with them
/// rounds, but neither overflows nor loses digits where a product in another order would not.
bool isModerateConstant(mlir::Value value);

/// `value` in another shape; itself if it has that shape.
mlir::Value reshapeTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);

/// The operand of a commutative or other operation with two operands that is not `value`; null if neither is.
template <typename OpT> mlir::Value getOther(OpT op, mlir::Value value) {
  return op.getLhs() == value ? op.getRhs() : op.getRhs() == value ? op.getLhs() : mlir::Value();
}

/// Every `step`-th of `value` along `dim`, `size` from `first` on; itself if that is all of it.
mlir::Value sliceAlong(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, int64_t dim, int64_t first,
                       int64_t size, int64_t step = 1);

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

/// A concatenation of `source` with its last `low` elements before it, and `high` elements of it, repeated, behind it.
struct Wrap {
  mlir::Value source;
  int64_t low = 0, high = 0;
};
/// Writes a concatenation so; nothing for others.
std::optional<Wrap> findWrap(ConcatOp op);

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// `constant * factors[0] * factors[1] * ...`, in whatever order the factors are written.
struct Product {
  double constant = 1;
  llvm::SmallVector<mlir::Value> factors;
};

/// Writes a value of floats as a product. Looks through `mul`, `div` by a constant, squares and cubes; operations below
/// the first whose result has other uses count as factors.
Product getProduct(mlir::Value value);

/// If the product is `expected` times one `value` or more (`count`), true.
bool isProductOf(const Product &product, double expected, mlir::Value value, size_t count = 1);

/// A sum of two: `operand + number`, in any order.
struct ShiftedValue {
  mlir::Value operand;
  double number;
};
/// Writes a value as a sum with a constant; the sum has one use.
std::optional<ShiftedValue> getShifted(mlir::Value value);

} // namespace dovetail

#endif // DOVETAIL_LIB_TRANSFORMS_GRAPHMATCH_H
