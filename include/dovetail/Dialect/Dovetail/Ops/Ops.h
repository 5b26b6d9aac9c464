//===- Ops.h - Operations that many parts name ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the families of operations that many parts name. Others have headers of their own.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_OPS_H
#define DOVETAIL_DIALECT_DOVETAIL_OPS_OPS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/Ops/ContractionOps.h.inc"
#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/Ops/ElementwiseOps.h.inc"
#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/Ops/NormalizationOps.h.inc"
#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/Ops/ShapeOps.h.inc"

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_OPS_H
