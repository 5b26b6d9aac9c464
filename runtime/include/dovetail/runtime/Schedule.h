//===- Schedule.h - Transfers of each exchange ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the runtime performs each exchange of a plan: who sends which box to whom, in which phases.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SCHEDULE_H
#define DOVETAIL_RUNTIME_SCHEDULE_H

#include "dovetail/Layout/Exchange.h"
#include "dovetail/runtime/Plan.h"

#include "absl/status/status.h"

#include <vector>

namespace dovetail::runtime {

/// Transfers between two waits. For each pair of ranks both list the same boxes in the same order.
struct ExchangePhase {
  bool fromTarget = false; ///< Boxes travel from target to target instead of from source to target.
  layout::ReductionKind reduction = layout::ReductionKind::None;
  std::vector<layout::Transfer> receives, sends;
  std::vector<layout::Box> local; ///< What the rank takes from its own source.
};

/// Plans an exchange for any rank. A large all-reduce has two phases: each rank of a group combines one part of the
/// box, then all collect the parts. Other exchanges have one.
class ExchangeScheduler {
public:
  ExchangeScheduler(const Plan &plan, const ExchangeCall &call);

  layout::ExchangeClass getClass() const { return exchangeClass; }
  std::vector<ExchangePhase> phases(int rank) const;
  /// Bytes that `rank` receives in all phases, and the least that it must receive however the exchange is done: the
  /// elements it needs, less those it holds.
  int64_t receivedBytes(int rank) const;
  int64_t lowerBoundBytes(int rank) const;

private:
  bool splitsReduction(const ExchangePhase &direct, int rank) const;
  std::vector<layout::Box> partsOf(const layout::Box &box, int count) const;

  const Plan &plan;
  ExchangeCall call;
  layout::ExchangePlanner planner;
  layout::ExchangeClass exchangeClass;
};

/// The schedule check: simulates the step lists of all ranks and makes sure that every box sent is received, and that
/// ranks cannot wait for each other in a circle. Errors: DATA_LOSS, naming step and ranks.
absl::Status checkSchedule(const Plan &plan);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SCHEDULE_H
