//===- Evaluate.h - Folding of constants by definitions ---------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares evaluate, which computes what depends on constants alone.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_EVALUATION_EVALUATE_H
#define DOVETAIL_DIALECT_DOVETAIL_EVALUATION_EVALUATE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Operation.h"

namespace dovetail {

/// Folds an operation whose operands are constants by evaluating its definition: the values of its results. Fails if an
/// operand is not constant, if a result has more than `maxElements` elements, or if the definition does not fold.
mlir::FailureOr<llvm::SmallVector<mlir::DenseElementsAttr>>
evaluate(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> operands, int64_t maxElements = 4096);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_EVALUATION_EVALUATE_H
