//===- Rendezvous.h - Processes that know each other -----------*- C++ -*- ===//
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

#ifndef DOVETAIL_RUNTIME_COMM_RENDEZVOUS_H
#define DOVETAIL_RUNTIME_COMM_RENDEZVOUS_H

#include "dovetail/runtime/LaunchEnvironment.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace dovetail::runtime {

class Rendezvous {
public:
  /// Returns when all ranks have come. Errors: DEADLINE_EXCEEDED, naming those that did not; UNAVAILABLE.
  static absl::StatusOr<std::unique_ptr<Rendezvous>> connect(const LaunchEnvironment &environment,
                                                             std::chrono::milliseconds timeout);
  ~Rendezvous();
  Rendezvous(const Rendezvous &) = delete;
  Rendezvous &operator=(const Rendezvous &) = delete;

  /// What each rank gave, by rank. All ranks call it, before `watch`.
  absl::StatusOr<std::vector<std::string>> allGather(const std::string &own);

  /// From now on a thread looks after the others. When some rank fails, `onFailure` is called once, on that thread.
  void watch(std::function<void(const absl::Status &)> onFailure);
  /// A busy rank is expected to make progress. Thread-safe.
  void setBusy(bool busy);
  /// Says what this rank does now. `step` must stay. Thread-safe.
  void enterStep(const char *step);
  /// Ends the run on all ranks. Thread-safe.
  void fail(const absl::Status &status);
  /// The error that ended the run. Thread-safe.
  absl::Status failure() const;

private:
  /// What rank 0 knows of a rank.
  struct Peer {
    int socket = -1;
    bool gone = false; ///< It has said good-bye.
    uint64_t progress = 0;
    bool busy = false;
    std::string step;
    std::chrono::steady_clock::time_point changed;
  };

  Rendezvous(const LaunchEnvironment &environment, std::chrono::milliseconds timeout)
      : environment(environment), timeout(timeout), deadline(std::chrono::steady_clock::now() + timeout) {}

  absl::Status listen();
  absl::Status reach();
  absl::Status receive(int socket, uint32_t &type, std::string &payload,
                       std::chrono::steady_clock::time_point deadline) const;
  void run();
  void readFrom(int rank);
  void lookForHangs();
  void keep(const absl::Status &status);
  void handle(int rank, uint32_t type, const std::string &payload);

  LaunchEnvironment environment;
  std::chrono::milliseconds timeout;
  std::chrono::steady_clock::time_point deadline; ///< For start-up.
  std::vector<Peer> peers;                        ///< Rank 0: by rank. Others: rank 0 alone.
  int wake[2] = {-1, -1};                         ///< A pipe, written to when the thread has something to do.
  std::thread thread;
  std::atomic<bool> stopping = false;
  std::function<void(const absl::Status &)> onFailure;

  std::atomic<uint64_t> progress = 0;
  std::atomic<bool> busy = false;
  std::atomic<const char *> step = "";

  mutable std::mutex mutex;
  absl::Status error;     ///< The first.
  bool announced = false; ///< Others know of it.
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_COMM_RENDEZVOUS_H
