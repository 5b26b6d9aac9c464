//===- Containment.h - Values in their buffers -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the check that a value lies within its buffer.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_PLAN_IR_CONTAINMENT_H
#define DOVETAIL_LIB_DIALECT_PLAN_IR_CONTAINMENT_H

#include "dovetail/Layout/Mesh.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace dovetail::plan {

/// Checks that what each rank holds of `value` is contained in what it holds of `buffer`, of the same shape. Without
/// a sharding it holds all. Otherwise an error at `op`.
llvm::LogicalResult verifyContained(mlir::Operation *op, const layout::Mesh &mesh, mlir::RankedTensorType buffer,
                                    mlir::RankedTensorType value);

} // namespace dovetail::plan

#endif // DOVETAIL_LIB_DIALECT_PLAN_IR_CONTAINMENT_H
