//===- Schedule.cpp - Transfers of each exchange --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/Schedule.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>

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

/// Checks that all ranks agree on the boxes of a move.
static absl::Status checkMove(const Plan &plan, const std::string &where, const MoveInfo &move) {
  MoveScheduler scheduler(plan, move);
  std::map<std::pair<int, int>, std::vector<Box>> sent, received;
  for (int rank = 0, ranks = plan.mesh.numRanks(); rank < ranks; ++rank) {
    MoveTransfers transfers = scheduler.transfers(rank);
    for (const Transfer &transfer : transfers.sends)
      sent[{transfer.source, transfer.dest}].push_back(transfer.box);
    for (const Transfer &transfer : transfers.receives)
      received[{transfer.source, transfer.dest}].push_back(transfer.box);
  }
  for (const auto *side : {&sent, &received}) {
    const auto &other = side == &sent ? received : sent;
    for (const auto &[key, boxes] : *side) {
      auto it = other.find(key);
      if (it == other.end() || it->second != boxes)
        return absl::DataLossError(absl::StrCat(where, ": ranks ", key.first, " and ", key.second,
                                                " disagree on what the first sends to the second"));
    }
  }
  return absl::OkStatus();
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
        if (absl::Status status = checkMove(plan, where, move); !status.ok())
          return status;
    }
  return absl::OkStatus();
}
