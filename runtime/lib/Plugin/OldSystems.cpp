//===- OldSystems.cpp - Functions that older systems lack -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines functions that LLVM's archives and our own code call, and that only newer systems have. With these functions,
// programs built on Debian 12 run on systems with glibc 2.34 and the C++ library of GCC 11 (manylinux_2_34). No other
// library sees them.
//
//===----------------------------------------------------------------------===//

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <sys/random.h>

extern "C" {

/// glibc 2.36 has it.
__attribute__((visibility("hidden"))) uint32_t arc4random() {
  uint32_t value;
  // Requests of so few bytes are not interrupted (getrandom(2)).
  if (::getrandom(&value, sizeof value, 0) != sizeof value)
    std::abort();
  return value;
}

/// std::condition_variable::wait, which GCC 12 gave a new version.
__attribute__((visibility("hidden"))) void dovetailConditionWait(std::condition_variable *condition,
                                                                 std::unique_lock<std::mutex> *lock) noexcept
    __asm__("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
void dovetailConditionWait(std::condition_variable *condition, std::unique_lock<std::mutex> *lock) noexcept {
  ::pthread_cond_wait(condition->native_handle(), lock->mutex()->native_handle());
}

} // extern "C"
