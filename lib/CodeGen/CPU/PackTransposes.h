//===- PackTransposes.h - Tiles that are read across what they write -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares packTransposes.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_CPU_PACKTRANSPOSES_H
#define DOVETAIL_LIB_CODEGEN_CPU_PACKTRANSPOSES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace dovetail {

/// Says that `loop`, with one loop in it, goes through a tile of at most `extent` x `extent` iterations, in any order.
void markTransposed(mlir::scf::ForOp loop, int64_t extent);

/// In all tiles in `function`, has elements that are neighbours along the outer loop, and not along the inner one, read
/// into a buffer before the tile's loops, in squares that are transposed in registers. The loops then read rows of the
/// buffer.
void packTransposes(mlir::Operation *function);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_PACKTRANSPOSES_H
