//===- LocalState.cpp - State shared by local ranks -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LocalState.h"

#include "absl/strings/str_cat.h"

#include <numeric>
#include <thread>

using namespace dovetail::runtime;

/// Stands for the rank whose turn it is.
static constexpr int turnHolder = -2;

LocalGroup::State::State(int size, std::chrono::milliseconds timeout) : timeout(timeout) {
  for (int rank = 0; rank < size; ++rank)
    ranks.push_back(std::make_unique<RankState>());
}

uint64_t LocalGroup::State::totalProgress() const {
  uint64_t total = 0;
  for (const auto &rank : ranks)
    total += rank->progress.load(std::memory_order_relaxed);
  return total;
}

absl::Status LocalGroup::State::failure() const {
  if (!failed.load())
    return absl::OkStatus();
  std::lock_guard lock(failureMutex);
  return failureStatus;
}

void LocalGroup::State::abort(const absl::Status &status) {
  {
    std::lock_guard lock(failureMutex);
    if (!failureStatus.ok())
      return;
    failureStatus = status;
    failed = true;
  }
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    notify(rank);
}

absl::Status LocalGroup::State::takeTurn(int rank) {
  return wait(rank, turnHolder, [&] { return tryTurn(rank); });
}

void LocalGroup::State::takeLastTurn(int rank) {
  while (!tryTurn(rank))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

bool LocalGroup::State::tryTurn(int rank) {
  int nobody = -1;
  return turnOf.load() == rank || turnOf.compare_exchange_strong(nobody, rank);
}

void LocalGroup::State::passTurn(int rank) {
  if (turnOf.load() != rank)
    return;
  turnOf.store(-1);
  for (size_t other = 0; other < ranks.size(); ++other)
    notify(other);
}

int LocalGroup::State::waitsFor(int rank) const {
  int peer = ranks[rank]->waitingFor.load();
  return peer == turnHolder ? turnOf.load() : peer;
}

std::string LocalGroup::State::seconds() const {
  return absl::StrCat(static_cast<double>(timeout.count()) / 1000, " s");
}

absl::Status LocalGroup::State::blame(int peer) const {
  std::vector<bool> seen(ranks.size());
  int culprit = peer;
  for (int next = waitsFor(culprit); next >= 0 && !seen[culprit]; next = waitsFor(culprit)) {
    seen[culprit] = true;
    culprit = next;
  }
  if (seen[culprit])
    return absl::DeadlineExceededError(absl::StrCat("rank ", culprit, " and others wait for each other in step '",
                                                    ranks[culprit]->step.load(), "' since ", seconds()));
  return absl::DeadlineExceededError(absl::StrCat("rank ", culprit, " made no progress for ", seconds(), " in step '",
                                                  ranks[culprit]->step.load(),
                                                  "'; if it is only slow, allow more time (--timeout)"));
}

absl::Status LocalGroup::State::wait(int rank, int peer, absl::FunctionRef<bool()> ready) {
  if (ready())
    return absl::OkStatus();
  RankState &self = *ranks[rank];
  bool hadTurn = turnOf.load() == rank;
  passTurn(rank);
  self.waitingFor = peer;
  absl::Status result;
  auto isOver = [&] { return ready() || failed.load(); };
  bool over = spinUntil(isOver);
  uint64_t progress = over ? 0 : totalProgress();
  Clock::time_point since = Clock::now();
  while (!over && result.ok()) {
    over = self.waiter.sleep(isOver, Clock::now() + timeout / 8);
    uint64_t now = totalProgress();
    if (now != progress) {
      progress = now;
      since = Clock::now();
    } else if (!over && Clock::now() - since >= timeout) {
      // Who has the turn may just have passed it.
      if (int other = waitsFor(rank); other >= 0)
        result = blame(other);
    }
  }
  if (result.ok() && !ready())
    result = failure();
  self.waitingFor = -1;
  if (!result.ok())
    abort(result);
  return result.ok() && hadTurn ? takeTurn(rank) : result;
}

absl::Status LocalGroup::State::watch() {
  if (absl::Status status = failure(); !status.ok())
    return status;
  int busy = -1, notWaiting = 0;
  for (int rank = 0, size = static_cast<int>(ranks.size()); rank < size; ++rank) {
    if (!ranks[rank]->busy.load())
      continue;
    if (busy < 0 || waitsFor(busy) >= 0)
      busy = rank;
    notWaiting += waitsFor(rank) < 0;
  }
  std::lock_guard lock(watchMutex);
  uint64_t progress = totalProgress();
  if (busy < 0 || progress != watchedProgress) {
    watchedProgress = progress;
    watchedSince = Clock::now();
    return absl::OkStatus();
  }
  if (Clock::now() - watchedSince < timeout)
    return absl::OkStatus();
  // What all have given to a device may hang for any of them.
  if (notWaiting > 1 && notWaiting == static_cast<int>(ranks.size()))
    abort(absl::DeadlineExceededError(absl::StrCat("none of ", ranks.size(), " ranks made progress for ", seconds(),
                                                   " in step '", ranks[busy]->step.load(),
                                                   "'; if they are only slow, allow more time (--timeout)")));
  else
    abort(blame(busy));
  return failure();
}

static std::vector<int> firstRanks(int count) {
  std::vector<int> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

LocalGroup::LocalGroup(int ranks, std::chrono::milliseconds timeout, int device)
    : RankGroup(firstRanks(ranks)), state(std::make_shared<State>(ranks, timeout)), ordinal(device) {}
LocalGroup::~LocalGroup() = default;

absl::Status LocalGroup::watch() { return state->watch(); }

void LocalGroup::abort(const absl::Status &status) { state->abort(status); }
