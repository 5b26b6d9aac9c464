//===- ElementTypes.h - What elements of tensors are ------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how elements of each type are computed with.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ELEMENTTYPES_H
#define DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ELEMENTTYPES_H

#include "mlir/IR/BuiltinTypes.h"

namespace dovetail {

/// The scalar type in which elements of `elementType` accumulate: f32 for narrower floats, so that long sums keep their
/// digits; otherwise the signless element type.
mlir::Type getAccumulatorType(mlir::Type elementType);

/// True if the elements of `type` are unsigned integers (i1 counts as unsigned).
bool isUnsignedElement(mlir::Type type);

/// True for element types that are stored, moved and converted only: floats of ONNX of at most 8 bits, integers of 2
/// and 4 bits. An element is a byte in memory, whose low bits count, and which is an i8 in scalar code.
bool isNarrow(mlir::Type elementType);

/// The type of all numbers of a narrow type: f32, i8 or ui8.
mlir::Type getWideType(mlir::Type narrow);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_DEFINITION_ELEMENTTYPES_H
