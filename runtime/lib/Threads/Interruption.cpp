//===- Interruption.cpp - Calls that SIGINT ends early --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements InterruptScope.
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/Interruption.h"

#include <atomic>
#include <csignal>
#include <unistd.h>

using namespace dovetail;

namespace {

std::atomic<bool> isWanted = false, hasArrived = false;
/// The action of SIGINT outside of the scope. There is one scope at most, that of the main thread.
struct sigaction previous = {};
thread_local bool isInScope = false;

void noteInterrupt(int signal, siginfo_t *info, void *context) {
  hasArrived.store(true);
  if (previous.sa_flags & SA_SIGINFO)
    previous.sa_sigaction(signal, info, context);
  else
    previous.sa_handler(signal);
}

bool isHandled(const struct sigaction &action) {
  return (action.sa_flags & SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

} // namespace

void runtime::setInterruptible(bool isInterruptible) { isWanted = isInterruptible; }

runtime::InterruptScope::InterruptScope() {
  if (isInScope || !isWanted || ::gettid() != ::getpid())
    return;
  struct sigaction now = {};
  if (::sigaction(SIGINT, nullptr, &now) != 0 || !isHandled(now))
    return;
  previous = now;
  hasArrived = false;
  struct sigaction own = now;
  own.sa_flags |= SA_SIGINFO;
  own.sa_sigaction = noteInterrupt;
  if (::sigaction(SIGINT, &own, nullptr) != 0)
    return;
  isOutermost = isInScope = true;
}

runtime::InterruptScope::~InterruptScope() {
  if (!isOutermost)
    return;
  isInScope = false;
  // Whoever has set another handler meanwhile keeps it.
  struct sigaction now = {};
  if (::sigaction(SIGINT, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == noteInterrupt)
    ::sigaction(SIGINT, &previous, nullptr);
}

bool runtime::isInterruptible() { return isInScope; }

bool runtime::isInterrupted() { return isInScope && hasArrived.load(std::memory_order_relaxed); }
