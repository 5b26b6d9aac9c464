//===- Waiter.cpp - Waiting for other threads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Waiter.h"

#include "Cores.h"

#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace dovetail::runtime;

static_assert(sizeof(std::atomic<uint32_t>) == 4, "the kernel looks at the word itself");

/// For as long who spins keeps the core.
static constexpr std::chrono::microseconds politeTime{4};

/// Lets the core's other thread, or its power, have the cycles.
static void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool dovetail::runtime::spinUntil(absl::FunctionRef<bool()> ready, int more) {
  if (ready())
    return true;
  if (!Cores::suffice(more))
    return false;
  constexpr int looksBetweenTimes = 16;
  auto begin = std::chrono::steady_clock::now(), now = begin;
  do {
    for (int i = 0; i < looksBetweenTimes; ++i) {
      relax();
      if (ready())
        return true;
    }
    // Who is waited for may share this core, where other programs are on the rest.
    if (now - begin > politeTime)
      ::sched_yield();
    now = std::chrono::steady_clock::now();
  } while (now - begin < spinTime);
  return ready();
}

bool Waiter::sleep(absl::FunctionRef<bool()> ready, Clock::time_point until) {
  for (;;) {
    // Who makes `ready` hold after the look below finds that the thread sleeps, and wakes it.
    sleeping.store(1);
    if (ready()) {
      sleeping.store(0, std::memory_order_relaxed);
      return true;
    }
    timespec left{};
    bool isLimited = until != Clock::time_point::max();
    if (isLimited) {
      auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now()).count();
      if (rest <= 0) {
        sleeping.store(0, std::memory_order_relaxed);
        return false;
      }
      left = {static_cast<time_t>(rest / 1000000000), static_cast<long>(rest % 1000000000)};
    }
    // Returns at once if the word has changed; errors and signals lead to another look.
    ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&sleeping), FUTEX_WAIT_PRIVATE, 1, isLimited ? &left : nullptr,
              nullptr, 0);
  }
}

void Waiter::wake() {
  if (sleeping.exchange(0) != 0)
    ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&sleeping), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}
