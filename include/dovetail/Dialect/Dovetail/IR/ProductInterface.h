//===- ProductInterface.h - Sums of products -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares ProductOpInterface, by which operations say where the factors of their terms lie.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_PRODUCTINTERFACE_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_PRODUCTINTERFACE_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// Where the factor of a product lies.
struct Factor {
  llvm::SmallVector<mlir::Value> index; ///< In the operand.
  /// i1: the operand has it. Products without do not count: they are not zero times what the other operand has, which
  /// may be infinite. Null: it surely has.
  mlir::Value isInside;
};

} // namespace dovetail

#include "dovetail/Dialect/Dovetail/IR/ProductInterface.h.inc"

namespace dovetail {

/// Let operations of the dialect have the interface.
void attachMatMulProducts(mlir::MLIRContext *context);
void attachConvProducts(mlir::MLIRContext *context);
void attachConvTransposeProducts(mlir::MLIRContext *context);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_PRODUCTINTERFACE_H
