//===- GenericOps.h - Operations whose definition is data -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares GenericOp, the operations of its regions, and generalize, which makes one of another operation.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_GENERICOPS_H
#define DOVETAIL_DIALECT_DOVETAIL_OPS_GENERICOPS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

// The text of operands and attributes of operations in regions.

mlir::ParseResult parseLoopName(mlir::OpAsmParser &parser, mlir::StringAttr &loop);
void printLoopName(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::StringAttr loop);
/// `at [row = %r, column = %c]`, or nothing.
mlir::ParseResult parseCoordinates(mlir::OpAsmParser &parser, mlir::ArrayAttr &loops,
                                   llvm::SmallVectorImpl<mlir::OpAsmParser::UnresolvedOperand> &coordinates);
void printCoordinates(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::ArrayAttr loops,
                      mlir::OperandRange coordinates);

} // namespace dovetail

#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/Ops/GenericOps.h.inc"

namespace dovetail {

/// Makes an operation that carries the definition of `op`, before it. Null, without an error, if `op` is one already,
/// or computes lines itself (`DefinitionOpInterface::emitLine`), which no region says.
GenericOp generalize(mlir::OpBuilder &builder, DefinitionOpInterface op);

/// Makes the operation that `generic` is, before it: a convolution, a product of matrices, a pool, or one that moves
/// elements. Null, without an error, if it is none of these, or written otherwise than `generalize` writes it.
mlir::Operation *specialize(mlir::OpBuilder &builder, GenericOp generic);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_GENERICOPS_H
