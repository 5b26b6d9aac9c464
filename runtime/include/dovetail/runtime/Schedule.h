//===- Schedule.h - Transfers of each exchange ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the runtime performs each exchange of a plan: who sends which box to whom.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SCHEDULE_H
#define DOVETAIL_RUNTIME_SCHEDULE_H

#include "dovetail/Layout/Exchange.h"
#include "dovetail/runtime/Plan.h"

#include "absl/status/status.h"

#include <vector>

namespace dovetail::runtime {

/// What a rank does in one move of an exchange. For each pair of ranks both list the same boxes in the same order.
struct MoveTransfers {
  layout::ReductionKind reduction = layout::ReductionKind::None;
  std::vector<layout::Transfer> receives, sends;
  std::vector<layout::Box> local; ///< What the rank takes from its own source.
};

/// Plans a move of an exchange for any rank.
class MoveScheduler {
public:
  MoveScheduler(const Plan &plan, const MoveInfo &move);

  layout::ExchangeClass getClass() const;
  MoveTransfers transfers(int rank) const;
  /// As `layout::ExchangePlanner::findDisagreement`.
  std::optional<std::pair<int, int>> findDisagreement() const { return planner.findDisagreement(); }
  /// With whom `rank` has a collective of `kind`, where the plan says that the exchange is one.
  layout::CollectiveGroup group(layout::ExchangeKind kind, int rank) const;
  /// Bytes that `rank` receives, and the least that it must receive however it is done: the elements it
  /// needs, less those it holds.
  int64_t receivedBytes(int rank) const;
  int64_t lowerBoundBytes(int rank) const;

private:
  const Plan &plan;
  MoveInfo move;
  layout::ExchangePlanner planner;
};

/// One for each move of an exchange. To make them takes time that grows with the number of ranks.
std::vector<MoveScheduler> createSchedulers(const Plan &plan, const ExchangeCall &call);

/// The schedule check: makes sure that every box that any rank sends is received, so that ranks cannot wait for each
/// other in a circle. Errors: DATA_LOSS, naming step and ranks.
absl::Status checkSchedule(const Plan &plan);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SCHEDULE_H
