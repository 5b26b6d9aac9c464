//===- Processes.h - Ranks as processes, for tests -------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_RUNTIME_PROCESSES_H
#define DOVETAIL_TEST_RUNTIME_PROCESSES_H

#include "dovetail/runtime/LaunchEnvironment.h"

#include <functional>
#include <string>
#include <vector>

namespace dovetail::test {

/// A port of this machine that nobody listens on.
int freePort();

/// How a process ended: its exit code, or the negative number of the signal that killed it, and what its body returned.
struct Outcome {
  int code;
  std::string text;
};

/// Runs `body` in a process for each of `size` ranks, forks of this one, and waits for them. Failed expectations make
/// the exit code 1.
std::vector<Outcome> inProcesses(int size, const std::function<std::string(const runtime::LaunchEnvironment &)> &body);

} // namespace dovetail::test

#endif // DOVETAIL_TEST_RUNTIME_PROCESSES_H
