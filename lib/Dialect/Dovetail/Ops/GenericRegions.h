//===- GenericRegions.h - The code in regions of generics -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares emitRegion, which emits the code of a region, and what the files of GenericOp share.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_GENERICREGIONS_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_GENERICREGIONS_H

#include "dovetail/Dialect/Dovetail/Ops/GenericOps.h"

namespace dovetail {

/// Emits the code of `region` through `elements`, which folds, and returns what it gives. `body` answers what the code
/// asks of reads and loops; null where it asks nothing.
llvm::SmallVector<mlir::Value> emitRegion(ElementBuilder &elements, BodyBuilder *body, GenericOp op,
                                          mlir::Region &region, mlir::ValueRange arguments);

/// Whether the coordinate of loop `loop` is known where `region` of `op` runs.
bool isKnownIn(GenericOp op, mlir::Region *region, unsigned loop);
/// The same for the body of an operation with this definition, before it is a generic.
bool isKnownInBody(const Definition &definition, unsigned loop);

/// The definition with what follows of it from the other parts of a generic: whether it folds terms, whether these are
/// products, and its lines.
Definition withFlags(Definition definition, std::optional<ReduceKind> kind, mlir::TypeRange operands,
                     mlir::TypeRange results, mlir::Region &combine, mlir::Region &finish, mlir::Region &body);

/// The number of unknown values of an access.
unsigned countUnknowns(const Access &access);

/// The element that `combine KIND` makes of one that is there and one that is written.
mlir::Value emitUpdate(ElementBuilder &builder, mlir::Type elementType, ReduceKind kind, mlir::Value old,
                       mlir::Value update);

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_GENERICREGIONS_H
