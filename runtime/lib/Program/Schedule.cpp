//===- Schedule.cpp - Transfers of each exchange --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/Schedule.h"

#include "dovetail/Layout/Cuts.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Transfer;

namespace {

/// Below this size one phase is faster than two with half the traffic.
constexpr int64_t twoPhaseBytes = 64 * 1024;

} // namespace

ExchangeScheduler::ExchangeScheduler(const Plan &plan, const ExchangeCall &call)
    : plan(plan), call(call), planner(plan.mesh, plan.bufferOf(call.source).shape, plan.tensors[call.source].sharding,
                                      plan.tensors[call.target].sharding),
      exchangeClass(layout::classify(plan.mesh, plan.bufferOf(call.source).shape, plan.tensors[call.source].sharding,
                                     plan.tensors[call.target].sharding)) {}

bool ExchangeScheduler::splitsReduction(const ExchangePhase &direct, int rank) const {
  // All ranks that differ on the reduced axes alone must decide alike: everything looked at here is equal on them.
  const layout::Sharding &to = plan.tensors[call.target].sharding;
  for (const layout::DimSharding &dim : to.dims)
    for (int axis : dim.axes)
      if (std::count(planner.getReducedAxes().begin(), planner.getReducedAxes().end(), axis))
        return false;
  Box needed = plan.tensorBox(call.target, rank);
  if (direct.local.size() != 1 || !(direct.local[0] == needed) || direct.receives.empty())
    return false;
  return needed.volume() * elementSize(plan.bufferOf(call.target).type) >= twoPhaseBytes;
}

std::vector<Box> ExchangeScheduler::partsOf(const Box &box, int count) const {
  // Cut the dimension that is outermost in memory, if it is long enough: parts are contiguous then.
  const BufferInfo &buffer = plan.bufferOf(call.target);
  bool moments = plan.tensors[call.source].sharding.partialKind == layout::ReductionKind::Moments;
  int best = -1;
  for (int dim : buffer.format.order) {
    if (moments && dim == box.rank() - 1)
      continue;
    if (best < 0 || (box[best].size() < count && box[dim].size() > box[best].size()))
      best = dim;
  }
  std::vector<Box> parts(count, box);
  std::vector<int64_t> cuts = layout::balancedCuts(best < 0 ? 0 : box[best].size(), count);
  for (int i = 0; i < count && best >= 0; ++i)
    parts[i][best] = {box[best].lo + cuts[i], box[best].lo + cuts[i + 1]};
  return best < 0 ? std::vector<Box>() : parts;
}

std::vector<ExchangePhase> ExchangeScheduler::phases(int rank) const {
  ExchangePhase direct;
  direct.receives = planner.receives(rank);
  direct.sends = planner.sends(rank);
  direct.local = planner.local(rank);
  if (planner.getReducedAxes().empty())
    return {direct};
  direct.reduction = plan.tensors[call.source].sharding.partialKind;
  if (!splitsReduction(direct, rank))
    return {direct};

  std::vector<int> members = {rank};
  for (const Transfer &transfer : direct.receives)
    members.push_back(transfer.source);
  std::sort(members.begin(), members.end());
  std::vector<Box> parts = partsOf(direct.local[0], members.size());
  if (parts.empty())
    return {direct};

  ExchangePhase reduce, gather;
  reduce.reduction = direct.reduction;
  gather.fromTarget = true;
  size_t own = std::find(members.begin(), members.end(), rank) - members.begin();
  if (!parts[own].empty())
    reduce.local.push_back(parts[own]);
  for (size_t i = 0; i < members.size(); ++i) {
    if (i == own)
      continue;
    if (!parts[own].empty()) {
      reduce.receives.push_back({members[i], rank, parts[own]});
      gather.sends.push_back({rank, members[i], parts[own]});
    }
    if (!parts[i].empty()) {
      reduce.sends.push_back({rank, members[i], parts[i]});
      gather.receives.push_back({members[i], rank, parts[i]});
    }
  }
  return {reduce, gather};
}

int64_t ExchangeScheduler::receivedBytes(int rank) const {
  int64_t elements = 0;
  for (const ExchangePhase &phase : phases(rank))
    for (const Transfer &transfer : phase.receives)
      elements += transfer.box.volume();
  return elements * elementSize(plan.bufferOf(call.target).type);
}

int64_t ExchangeScheduler::lowerBoundBytes(int rank) const {
  return layout::lowerBound(plan.mesh, plan.bufferOf(call.source).shape, plan.tensors[call.source].sharding,
                            plan.tensors[call.target].sharding, rank) *
         elementSize(plan.bufferOf(call.target).type);
}

absl::Status dovetail::runtime::checkSchedule(const Plan &plan) {
  // A rank leaves phase k when its peers have reached phase k, and the phases are numbered alike on all ranks; so
  // nobody waits for a rank that is further behind than the one that is last, and that one waits for nobody. What is
  // left to check is that all agree on the phases and on the boxes in them.
  int ranks = plan.mesh.numRanks();
  for (const std::vector<StepInfo> *list : {&plan.prologue, &plan.steps})
    for (size_t index = 0; index < list->size(); ++index) {
      const auto *call = std::get_if<ExchangeCall>(&(*list)[index].action);
      if (!call)
        continue;
      std::string where = absl::StrCat("exchange '", (*list)[index].name, "' in step ", index);
      ExchangeScheduler scheduler(plan, *call);
      std::map<std::pair<size_t, std::pair<int, int>>, std::vector<Box>> sent, received;
      for (int rank = 0; rank < ranks; ++rank) {
        std::vector<ExchangePhase> phases = scheduler.phases(rank);
        for (size_t phase = 0; phase < phases.size(); ++phase) {
          for (const Transfer &transfer : phases[phase].sends)
            sent[{phase, {transfer.source, transfer.dest}}].push_back(transfer.box);
          for (const Transfer &transfer : phases[phase].receives)
            received[{phase, {transfer.source, transfer.dest}}].push_back(transfer.box);
        }
      }
      for (const auto *side : {&sent, &received}) {
        const auto &other = side == &sent ? received : sent;
        for (const auto &[key, boxes] : *side) {
          auto it = other.find(key);
          if (it == other.end() || it->second != boxes)
            return absl::DataLossError(absl::StrCat(where, ": ranks ", key.second.first, " and ", key.second.second,
                                                    " disagree on what the first sends to the second"));
        }
      }
    }
  return absl::OkStatus();
}
