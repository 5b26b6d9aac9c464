//===- BlockRunner.h - Blocks of threads on the CPU -------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the emulated device runs a kernel: block after block, every thread of a block as a fiber.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_EMULATED_BLOCKRUNNER_H
#define DOVETAIL_RUNTIME_BACKEND_EMULATED_BLOCKRUNNER_H

#include "Fiber.h"

#include "dovetail/runtime/Device.h"
#include "dovetail/runtime/EmulatedAbi.h"

#include <mutex>
#include <random>

namespace dovetail::runtime::emulated {

/// Threads that shuffle values with one another.
inline constexpr int64_t warpSize = 32;

/// Runs launches, one at a time. Blocks run in an order that the seed decides, and so do the threads between barriers:
/// what depends on the order goes wrong with some seed. Thread-safe.
class BlockRunner {
public:
  explicit BlockRunner(uint64_t seed) : random(seed) {}

  /// Errors: INTERNAL when the kernel does what it must not: the message names launch, block, thread and what it did.
  absl::Status run(DovetailBlockKernel kernel, const LaunchDescription &launch);

private:
  enum class State { Ready, Running, AtBarrier, AtShuffle, Done };
  struct Thread : DovetailBlockThread {
    BlockRunner *runner;
    Fiber *fiber; ///< While it waits.
    State state;
    uint64_t value; ///< Of a shuffle.
    int32_t mask;
  };
  /// An order of `count` things: all of them, from a place on, in steps.
  struct Order {
    Order(int64_t count, std::mt19937_64 &random);
    int64_t at(int64_t i) const { return (first + i * step) % count; }
    int64_t count, first, step;
  };

  void runBlock(int64_t block);
  /// Runs threads that have not begun, on the fiber that this is called on, until none is left.
  static void runThreads(void *self);
  void wait(Thread &thread, State state);
  void completeShuffle(int64_t warp);
  std::string describeDivergence() const;
  void checkCanary();
  void checkAccess(const Thread &thread, const void *address, int64_t bytes, int64_t alignment, bool isWrite);
  /// Makes the launch end with an error of `thread`.
  void fail(const Thread &thread, const std::string &what);
  /// Does not return to the thread if the launch has failed. No caller may own anything: nothing is unwound.
  void stopIfFailed() {
    if (!failure.empty())
      current->suspend();
  }
  int64_t warpThreads(int64_t warp) const;

  static void barrier(DovetailBlockThread *thread);
  static uint64_t shuffleXor(DovetailBlockThread *thread, uint64_t value, int32_t mask);
  static void check(DovetailBlockThread *thread, const void *address, int64_t bytes, int64_t alignment,
                    int32_t isWrite);
  static void checkShared(DovetailBlockThread *thread, const void *address, int64_t bytes, int32_t isWrite);

  std::mutex mutex;
  std::mt19937_64 random;
  DovetailBlockKernel kernel = nullptr;
  const LaunchDescription *launch = nullptr;
  std::vector<Thread> threads;
  std::vector<std::byte> sharedMemory;
  std::byte *shared = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers; ///< All there are.
  std::vector<Fiber *> idle;
  std::vector<Thread *> runnable; ///< Those that waited and may go on.
  std::vector<int64_t> atShuffle; ///< For each warp, how many have come.
  int64_t begun = 0, done = 0, atBarrier = 0;
  int64_t threadFirst = 0;
  bool backwards = false;
  Fiber *current = nullptr;
  /// Where the last accesses were, of reads and of writes.
  struct {
    uintptr_t begin = 0;
    uint64_t size = 0;
  } lastRegion[2];
  std::string failure; ///< Of the launch; empty while all is well.
};

} // namespace dovetail::runtime::emulated

#endif // DOVETAIL_RUNTIME_BACKEND_EMULATED_BLOCKRUNNER_H
