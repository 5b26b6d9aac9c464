//===- AttentionCall.h - What calls of attention read -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what follows from the accesses of `plan.attention`.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_ATTENTIONCALL_H
#define DOVETAIL_DIALECT_PLAN_IR_ATTENTIONCALL_H

#include "dovetail/Dialect/Plan/IR/Plan.h"

namespace dovetail::plan {

/// The columns of values of a head of the result; `call` has the form of attention.
int64_t getHeadColumns(AttentionOp call);

/// How many columns of values there are where the loop over columns has so many iterations.
int64_t getValueColumns(AttentionOp call, int64_t columns);

/// Checks that `call`, which has the form of attention, reads what there is of its operands, and writes over none that
/// it still reads.
llvm::LogicalResult verifyReads(AttentionOp call);

} // namespace dovetail::plan

#endif // DOVETAIL_DIALECT_PLAN_IR_ATTENTIONCALL_H
