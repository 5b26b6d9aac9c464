//===- Waiter.h - Waiting for other threads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a thread waits for what others do: it spins for a moment where there are cores enough, then it sleeps.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_THREADS_WAITER_H
#define DOVETAIL_RUNTIME_THREADS_WAITER_H

#include "absl/functional/function_ref.h"

#include <atomic>
#include <chrono>
#include <cstdint>

namespace dovetail::runtime {

/// About as long as a sleeping thread takes to run again. Who spins for as long before it sleeps takes at most twice
/// the time that it would have taken if it had known how long it was to wait.
inline constexpr std::chrono::microseconds spinTime{50};

/// Spins until `ready` holds, for `spinTime` at most, and not at all where cores do not suffice for all threads and
/// `more`. Whether it holds.
bool spinUntil(absl::FunctionRef<bool()> ready, int more = 0);

/// Where one thread waits. `wait` and `sleep` are for this thread alone; `notify` is thread-safe.
class Waiter {
public:
  using Clock = std::chrono::steady_clock;

  /// Returns when `ready` holds or, when it is `until`, whether it does. Spins, then sleeps.
  bool wait(absl::FunctionRef<bool()> ready, Clock::time_point until = Clock::time_point::max(), int more = 0) {
    return spinUntil(ready, more) || sleep(ready, until);
  }
  /// The same without spinning.
  bool sleep(absl::FunctionRef<bool()> ready, Clock::time_point until = Clock::time_point::max());
  /// To be called when what the thread waits for may have come to hold, by a store that is sequentially consistent.
  void notify() {
    if (sleeping.load() != 0)
      wake();
  }

private:
  void wake();

  std::atomic<uint32_t> sleeping{0};
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_THREADS_WAITER_H
