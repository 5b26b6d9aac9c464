//===- ElementBuilder.h - Building the scalar computation of one element -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines ElementBuilder, with which operators define one element of their result.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ELEMENTBUILDER_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ELEMENTBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

#include <optional>
#include <utility>

namespace dovetail {

/// Builds scalar code and folds as it builds, so that constant coordinates and operands give constants.
///
/// Scalars are signless: the element type of a tensor of ui8 is i8 here (`scalarType`), and whoever needs the sign
/// looks at the tensor. Coordinates have type `index`.
class ElementBuilder {
public:
  ElementBuilder(mlir::OpBuilder &builder, mlir::Location loc, bool unrollLoops = false)
      : builder(builder), loc(loc), unrollLoops(unrollLoops) {}

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() { return loc; }

  /// Creates an operation of one result, or folds it.
  template <typename OpT, typename... Args> mlir::Value create(Args &&...args) {
    return builder.createOrFold<OpT>(loc, std::forward<Args>(args)...);
  }

  /// The signless scalar type of tensor elements of `type`.
  static mlir::Type scalarType(mlir::Type type);

  // Constants.
  mlir::Value index(int64_t value);
  /// A constant of a float or signless integer `type`.
  mlir::Value constant(mlir::Type type, double value);
  mlir::Value constantInt(mlir::Type type, int64_t value);
  mlir::Value boolean(bool value);
  /// Zero, one, and the largest and smallest values (infinities for floats) of a tensor element `type` (signedness
  /// counts).
  mlir::Value zero(mlir::Type type);
  mlir::Value lowest(mlir::Type elementType);
  mlir::Value highest(mlir::Type elementType);
  static std::optional<int64_t> getConstantIndex(mlir::Value value);

  // Coordinates (type index, signed).
  mlir::Value addI(mlir::Value a, mlir::Value b);
  mlir::Value addI(mlir::Value a, int64_t b);
  mlir::Value subI(mlir::Value a, mlir::Value b);
  mlir::Value mulI(mlir::Value a, int64_t b);
  /// Quotient rounded toward negative infinity, and the remainder with the divisor's sign; `b` > 0.
  mlir::Value floorDivI(mlir::Value a, int64_t b);
  mlir::Value floorModI(mlir::Value a, int64_t b);
  mlir::Value minI(mlir::Value a, mlir::Value b);
  mlir::Value maxI(mlir::Value a, mlir::Value b);
  mlir::Value clampI(mlir::Value a, int64_t lo, int64_t hi);
  mlir::Value compareI(mlir::arith::CmpIPredicate predicate, mlir::Value a, mlir::Value b);
  /// i1: lo <= a < hi.
  mlir::Value inRange(mlir::Value a, int64_t lo, int64_t hi);
  mlir::Value andB(mlir::Value a, mlir::Value b);
  /// Entry `number` of `table`, which is not empty; the last one beyond it.
  mlir::Value getEntry(llvm::ArrayRef<int64_t> table, mlir::Value number);

  // Scalars: float or (signless) integer operation by the type of the operands.
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value div(mlir::Value a, mlir::Value b, bool isUnsigned = false);
  /// Maximum and minimum; a NaN operand gives NaN.
  mlir::Value max(mlir::Value a, mlir::Value b, bool isUnsigned = false);
  mlir::Value min(mlir::Value a, mlir::Value b, bool isUnsigned = false);
  mlir::Value select(mlir::Value condition, mlir::Value onTrue, mlir::Value onFalse);
  /// Conversion between float types, rounding to nearest even.
  mlir::Value convertFloat(mlir::Value a, mlir::FloatType type);
  /// An integer in `type`, which has as many bits or more.
  mlir::Value extendInt(mlir::Value a, mlir::Type type, bool isUnsigned);
  /// Float comparisons are ordered, except `ne`.
  mlir::Value compare(mlir::arith::CmpFPredicate floatPredicate, mlir::arith::CmpIPredicate intPredicate, mlir::Value a,
                      mlir::Value b);

  /// A loop over [lo, hi) of type `index` that carries `init`: scf.for, or its unrolled body when the range is constant
  /// and has at most `maxUnroll` iterations or this builder evaluates (see constructor). `body` returns the values to
  /// carry on.
  llvm::SmallVector<mlir::Value>
  forLoop(mlir::Value lo, mlir::Value hi, mlir::ValueRange init,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value iv, mlir::ValueRange carried)> body,
          int64_t maxUnroll = 0);

  /// The same without values to carry.
  void forEach(mlir::Value lo, mlir::Value hi, llvm::function_ref<void(mlir::Value iv)> body, int64_t maxUnroll = 0);

  /// Carries `init` through `body` while `condition` holds: scf.while or, if this builder evaluates, its iterations.
  llvm::SmallVector<mlir::Value>
  whileLoop(mlir::ValueRange init, llvm::function_ref<mlir::Value(mlir::ValueRange carried)> condition,
            llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange carried)> body);

  /// A scalar of `type` from one of two bodies, of which only the chosen one runs (scf.if) and, when the condition is
  /// constant, only that one is built.
  mlir::Value ifElse(mlir::Value condition, mlir::Type type, llvm::function_ref<mlir::Value()> onTrue,
                     llvm::function_ref<mlir::Value()> onFalse);
  /// As above, for several values.
  llvm::SmallVector<mlir::Value> ifElse(mlir::Value condition, mlir::TypeRange types,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> onTrue,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> onFalse);
  /// Runs `body` where the condition holds.
  void runIf(mlir::Value condition, llvm::function_ref<void()> body);
  /// The value of `thenBody` where `condition` holds, and `otherwise` elsewhere. For reads: a rank need not hold any of
  /// an operand whose needed box is empty, so a read that padding may replace must not run when it is replaced.
  mlir::Value guarded(mlir::Value condition, mlir::Type type, llvm::function_ref<mlir::Value()> thenBody,
                      mlir::Value otherwise) {
    return ifElse(condition, type, thenBody, [&] { return otherwise; });
  }

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  bool unrollLoops;
};

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ELEMENTBUILDER_H
