//===- NarrowOps.h - Conversions of elements that are only stored -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the operations of NarrowOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_NARROWOPS_H
#define DOVETAIL_DIALECT_DOVETAIL_OPS_NARROWOPS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h.inc"

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_NARROWOPS_H
