//===- Fences.cpp - Which steps wait for which exchanges ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fences.h"

#include <algorithm>

using namespace dovetail::runtime;

namespace {

struct Range {
  int64_t begin, end;
};

bool overlap(const std::vector<Range> &some, const std::vector<Range> &others) {
  return std::any_of(some.begin(), some.end(), [&](const Range &a) {
    return std::any_of(others.begin(), others.end(),
                       [&](const Range &b) { return a.begin < b.end && b.begin < a.end; });
  });
}

/// An exchange that some step may still have to wait for.
struct Open {
  ExchangeExecutor *exchange;
  std::vector<Range> reads, writes;
  /// The exchange, if it leaves what the rank has of the sources as it is.
  const ExchangeCall *call = nullptr;
};

/// Takes the exchanges for which `waits` holds out of `open` and puts them into `result`.
template <typename Predicate>
void take(std::vector<Open> &open, std::vector<ExchangeExecutor *> &result, Predicate waits) {
  std::erase_if(open, [&](const Open &entry) {
    bool found = waits(entry);
    if (found)
      result.push_back(entry.exchange);
    return found;
  });
}

} // namespace

OpenExchanges dovetail::runtime::planFences(const Plan &plan, int rank, const std::vector<ArenaItem> &items,
                                            std::vector<PreparedStep> &steps) {
  // Nobody writes to buffers outside of the arena but the prologue; their items are empty.
  auto rangeOf = [&](size_t item) { return Range{items[item].offset, items[item].offset + items[item].bytes}; };
  auto rangesOf = [&](const std::vector<uint32_t> &tensors) {
    std::vector<Range> ranges;
    for (uint32_t tensor : tensors)
      ranges.push_back(rangeOf(plan.tensors[tensor].buffer));
    return ranges;
  };
  auto readsOwn = [&](const ExchangeCall &call, uint32_t tensor) {
    return std::any_of(call.moves.begin(), call.moves.end(), [&](const MoveInfo &move) {
      uint32_t buffer = plan.tensors[tensor].buffer;
      return buffer == plan.tensors[move.source].buffer && buffer == plan.tensors[move.target].buffer &&
             plan.tensorBox(move.source, rank).contains(plan.tensorBox(tensor, rank));
    });
  };
  auto findsWrites = [&](const std::vector<uint32_t> &reads, const Open &entry) {
    return std::any_of(reads.begin(), reads.end(), [&](uint32_t tensor) {
      return overlap({rangeOf(plan.tensors[tensor].buffer)}, entry.writes) &&
             !(entry.call && readsOwn(*entry.call, tensor));
    });
  };
  std::vector<Open> unjoined, unfenced;
  for (PreparedStep &step : steps) {
    std::vector<Range> reads = rangesOf(step.info->reads()), writes = rangesOf(step.info->writes());
    writes.push_back(rangeOf(step.scratchItem));
    take(unjoined, step.joins, [&](const Open &entry) {
      return overlap(writes, entry.writes) || overlap(writes, entry.reads) || findsWrites(step.info->reads(), entry);
    });
    take(unfenced, step.fences, [&](const Open &entry) { return overlap(writes, entry.reads); });
    if (!step.exchange)
      continue;
    const auto &call = std::get<ExchangeCall>(step.info->action);
    bool keepsSources = call.kind == layout::ExchangeKind::Messages;
    unjoined.push_back({step.exchange, reads, writes, keepsSources ? &call : nullptr});
    Open entry{step.exchange, {}, {}};
    for (uint32_t buffer : step.exchange->readByOthers())
      entry.reads.push_back(rangeOf(buffer));
    if (!entry.reads.empty())
      unfenced.push_back(std::move(entry));
  }
  // Whoever calls `run` may read outputs and write inputs afterwards.
  OpenExchanges result;
  take(unjoined, result.joins, [](const Open &) { return true; });
  take(unfenced, result.fences, [](const Open &) { return true; });
  return result;
}
