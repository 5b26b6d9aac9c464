//===- PlanParts.h - Steps that are parts of one ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what a part of a launch or library call writes, and what an exchange leaves of that.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLANPARTS_H
#define DOVETAIL_DIALECT_PLAN_IR_PLANPARTS_H

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Layout/HaloMessages.h"

namespace dovetail::plan {

/// The boxes of a value that ranks write: those of the iterations of a launch or library call, all that ranks hold
/// where another step writes.
layout::Sharding getWritten(StepOpInterface step, mlir::Value write, const layout::Mesh &mesh);

/// The messages of a move that brings a halo to where ranks have the source, which stays as it is; nothing for others.
/// Costs O(ranks).
std::optional<layout::HaloMessages> getHaloMessages(ExchangeOp exchange, size_t move, const layout::Mesh &mesh);

/// Whether `step` and `exchange` may go on at the same time, as far as what `step` writes is concerned: on no rank does
/// the exchange send, or bring, any of it.
bool leavesWrites(ExchangeOp exchange, StepOpInterface step, const layout::Mesh &mesh);

/// Checks that launches of one kernel in a list which write the same values, one after the other, are parts of one: on
/// each rank they go through each element of what it holds of these values once. Waits may come between them, and
/// exchanges of these values that leave alone what comes behind them. The same of library calls with such an exchange
/// between them.
llvm::LogicalResult verifyParts(mlir::Block &steps, const layout::Mesh &mesh);

} // namespace dovetail::plan

#endif // DOVETAIL_DIALECT_PLAN_IR_PLANPARTS_H
