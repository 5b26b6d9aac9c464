//===- ControlOps.h - Loops and choices of a graph -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the operations of ControlOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_CONTROLOPS_H
#define DOVETAIL_DIALECT_DOVETAIL_OPS_CONTROLOPS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {
/// The loops are split as those of the operation that gives the first operand, so that the results lie alike.
template <typename ConcreteType> class SplitAsFirst : public mlir::OpTrait::TraitBase<ConcreteType, SplitAsFirst> {};
} // namespace dovetail

#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/Ops/ControlOps.h.inc"

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_CONTROLOPS_H
