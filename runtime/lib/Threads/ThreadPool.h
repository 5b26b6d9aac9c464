//===- ThreadPool.h - Threads of one rank -----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the pool of threads among which a rank divides its kernels and library calls.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_THREADS_THREADPOOL_H
#define DOVETAIL_RUNTIME_THREADS_THREADPOOL_H

#include "Waiter.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace dovetail::runtime {

/// The calling thread and `threads - 1` workers. Workers wait for work as `Waiter` does: where cores suffice, what
/// follows within `spinTime` finds them awake. Not thread-safe: one thread, the rank's, creates it and gives it work.
class ThreadPool {
public:
  using Body = void (*)(void *context, int part);

  /// Where the system refuses more threads, there are fewer: see `size`. Each worker calls `begin` with its number,
  /// from 1, before anything else.
  explicit ThreadPool(int threads, std::function<void(int worker)> begin = nullptr);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int size() const { return numThreads; }

  /// Calls `body(context, part)` once for each part in [0, numParts), on any threads, and returns when all calls have
  /// returned; what they wrote is then seen by the caller. Part 0 is the caller's, and others are that of the worker of
  /// the same number as long as it is not late: whoever has nothing left to do takes the parts that nobody has begun.
  /// Allocates nothing. `numParts` must not exceed `size()`, and `body` must not give work to the pool.
  void run(int numParts, Body body, void *context);

private:
  /// A part of a job. Each lies in a cache line of its own.
  struct alignas(64) Part {
    /// Twice the number of the last job that has the part; one more when somebody has begun it.
    std::atomic<uint64_t> state{0};
  };
  struct alignas(64) Worker {
    Waiter waiter;
    std::thread thread;
  };

  void work(int index);
  /// Wakes two threads after `index` that have parts. Each thread wakes two others, as a wake-up takes who wakes longer
  /// than a small part.
  void wakeNext(int index);
  /// Does what nobody has begun of job `number`, beginning with part `first`.
  void takeParts(uint64_t number, int first);

  int numThreads = 1;
  std::unique_ptr<Part[]> parts;
  std::unique_ptr<Worker[]> workers; ///< That of the calling thread has no thread.

  // The job. What is not atomic is read by those alone who have begun a part of it.
  Body body = nullptr;
  void *context = nullptr;
  std::function<void(int worker)> begin;
  alignas(64) std::atomic<uint64_t> job{0}; ///< Its number.
  std::atomic<int> count{0};                ///< Its parts.
  alignas(64) std::atomic<int> pending{0};  ///< Those that are not done.
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_THREADS_THREADPOOL_H
