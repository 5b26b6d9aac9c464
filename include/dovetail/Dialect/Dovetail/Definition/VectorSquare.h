//===- VectorSquare.h - Transposing in registers -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares transposeSquare.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_VECTORSQUARE_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_VECTORSQUARE_H

#include "mlir/IR/Builders.h"

namespace dovetail {

/// The columns of a square: `rows` are n vectors of n elements, n a power of two, of at most 256 bits. Emits shuffles:
/// where vectors have two lanes of 128 bits, squares that a lane holds are transposed first, each by interleaving
/// halves of its rows as often as they can be halved.
llvm::SmallVector<mlir::Value> transposeSquare(mlir::OpBuilder &builder, mlir::Location loc,
                                               llvm::SmallVector<mlir::Value> rows);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_VECTORSQUARE_H
