//===- PinTest.cpp - Tests of threads that stay on a processor ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/PlanBuilder.h"

#include "Threads/Cores.h"
#include "dovetail/dovetail.hpp"
#include "dovetail/runtime/ProgramRunner.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <sched.h>
#include <thread>

using namespace dovetail;
using namespace dovetail::test;

namespace {

using Processors = std::vector<int>;

/// The threads of this process, and where each may run.
std::map<int, Processors> threadsHere() {
  std::map<int, Processors> result;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/task")) {
    int thread = std::stoi(entry.path().filename().string());
    cpu_set_t set;
    if (::sched_getaffinity(thread, sizeof(set), &set) != 0)
      continue; // It has just ended.
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set))
        result[thread].push_back(i);
  }
  return result;
}

PlanBuilder twoRanks() {
  PlanBuilder builder({2});
  uint32_t value = builder.value({4}, sharding(1), {}, "in");
  builder.input("in", value);
  builder.output("out", value);
  return builder;
}

/// A runner of two ranks, as C++ inside of the runtime makes it.
auto makeRunner(int threads, bool pin) {
  runtime::RunnerOptions options;
  options.threads = threads;
  options.pin = pin;
  auto runner = runtime::ProgramRunner::create(twoRanks().program(), options);
  EXPECT_TRUE(runner.ok()) << runner.status();
  return runner;
}

/// The same, through the C interface.
auto makeRunnerInC(int threads, bool pin) {
  std::vector<std::byte> bytes = twoRanks().artifact();
  return dovetail::Runner(dovetail::Program(bytes.data(), bytes.size()), threads, /*timeoutSeconds=*/60,
                          /*autotune=*/false, "local", pin);
}

/// Where the threads may run that `make` starts from this one for its runner, ascending; as soon as it is as
/// `expected`.
template <typename Make>
std::vector<Processors> startedFor(Make make, int threads, bool pin, const std::vector<Processors> &expected) {
  std::map<int, Processors> before = threadsHere();
  auto runner = make(threads, pin);
  // A worker may not have begun yet, and is then where the thread is that started it: what it does first comes before
  // its part of the first job, but there is none.
  std::vector<Processors> result;
  for (int tries = 0; tries < 1000; ++tries) {
    result.clear();
    for (const auto &[thread, processors] : threadsHere())
      if (!before.count(thread))
        result.push_back(processors);
    std::sort(result.begin(), result.end());
    if (!pin || result == expected)
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return result;
}

} // namespace

TEST(Pin, ThreadsOfRanksTakeTurnsInsideTheMask) {
  Processors all = runtime::allowedProcessors();
  for (size_t size : {all.size(), std::min<size_t>(all.size(), 2)})
    // The mask of the thread that starts the ranks, which is the caller's.
    std::thread([&] {
      Processors mask(all.end() - static_cast<std::ptrdiff_t>(size), all.end());
      cpu_set_t set;
      CPU_ZERO(&set);
      for (int processor : mask)
        CPU_SET(processor, &set);
      ASSERT_EQ(::sched_setaffinity(0, sizeof(set), &set), 0);
      std::vector<Processors> expected;
      for (size_t thread = 0; thread < 5; ++thread)
        expected.push_back({mask[thread % size]});
      std::sort(expected.begin(), expected.end());
      EXPECT_EQ(startedFor(makeRunner, 5, /*pin=*/true, expected), expected);
      EXPECT_EQ(startedFor(makeRunnerInC, 5, /*pin=*/true, expected), expected);
      EXPECT_EQ(runtime::allowedProcessors(), mask) << "the caller's thread";
      std::vector<Processors> free(5, mask);
      EXPECT_EQ(startedFor(makeRunner, 5, /*pin=*/false, free), free);
      EXPECT_EQ(startedFor(makeRunnerInC, 5, /*pin=*/false, free), free);
    }).join();
}
