//===- WaitCheck.cpp - Whether steps wait for exchanges -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WaitCheck.h"

#include "../Program/StepParts.h"

#include <algorithm>
#include <memory>
#include <optional>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

/// Bytes of the arena.
using Range = layout::Interval;

/// Memory that a step or an exchange touches: the elements of some box of a buffer, or any of them.
struct Touched {
  Range range;
  size_t item;
  std::optional<layout::Box> written = {};
  /// Of an exchange that touches nothing else of the buffer.
  std::shared_ptr<const layout::HaloMessages> messages = {};
};

/// An exchange that some step may still have to wait for.
struct Open {
  size_t position; ///< In the list of steps.
  std::vector<Touched> reads, writes;
};

class WaitChecker {
public:
  WaitChecker(const Plan &plan, int rank, const std::vector<ArenaItem> &items, const char *list,
              const std::vector<PreparedStep> &steps)
      : plan(plan), rank(rank), items(items), list(list), steps(steps) {}

  absl::Status check();

private:
  Range rangeOf(size_t item) const;
  Touched touch(size_t item) const { return {rangeOf(item), item}; }
  /// What an exchange touches of sources or targets of its moves.
  std::vector<Touched> touchedBy(const ExchangeCall &call, uint32_t MoveInfo::*tensor) const;
  /// Whether the writes of a step meet what an exchange touches.
  bool overlap(const std::vector<Touched> &writes, const std::vector<Touched> &touched) const;
  /// Whether `tensor` is a part of what an exchange leaves as it is.
  bool isOwn(const ExchangeCall &call, uint32_t tensor) const;
  absl::Status checkStep(const PreparedStep &step) const;
  absl::Status fail(const std::string &who, const Open &entry, const char *what) const;

  const Plan &plan;
  int rank;
  const std::vector<ArenaItem> &items;
  const char *list;
  const std::vector<PreparedStep> &steps;
  /// Exchanges that may not be complete, and those of which other ranks may still read.
  std::vector<Open> running, held;
};

} // namespace

Range WaitChecker::rangeOf(size_t item) const {
  // Buffers outside of the arena share their memory with nobody.
  if (item < plan.buffers.size() && plan.buffers[item].kind != BufferKind::Arena)
    return {-1 - static_cast<int64_t>(item), -static_cast<int64_t>(item)};
  return {items[item].offset, items[item].offset + items[item].bytes};
}

std::vector<Touched> WaitChecker::touchedBy(const ExchangeCall &call, uint32_t MoveInfo::*tensor) const {
  std::vector<Touched> touched;
  for (const MoveInfo &move : call.moves) {
    touched.push_back(touch(plan.tensors[move.*tensor].buffer));
    if (std::optional<layout::HaloMessages> messages = haloMessagesOf(plan, call, move))
      touched.back().messages = std::make_shared<const layout::HaloMessages>(*std::move(messages));
  }
  return touched;
}

bool WaitChecker::overlap(const std::vector<Touched> &writes, const std::vector<Touched> &touched) const {
  return std::any_of(writes.begin(), writes.end(), [&](const Touched &own) {
    return std::any_of(touched.begin(), touched.end(), [&](const Touched &other) {
      if (own.range.intersect(other.range).empty())
        return false;
      bool isWithinOne = own.item == other.item && own.written && other.messages;
      return !isWithinOne || !other.messages->leaves(rank, *own.written);
    });
  });
}

bool WaitChecker::isOwn(const ExchangeCall &call, uint32_t tensor) const {
  if (!layout::movesMany(call.kind))
    return false;
  return std::any_of(call.moves.begin(), call.moves.end(), [&](const MoveInfo &move) {
    uint32_t buffer = plan.tensors[tensor].buffer;
    return buffer == plan.tensors[move.source].buffer && buffer == plan.tensors[move.target].buffer &&
           plan.tensorBox(move.source, rank).contains(plan.tensorBox(tensor, rank));
  });
}

absl::Status WaitChecker::fail(const std::string &who, const Open &entry, const char *what) const {
  return absl::DataLossError(absl::StrCat("rank ", rank, ": damaged plan: ", who, " does not wait for exchange '",
                                          steps[entry.position].info->name, "' in ", list, " ", entry.position, ", ",
                                          what, "; compile the model again"));
}

absl::Status WaitChecker::checkStep(const PreparedStep &step) const {
  std::string who = absl::StrCat(step.info->kind(), " '", step.info->name, "'");
  std::vector<uint32_t> read = step.info->reads();
  std::vector<Touched> writes = {touch(step.scratchItem)};
  for (uint32_t tensor : step.info->writes()) {
    writes.push_back(touch(plan.tensors[tensor].buffer));
    writes.back().written = writtenBox(plan, *step.info, tensor, rank);
  }
  for (const Open &entry : running) {
    const auto &call = std::get<ExchangeCall>(steps[entry.position].info->action);
    if (overlap(writes, entry.writes) || overlap(writes, entry.reads))
      return fail(who, entry, "and writes to its memory");
    for (uint32_t tensor : read)
      if (overlap({touch(plan.tensors[tensor].buffer)}, entry.writes) && !isOwn(call, tensor))
        return fail(who, entry, "and reads elements that it receives");
  }
  for (const Open &entry : held)
    if (overlap(writes, entry.reads))
      return fail(who, entry, "and overwrites elements that other ranks read");
  return absl::OkStatus();
}

absl::Status WaitChecker::check() {
  for (size_t position = 0; position < steps.size(); ++position) {
    const PreparedStep &step = steps[position];
    if (const auto *wait = std::get_if<WaitCall>(&step.info->action)) {
      auto isIn = [](const std::vector<uint32_t> &positions) {
        return [&](const Open &entry) {
          return std::find(positions.begin(), positions.end(), entry.position) != positions.end();
        };
      };
      std::erase_if(running, isIn(wait->complete));
      // Channels are joined before they are fenced.
      if (auto entry = std::find_if(running.begin(), running.end(), isIn(wait->read)); entry != running.end())
        return fail(absl::StrCat(list, " ", position), *entry, "but for others to have read its sources");
      std::erase_if(held, isIn(wait->read));
      continue;
    }
    if (step.info->isBoundary())
      for (const std::vector<Open> *open : {&running, &held})
        if (!open->empty())
          return fail(absl::StrCat(list, " ", position, ", where an iteration begins or ends,"), open->front(),
                      "which may be under way");
    if (absl::Status status = checkStep(step); !status.ok())
      return status;
    if (!step.exchange)
      continue;
    const auto &call = std::get<ExchangeCall>(step.info->action);
    running.push_back({position, touchedBy(call, &MoveInfo::source), touchedBy(call, &MoveInfo::target)});
    Open &entry = held.emplace_back(Open{position, running.back().reads, {}});
    std::vector<uint32_t> readByOthers = step.exchange->readByOthers();
    std::erase_if(entry.reads, [&](const Touched &source) {
      return std::find(readByOthers.begin(), readByOthers.end(), source.item) == readByOthers.end();
    });
  }
  // Whoever calls `run` may read outputs and write inputs afterwards.
  for (const std::vector<Open> *open : {&running, &held})
    if (!open->empty())
      return fail(absl::StrCat("the end after the last ", list), open->front(), "which may be under way");
  return absl::OkStatus();
}

absl::Status dovetail::runtime::checkWaits(const Plan &plan, int rank, const std::vector<ArenaItem> &items,
                                           const char *list, const std::vector<PreparedStep> &steps) {
  return WaitChecker(plan, rank, items, list, steps).check();
}
