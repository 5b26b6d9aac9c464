//===- PlanControl.h - Steps that are repeated or chosen -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the operations of PlanControlOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANCONTROL_H
#define DOVETAIL_DIALECT_PLAN_IR_PLANCONTROL_H

#include "dovetail/Dialect/Plan/IR/Plan.h"

#define GET_OP_CLASSES
#include "dovetail/Dialect/Plan/IR/PlanControlOps.h.inc"

namespace dovetail::plan {

/// Whether a step stands where steps before it and behind it do not run equally often.
inline bool isBoundary(mlir::Operation *step) { return llvm::isa<RepeatOp, IfOp, EndOp>(step); }

} // namespace dovetail::plan

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANCONTROL_H
