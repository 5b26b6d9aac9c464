//===- IndexingOps.h - Operations that move elements by position -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the operations of IndexingOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_INDEXINGOPS_H
#define DOVETAIL_DIALECT_DOVETAIL_OPS_INDEXINGOPS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/Ops/IndexingOps.h.inc"

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_INDEXINGOPS_H
