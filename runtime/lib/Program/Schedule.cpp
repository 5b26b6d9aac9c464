//===- Schedule.cpp - Transfers of each exchange --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/Schedule.h"

#include "absl/strings/str_cat.h"

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Transfer;

MoveScheduler::MoveScheduler(const Plan &plan, const MoveInfo &move)
    : plan(plan), move(move), planner(plan.mesh, plan.bufferOf(move.source).shape, plan.tensors[move.source].sharding,
                                      plan.tensors[move.target].sharding) {}

layout::ExchangeClass MoveScheduler::getClass() const {
  return layout::classify(plan.mesh, plan.bufferOf(move.source).shape, plan.tensors[move.source].sharding,
                          plan.tensors[move.target].sharding);
}

MoveTransfers MoveScheduler::transfers(int rank) const {
  MoveTransfers result;
  result.receives = planner.receives(rank);
  result.sends = planner.sends(rank);
  result.local = planner.local(rank);
  if (!planner.getReducedAxes().empty())
    result.reduction = plan.tensors[move.source].sharding.partialKind;
  return result;
}

layout::CollectiveGroup MoveScheduler::group(layout::ExchangeKind kind, int rank) const {
  return layout::collectiveGroup(plan.mesh, plan.bufferOf(move.source).shape, plan.tensors[move.source].sharding,
                                 plan.tensors[move.target].sharding, kind, rank);
}

int64_t MoveScheduler::receivedBytes(int rank) const {
  int64_t elements = 0;
  for (const Transfer &transfer : planner.receives(rank))
    elements += transfer.box.volume();
  return elements * elementSize(plan.bufferOf(move.target).type);
}

int64_t MoveScheduler::lowerBoundBytes(int rank) const {
  return layout::lowerBound(plan.mesh, plan.bufferOf(move.source).shape, plan.tensors[move.source].sharding,
                            plan.tensors[move.target].sharding, rank) *
         elementSize(plan.bufferOf(move.target).type);
}

std::vector<MoveScheduler> dovetail::runtime::createSchedulers(const Plan &plan, const ExchangeCall &call) {
  std::vector<MoveScheduler> schedulers;
  schedulers.reserve(call.moves.size());
  for (const MoveInfo &move : call.moves)
    schedulers.emplace_back(plan, move);
  return schedulers;
}

absl::Status dovetail::runtime::checkSchedule(const Plan &plan) {
  // A rank leaves an exchange when its peers have reached it, and exchanges have one order on all ranks; so nobody
  // waits for a rank that is further behind than the one that is last, and that one waits for nobody. What is left to
  // check is that all agree on the boxes: then they do on messages, too, which have the boxes of one move after
  // another.
  for (const std::vector<StepInfo> *list : {&plan.prologue, &plan.steps})
    for (size_t index = 0; index < list->size(); ++index) {
      const auto *call = std::get_if<ExchangeCall>(&(*list)[index].action);
      if (!call)
        continue;
      std::string where = absl::StrCat("exchange '", (*list)[index].name, "' in step ", index);
      for (const MoveInfo &move : call->moves)
        if (std::optional<std::pair<int, int>> ranks = MoveScheduler(plan, move).findDisagreement())
          return absl::DataLossError(absl::StrCat(where, ": ranks ", ranks->first, " and ", ranks->second,
                                                  " disagree on the elements that the first sends to the second"));
    }
  return absl::OkStatus();
}
