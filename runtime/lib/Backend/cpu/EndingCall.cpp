//===- EndingCall.cpp - Calls that end where runs need no more ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EndingCall.h"

#include "../../Memory/Alignment.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Interval;

/// More pieces of a call than a compiler asks for: they are prepared one by one, and each keeps memory.
static constexpr int64_t kMostPieces = 4096;

/// Each piece goes through all weights. Where caches do not hold these, pieces gain only if they are few. With
/// 4096 x 1024 weights, half of the rows took as long in pieces as the whole. 7/8 of them took twice as long.
static constexpr int64_t kCachedWeights = int64_t(12) << 20;
static constexpr double kMostShare = 3.0 / 8;

CallPieces CallPieces::plan(const RankMemory &memory, const std::vector<LoopInfo> &infos, const Box &box, int rank,
                            const std::vector<int> &order, const MakePart &makePart) {
  CallPieces result;
  result.memory = &memory;
  size_t combinations = 1;
  for (int dim : order) {
    const LoopInfo &info = infos[dim];
    if (dim >= rank || !info.end)
      continue;
    Loop loop{dim, &info, box[dim], {}};
    int64_t step = info.end->step, first = loop.range.lo / step, last = std::max<int64_t>(loop.range.hi - 1, 0) / step;
    if (last - first >= kMostPieces)
      return {};
    for (int64_t number = first + 1; number <= last; ++number)
      loop.ends.push_back(number * step);
    loop.ends.push_back(loop.range.hi);
    combinations *= result.loops.empty() ? 1 : loop.ends.size();
    size_t pieces = result.loops.empty() ? loop.ends.size() : result.loops.front().ends.size();
    if (combinations * pieces > kMostPieces)
      return {};
    result.loops.push_back(std::move(loop));
  }
  if (result.loops.empty())
    return result;
  for (size_t number = 0; number < combinations; ++number) {
    Box piece = box;
    size_t rest = number;
    for (size_t i = result.loops.size() - 1; i > 0; --i) {
      const Loop &loop = result.loops[i];
      piece[loop.number].hi = loop.ends[rest % loop.ends.size()];
      rest /= loop.ends.size();
    }
    auto &pieces = result.widths.emplace_back();
    const Loop &cut = result.loops.front();
    int64_t begin = cut.range.lo;
    for (int64_t end : cut.ends) {
      piece[cut.number] = {begin, end};
      begin = end;
      pieces.push_back(makePart(piece));
      if (pieces.back()->plan().ok())
        continue;
      pieces.clear();
      break;
    }
  }
  return result;
}

int64_t CallPieces::stagingBytes(int lanes) const {
  std::vector<int64_t> most(lanes, 0);
  for (const auto &pieces : widths)
    for (size_t i = 0; i < pieces.size(); ++i)
      most[i % lanes] = std::max(most[i % lanes], alignedSize(pieces[i]->stagingBytes()));
  int64_t sum = 0;
  for (int64_t bytes : most)
    sum += bytes;
  return sum;
}

void CallPieces::create(LibraryStep &first, bool packsWeights, int64_t scratchShare) {
  auto isFine = [&](const std::unique_ptr<LibraryStep> &piece) {
    return (!packsWeights || piece->sharesWeights(first)) && piece->prepare(/*packedBytes=*/0, scratchShare).ok() &&
           !piece->isSlow() && (!piece->isReference() || first.isReference());
  };
  for (auto &pieces : widths)
    if (!std::all_of(pieces.begin(), pieces.end(), isFine))
      pieces.clear();
}

size_t CallPieces::countParts(const Loop &loop, bool &isWhole) const {
  Interval needed = memory->endAt(*loop.info, loop.range);
  isWhole &= needed.hi == loop.range.hi;
  if (needed.empty())
    return 0;
  return std::lower_bound(loop.ends.begin(), loop.ends.end(), needed.hi) - loop.ends.begin() + 1;
}

CallPieces::Choice CallPieces::choose() const {
  bool isWhole = true;
  size_t number = 0, count = 0;
  double share = 1;
  for (size_t i = 0; i < loops.size(); ++i) {
    const Loop &loop = loops[i];
    size_t parts = countParts(loop, isWhole);
    if (parts == 0)
      return {{}, 0};
    if (i == 0)
      count = parts;
    else
      number = number * loop.ends.size() + parts - 1;
    share *= double(loop.ends[parts - 1] - loop.range.lo) / double(loop.range.size());
  }
  if (isWhole || widths[number].empty())
    return {};
  return {std::span(widths[number]).first(count), share};
}

int64_t CallPieces::laneBytes(int lane, int lanes) const {
  int64_t most = 0;
  for (const auto &pieces : widths)
    for (size_t i = lane; i < pieces.size(); i += lanes)
      most = std::max(most, pieces[i]->scratchBytes());
  return alignedSize(most);
}

absl::Status CallPieces::bind(std::byte *scratch, int lanes) {
  for (int lane = 0; lane < lanes; ++lane) {
    for (const auto &pieces : widths)
      for (size_t i = lane; i < pieces.size(); i += lanes)
        if (absl::Status status = pieces[i]->bind(scratch); !status.ok())
          return status;
    scratch += laneBytes(lane, lanes);
  }
  return absl::OkStatus();
}

namespace {

class EndingCall : public StepExecutor {
public:
  EndingCall(std::unique_ptr<StepExecutor> whole, CallPieces given, int lanes, ThreadPool &pool)
      : whole(std::move(whole)), pieces(std::move(given)), lanes(lanes), pool(pool), outcomes(lanes) {
    for (int lane = 0; lane < lanes; ++lane)
      laneBytes += pieces.laneBytes(lane, lanes);
  }

  int64_t scratchBytes() const override { return std::max(whole->scratchBytes(), laneBytes); }
  int64_t scratchUse() const override { return std::max(whole->scratchUse(), laneBytes); }
  int64_t packedBytes() const override { return whole->packedBytes(); }
  int64_t packedUse() const override { return whole->packedUse(); }
  int64_t excessBytes() const override { return whole->excessBytes() + scratchBytes() - whole->scratchBytes(); }
  std::string packedKey() const override { return whole->packedKey(); }
  void setPackedMemory(std::byte *memory) override { whole->setPackedMemory(memory); }
  std::string implementation() const override { return whole->implementation(); }
  bool isReference() const override { return whole->isReference(); }
  absl::Status bind(std::byte *scratch) override {
    // Pieces use what the whole has packed, which it knows now.
    absl::Status status = whole->bind(scratch);
    return status.ok() ? pieces.bind(scratch, lanes) : status;
  }
  absl::Status pack() override { return whole->pack(); }
  absl::Status run() override;
  double share() const override { return choice.share; }

private:
  std::unique_ptr<StepExecutor> whole;
  CallPieces pieces;
  int lanes;
  ThreadPool &pool;
  int64_t laneBytes = 0;
  CallPieces::Choice choice; ///< Of the last run.
  std::vector<absl::Status> outcomes;
};

} // namespace

absl::Status EndingCall::run() {
  choice = pieces.choose();
  if (choice.share == 0)
    return absl::OkStatus();
  if (whole->packedBytes() > kCachedWeights && choice.share > kMostShare)
    choice = {};
  if (choice.pieces.empty())
    return whole->run();
  auto runLane = [](void *given, int lane) {
    auto *self = static_cast<EndingCall *>(given);
    absl::Status &outcome = self->outcomes[lane] = absl::OkStatus();
    for (size_t piece = lane; piece < self->choice.pieces.size() && outcome.ok(); piece += self->lanes)
      outcome = self->choice.pieces[piece]->run();
  };
  int used = static_cast<int>(std::min<size_t>(lanes, choice.pieces.size()));
  pool.run(used, runLane, this);
  for (int lane = 0; lane < used; ++lane)
    if (!outcomes[lane].ok())
      return outcomes[lane];
  return absl::OkStatus();
}

std::unique_ptr<StepExecutor> dovetail::runtime::makeEndingCall(std::unique_ptr<StepExecutor> whole, CallPieces pieces,
                                                                int lanes, ThreadPool &pool) {
  return std::make_unique<EndingCall>(std::move(whole), std::move(pieces), lanes, pool);
}
