//===- LocalState.h - State shared by local ranks ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how threads of one process wait for each other, and how a failure of one ends the run on all.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_LOCAL_LOCALSTATE_H
#define DOVETAIL_RUNTIME_TRANSPORT_LOCAL_LOCALSTATE_H

#include "../../Threads/Waiter.h"
#include "dovetail/runtime/LocalGroup.h"

#include <atomic>
#include <mutex>
#include <vector>

namespace dovetail::runtime {

/// What the other ranks see of a channel of one rank.
struct SharedChannel {
  std::vector<MemoryView> sources;                   ///< Of each move.
  std::vector<int> readers;                          ///< Ascending.
  std::atomic<uint64_t> started{0};                  ///< How often the source was complete.
  std::unique_ptr<std::atomic<uint64_t>[]> finished; ///< How often each reader was done with it.
  std::unique_ptr<DeviceEvent> ready;                ///< Where the source is complete, once it was started.
  /// Where each reader is done with it, once it was finished. The reader's, kept here as this rank may look at it when
  /// the reader is gone.
  std::vector<std::unique_ptr<DeviceEvent>> taken;
};

struct RankState {
  std::atomic<uint64_t> progress{0};
  std::atomic<const char *> step{"start-up"};
  std::atomic<int> waitingFor{-1};
  std::atomic<bool> busy{false};
  std::atomic<bool> connected{false};
  std::vector<std::shared_ptr<void>> memory;            ///< That the channels of others read.
  std::vector<std::unique_ptr<SharedChannel>> channels; ///< Not changed after `connected`.

  std::unique_ptr<DeviceEvent> meeting; ///< Where the rank last met others in its stream of steps.
  std::atomic<uint64_t> meetings{0};    ///< How often it did.
  size_t recordings = 0;                ///< Those in which it took part.
  std::atomic<uint64_t> decisions{0};   ///< Of rank 0, of which the rank knows.

  /// Others look at it far more often than it changes: not next to what the rank writes at each step.
  alignas(64) Waiter waiter;
};

struct LocalGroup::State {
  State(int size, std::chrono::milliseconds timeout);

  /// Returns when `ready` holds, which depends on what `peer` does; `peer` notifies `rank` when it may have changed. If
  /// it is the rank's turn, others have theirs meanwhile; after an error it is not the rank's turn any more. To be
  /// called on the rank's thread.
  absl::Status wait(int rank, int peer, absl::FunctionRef<bool()> ready);
  /// Wakes `rank` if it sleeps. Whatever it waits for must have been stored before, sequentially consistent.
  /// Thread-safe.
  void notify(int rank) { ranks[rank]->waiter.notify(); }
  /// Returns when it is the turn of `rank`, for things that ranks do one at a time.
  absl::Status takeTurn(int rank);
  /// The same, though the run has ended with an error.
  void takeLastTurn(int rank);
  /// Does nothing if it is not the rank's turn.
  void passTurn(int rank);
  absl::Status watch();
  void abort(const absl::Status &status);
  absl::Status failure() const;

  std::vector<std::unique_ptr<RankState>> ranks;
  std::atomic<bool> allConnected{false};
  /// The last decision of rank 0: its number, from 1, twice, and 1 more if it is yes.
  std::atomic<uint64_t> decision{0};
  std::mutex recordingMutex;
  std::vector<std::unique_ptr<Move>> recordings; ///< Each of all ranks. With `recordingMutex`.
  const std::chrono::milliseconds timeout;

private:
  using Clock = std::chrono::steady_clock;
  uint64_t totalProgress() const;
  bool tryTurn(int rank);
  /// The rank for which `rank` waits; negative if for none.
  int waitsFor(int rank) const;
  /// The error when nothing has happened for the timeout, seen from a rank that waits for `peer`.
  absl::Status blame(int peer) const;
  /// How long that is, in words.
  std::string seconds() const;

  std::atomic<int> turnOf{-1};

  std::atomic<bool> failed{false};
  mutable std::mutex failureMutex;
  absl::Status failureStatus;

  std::mutex watchMutex;
  uint64_t watchedProgress = 0;
  Clock::time_point watchedSince = Clock::now();
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_LOCAL_LOCALSTATE_H
