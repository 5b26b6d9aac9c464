//===- IntegerFactors.h - Factors that are integers of 8 bits -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how products find factors that are extended from integers of 8 bits, less zero points.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_TRANSFORMS_INTEGERFACTORS_H
#define DOVETAIL_LIB_TRANSFORMS_INTEGERFACTORS_H

#include "GraphMatch.h"

namespace dovetail {

/// Transposes, slices and reshapes between a product and what it is of, the one next to the product first.
using Moves = llvm::SmallVector<mlir::Operation *>;

/// The value that moves make `value` of; adds these to `moves`.
mlir::Value skipMoves(mlir::Value value, Moves &moves);
mlir::Value skipMoves(mlir::Value value);

/// A tensor, or a value that is broadcast to it, after moves of the tensor. Only `materialize` creates operations, so
/// that a pattern knows shapes before it is certain that there is a product.
class MovedValue {
public:
  /// `source`, which is broadcast to the operand of the last one of `moves`. None if a reshape leaves nothing that is
  /// broadcast to its result: it merges dimensions along which `source` varies with others.
  static std::optional<MovedValue> create(mlir::Value source, llvm::ArrayRef<mlir::Operation *> moves);

  mlir::Value getSource() const { return source; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  mlir::Type getElementType() const { return typeOf(source).getElementType(); }
  int64_t getRank() const { return static_cast<int64_t>(shape.size()); }
  int64_t getNumElements() const { return mlir::ShapedType::getNumElements(shape); }
  /// Applies the moves to the source.
  mlir::Value materialize(mlir::OpBuilder &builder, mlir::Location loc) const;

private:
  mlir::Value source;
  Moves moves; ///< The one next to the source first.
  llvm::SmallVector<int64_t> shape;
};

/// `integers - zero`, in i32.
struct FactorValues {
  mlir::Value integers; ///< Of 8 bits.
  mlir::Value zero;     ///< Of i32, and broadcasts to `integers`; null if it is 0.
};

/// The same after moves that are not applied yet. The integers may be booleans, which are integers of 8 bits then.
struct Factor {
  MovedValue integers;
  std::optional<MovedValue> zero; ///< None if it is 0.
  std::optional<double> number;   ///< The number that all zero points are, if it is known.

  bool isUnsigned() const { return isUnsignedElement(integers.getElementType()); }
  /// Applies the moves.
  FactorValues materialize(mlir::OpBuilder &builder, mlir::Location loc) const;
};

/// Whether factors are extended from elements of `type`: integers of 8 bits, or booleans.
bool isNarrowInteger(mlir::Type type);

/// The factor that `moves` make of `value`; none if it is no such, or not of i32, in which alone nothing is lost. Moves
/// before or behind the subtraction of zero points become moves of the integers, those behind it of zero points, too.
std::optional<Factor> findFactor(mlir::Value value, Moves moves = {});

/// Whether the zero points of `factor`, which has some, are known to be elements of the type of its integers.
bool hasZeroElements(const Factor &factor);

/// The zero point of `factor`, which has some, before a cast extends it from the type of its integers. Null if there is
/// no such cast, or more than one element.
mlir::Value getNarrowZero(const Factor &factor);

/// Makes matrices or more of i32 below `root`, whose elements differ by less than 256, extensions of integers of 8
/// bits, less a zero point, as they were before an import computed them. Where nothing comes of it, they are computed
/// again.
void extendConstants(mlir::Operation *root);

} // namespace dovetail

#endif // DOVETAIL_LIB_TRANSFORMS_INTEGERFACTORS_H
