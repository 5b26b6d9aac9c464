//===- StepParts.h - Steps that are parts of one ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what a part of a kernel or library call writes, and what an exchange leaves of that.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_PROGRAM_STEPPARTS_H
#define DOVETAIL_RUNTIME_PROGRAM_STEPPARTS_H

#include "dovetail/Layout/HaloMessages.h"
#include "dovetail/runtime/Plan.h"

#include "absl/status/status.h"

#include <optional>

namespace dovetail::runtime {

/// What `rank` writes of `tensor`, to which `step` writes: the iterations of a kernel or library call if they lie
/// within what the rank holds, else all that it holds.
layout::Box writtenBox(const Plan &plan, const StepInfo &step, uint32_t tensor, int rank);

/// The messages of a move that brings a halo to where ranks have the source, which stays as it is; nothing for others.
std::optional<layout::HaloMessages> haloMessagesOf(const Plan &plan, const ExchangeCall &call, const MoveInfo &move);

/// Checks that kernel calls of a run which do the same and write the same tensors, one after the other, are parts of
/// one: on each rank they go through each element of what it holds of these tensors once. Waits may come between them,
/// and exchanges of these tensors that leave alone what comes behind them. The same of library calls with such an
/// exchange between them. Everything else of the plan has been checked. Errors: DATA_LOSS.
absl::Status checkParts(const Plan &plan);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_PROGRAM_STEPPARTS_H
