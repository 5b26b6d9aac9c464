//===- WaitCheck.h - Whether steps wait for exchanges -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the steps of a session, and how it checks that its plan waits for exchanges, which may still be under way
// when later steps run.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_WAITCHECK_H
#define DOVETAIL_RUNTIME_SESSION_WAITCHECK_H

#include "Arena.h"
#include "StepExecutor.h"

namespace dovetail::runtime {

/// One entry of a session's step list.
struct PreparedStep {
  explicit PreparedStep(const StepInfo &info) : info(&info) {}

  const StepInfo *info;
  std::unique_ptr<StepExecutor> executor; ///< Null when there is nothing to do.
  ExchangeExecutor *exchange = nullptr;   ///< The executor, if it is one.
  size_t scratchItem = 0;                 ///< Among the arena's items.
};

/// Checks, by the addresses of `rank`, that no step of a list (`step`, `prologue step`) touches what an exchange under
/// way reads or writes, and that none is under way behind the list. An exchange of messages within one buffer writes
/// nothing that the rank has of its source, and reads what it sends: whoever reads that alone need not wait for it, nor
/// who writes what is not sent of it. `items` has one entry for each buffer, with its place in the arena, then those of
/// scratch memory. Errors: DATA_LOSS, with the step and the exchange.
absl::Status checkWaits(const Plan &plan, int rank, const std::vector<ArenaItem> &items, const char *list,
                        const std::vector<PreparedStep> &steps);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_WAITCHECK_H
