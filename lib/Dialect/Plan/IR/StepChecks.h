//===- StepChecks.h - Checks that several kinds of steps share --*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares checks of steps.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_PLAN_IR_STEPCHECKS_H
#define DOVETAIL_LIB_DIALECT_PLAN_IR_STEPCHECKS_H

#include "dovetail/Dialect/Plan/IR/Plan.h"

namespace dovetail::plan {

/// Checks that no step writes a constant.
llvm::LogicalResult verifyWrites(StepOpInterface step);

} // namespace dovetail::plan

#endif // DOVETAIL_LIB_DIALECT_PLAN_IR_STEPCHECKS_H
