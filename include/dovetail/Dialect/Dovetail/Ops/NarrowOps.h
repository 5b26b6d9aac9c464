//===- NarrowOps.h - Conversions of elements that are only stored -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the operations of NarrowOps.td, and which types they are for.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_NARROWOPS_H
#define DOVETAIL_DIALECT_DOVETAIL_OPS_NARROWOPS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// True for element types that are stored, moved and converted only: floats of ONNX of at most 8 bits, integers of 2
/// and 4 bits. An element is a byte in memory, whose low bits count, and which is an i8 in scalar code.
bool isNarrow(mlir::Type elementType);

/// The type of all numbers of a narrow type: f32, i8 or ui8.
mlir::Type getWideType(mlir::Type narrow);

} // namespace dovetail

#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h.inc"

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_NARROWOPS_H
