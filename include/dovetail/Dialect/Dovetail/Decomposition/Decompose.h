//===- Decompose.h - Composite operations by simpler ones -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how a composite operation that is not split is replaced by simpler ones.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DECOMPOSITION_DECOMPOSE_H
#define DOVETAIL_DIALECT_DOVETAIL_DECOMPOSITION_DECOMPOSE_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// Replaces a composite operation none of whose composite loops is split, as `DefinitionOpInterface::decompose`
/// does, but by sums in two passes (mean, then squared deviations) instead of `dovetail.moments`: each pass is one loop
/// that fuses with what it reads. Returns the value that replaces the result; fails for an operation that is not
/// composite. The operation itself is not erased.
mlir::FailureOr<mlir::Value> decomposeUnsplit(mlir::Operation *op, mlir::OpBuilder &builder);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DECOMPOSITION_DECOMPOSE_H
