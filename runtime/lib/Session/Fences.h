//===- Fences.h - Which steps wait for which exchanges ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a session finds the steps that must come after an exchange, since exchanges may still be under way when
// later steps run.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_FENCES_H
#define DOVETAIL_RUNTIME_SESSION_FENCES_H

#include "Arena.h"
#include "StepExecutor.h"

namespace dovetail::runtime {

/// One entry of a session's step list.
struct PreparedStep {
  explicit PreparedStep(const StepInfo &info) : info(&info) {}

  const StepInfo *info;
  std::unique_ptr<StepExecutor> executor; ///< Null when there is nothing to do.
  ExchangeExecutor *exchange = nullptr;   ///< The executor, if it is one.
  /// Exchanges that must be complete on this rank before this step, and those whose sources other ranks must have read.
  std::vector<ExchangeExecutor *> joins, fences;
  size_t scratchItem = 0; ///< Among the arena's items.
};

/// The exchanges that nothing but the end of the run waits for.
struct OpenExchanges {
  std::vector<ExchangeExecutor *> joins, fences;
};

/// Sets what each step of `rank` waits for. An exchange of messages within one buffer writes nothing that the rank has
/// of its source: whoever reads that alone does not wait for it. `items` has one entry for each buffer, with its place
/// in the arena, then those of scratch memory.
OpenExchanges planFences(const Plan &plan, int rank, const std::vector<ArenaItem> &items,
                         std::vector<PreparedStep> &steps);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_FENCES_H
