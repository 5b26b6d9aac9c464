//===- Cores.h - Cores for threads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how many cores this process may use, and whether its threads leave one for each of them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_THREADS_CORES_H
#define DOVETAIL_RUNTIME_THREADS_CORES_H

#include <atomic>
#include <string>
#include <vector>

namespace dovetail::runtime {

/// The processors that the calling thread may run on, ascending; at least one.
std::vector<int> allowedProcessors();

/// The processors for `count` threads, of which the first is number `first` of all that take turns on `processors`.
std::vector<int> takeTurns(const std::vector<int> &processors, int first, int count);

/// Lets the calling thread run on this processor only, where the system allows it.
void stayOn(int processor);

/// The processors that the calling thread may run on, or as many whole ones as the bandwidth comes to that the control
/// groups of this process have (`cpu.max`, or `cpu.cfs_quota_us` of the first version), those around them included; at
/// least 1. `root` is where the folders `proc` and `sys` are. Thread-safe.
int countCores(const std::string &root = "");

/// The cores of this process, and how many of its threads are to run on them. Thread-safe.
class Cores {
public:
  /// Counts cores anew, `processes` processes of this machine sharing them.
  static void count(int processes = 1);
  /// The cores for this process; at least 1.
  static int available();
  /// Whether there is a core for each thread that is announced, and for `more`: then who waits may spin.
  static bool suffice(int more = 0) { return running.load(std::memory_order_relaxed) + more <= available(); }

  /// Announces threads that will run, as long as it lives.
  class Use {
  public:
    explicit Use(int threads) : threads(threads) { running.fetch_add(threads, std::memory_order_relaxed); }
    ~Use() { running.fetch_sub(threads, std::memory_order_relaxed); }
    Use(const Use &) = delete;
    Use &operator=(const Use &) = delete;

  private:
    int threads;
  };

private:
  static std::atomic<int> running;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_THREADS_CORES_H
