//===- ScalarSupport.h - Scalar code that several operations share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what the scalar definitions of elementwise operations are built from.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_DEFINITION_SCALARSUPPORT_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_DEFINITION_SCALARSUPPORT_H

#include "dovetail/Dialect/Dovetail/Definition/ElementBuilder.h"
#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"

namespace dovetail::scalar {

/// The float type in which functions of `type` are computed: f32 for narrower types, whose own precision would not
/// last through several operations; otherwise the type itself.
mlir::FloatType wideType(mlir::Type type);

/// Applies `function` in the wide type of the float `x` and rounds the result back, once.
mlir::Value inWide(ElementBuilder &builder, mlir::Value x, llvm::function_ref<mlir::Value(mlir::Value)> function);

/// Ordered comparisons of floats; comparisons of integers by their signedness.
mlir::Value less(ElementBuilder &builder, mlir::Value a, mlir::Value b, bool isUnsigned = false);
inline mlir::Value greater(ElementBuilder &builder, mlir::Value a, mlir::Value b, bool isUnsigned = false) {
  return less(builder, b, a, isUnsigned);
}

/// `x` limited to [lo, hi]; NaN stays NaN.
mlir::Value clamp(ElementBuilder &builder, mlir::Value x, double lo, double hi);
/// `x` where it is above zero or NaN, zero elsewhere.
mlir::Value relu(ElementBuilder &builder, mlir::Value x, bool isUnsigned = false);
/// 1 / (1 + exp(-x)).
mlir::Value sigmoid(ElementBuilder &builder, mlir::Value x);

/// The scalar `x` of tensor element type `from` as one of element type `to`, as the `cast` operation defines it.
mlir::Value cast(ElementBuilder &builder, mlir::Value x, mlir::Type from, mlir::Type to);

} // namespace dovetail::scalar

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_DEFINITION_SCALARSUPPORT_H
