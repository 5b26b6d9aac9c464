//===- Rendezvous.h - Processes that know each other -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the ranks of a program that are processes find each other, exchange what they need to know at the start,
// and learn that one of them has failed, hangs or is gone: each has a connection with rank 0.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_RENDEZVOUS_H
#define DOVETAIL_RUNTIME_TRANSPORT_RENDEZVOUS_H

#include "RendezvousEntrance.h"

#include "dovetail/runtime/LaunchEnvironment.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dovetail::runtime {

class Rendezvous {
public:
  /// Returns when all ranks have come. From then on a thread looks after the others. Rank 0 may have opened its
  /// entrance before. Errors: DEADLINE_EXCEEDED, naming those that did not come; INVALID_ARGUMENT when rank 0 does not
  /// take this one for a rank of its run; UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<Rendezvous>> connect(const LaunchEnvironment &environment,
                                                             std::chrono::milliseconds timeout,
                                                             std::unique_ptr<RendezvousEntrance> entrance = nullptr);
  ~Rendezvous();
  Rendezvous(const Rendezvous &) = delete;
  Rendezvous &operator=(const Rendezvous &) = delete;

  /// What each rank gave, by rank; on ranks other than 0 nothing. All ranks call it.
  absl::StatusOr<std::vector<std::string>> gather(std::string own);
  /// What each rank gave, by rank. All ranks call it.
  absl::StatusOr<std::vector<std::string>> allGather(std::string own);
  /// What each rank with the same `key` gave, by rank; with an empty key nothing. All ranks call it, but each hears of
  /// those alone.
  absl::StatusOr<std::map<int, std::string>> gatherAlike(const std::string &key, const std::string &own);

  /// When some rank fails, `onFailure` is called once, on another thread.
  void watch(std::function<void(const absl::Status &)> onFailure);
  /// A busy rank is expected to make progress; at first all are. Thread-safe.
  void setBusy(bool busy);
  /// Says what this rank does now. `step` must stay. Thread-safe.
  void enterStep(const char *step);
  /// Ends the run on all ranks. Thread-safe.
  void fail(const absl::Status &status);
  /// The error that ended the run. Thread-safe.
  absl::Status failure() const;
  /// The error that ended the run, or `status`, an error of what connects this rank with others. When a rank is lost
  /// such errors may come first, and say less. Thread-safe.
  absl::Status reason(const absl::Status &status) const;

private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    int socket = -1;
    std::string host;              ///< Where it runs.
    std::mutex sending;            ///< Messages are sent whole.
    Clock::time_point heard;       ///< When anything came from it.
    bool gone = false;             ///< It has said good-bye. With `mutex`.
    std::deque<std::string> blobs; ///< What it gave and nobody has taken. With `mutex`.
    /// On rank 0: what the rank does.
    uint64_t progress = 0;
    bool busy = true;
    std::string step;
    Clock::time_point changed;
  };

  Rendezvous(const LaunchEnvironment &environment, std::chrono::milliseconds timeout)
      : environment(environment), timeout(timeout), deadline(Clock::now() + timeout) {}

  /// Lets all others in.
  absl::Status receive(std::unique_ptr<RendezvousEntrance> entrance);
  /// Why a process that says so of itself is no rank of this run; empty if it is one.
  std::string whatIsWrong(const Hello &hello) const;
  /// Finds rank 0.
  absl::Status reach();
  /// Connects with rank 0 at one of its addresses. Errors: INVALID_ARGUMENT; all others may pass.
  absl::Status call(const std::string &address);
  void setUpSocket(int socket) const;
  bool send(Peer &peer, uint32_t type, const std::string &payload);
  absl::StatusOr<std::string> takeBlob(int rank);
  void run();
  void readFrom(int rank);
  /// Says that this rank lives and what it does, if it is time to.
  void beat();
  void lookForHangs();
  void lookForSilence();
  /// That a rank is gone; that it is silent.
  absl::Status lost(int rank) const;
  absl::Status silent(int rank, std::chrono::milliseconds limit) const;
  /// Tells the others of an error, and of that which ended the run, once there is one.
  void tell(const absl::Status &status);
  void announce();
  void keep(const absl::Status &status);
  void handle(int rank, uint32_t type, std::string payload);

  LaunchEnvironment environment;
  std::chrono::milliseconds timeout;
  Clock::time_point deadline;               ///< For start-up.
  Clock::time_point nextBeat, lastLook;     ///< Of the thread.
  std::vector<std::unique_ptr<Peer>> peers; ///< Rank 0: by rank. Others: rank 0 alone.
  int wake[2] = {-1, -1};                   ///< A pipe, written to when the thread has something to do.
  std::thread thread;
  std::atomic<bool> stopping = false;

  std::atomic<uint64_t> progress = 0; ///< Counts the same on all ranks.
  std::atomic<uint64_t> taken = 0;    ///< Blobs.
  uint64_t seenTaken = 0;             ///< When this rank looked for hangs.
  std::atomic<bool> busy = true;
  std::atomic<const char *> step = "start-up";

  mutable std::mutex mutex;
  mutable std::condition_variable changed; ///< A blob has come, a rank has gone, or an error is there.
  absl::Status error;                      ///< The first.
  bool announced = false;                  ///< Others know of it.
  std::function<void(const absl::Status &)> onFailure;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_RENDEZVOUS_H
