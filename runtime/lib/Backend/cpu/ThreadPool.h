//===- ThreadPool.h - Threads of one rank -----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the pool of threads among which a rank divides the parallel loop of a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_THREADPOOL_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_THREADPOOL_H

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace dovetail::runtime {

/// `threads - 1` workers besides the calling thread. Workers sleep between jobs, since ranks may outnumber cores.
/// Not thread-safe: one thread, the rank's, gives it work.
class ThreadPool {
public:
  /// Throws std::system_error when the system gives no more threads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  int size() const { return static_cast<int>(workers.size()) + 1; }

  /// Calls `body(context, part)` once for each part in [0, parts), at most `size()` at a time, and returns when all
  /// calls have. Allocates nothing. `parts` must not exceed `size()`.
  void run(int parts, void (*body)(void *context, int part), void *context);

private:
  void work(int index);
  void stop();

  std::mutex mutex;
  std::condition_variable started, finished;
  uint64_t generation = 0;
  int parts = 0, pending = 0;
  bool stopping = false;
  void (*body)(void *, int) = nullptr;
  void *context = nullptr;
  std::vector<std::thread> workers;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_THREADPOOL_H
