//===- ThreadPoolTest.cpp - Tests of the pool of threads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Threads/ThreadPool.h"
#include "Threads/Cores.h"

#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <random>
#include <set>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

using namespace dovetail::runtime;

namespace {

/// Calls `body(part)` on the pool.
template <typename Function> void runOn(ThreadPool &pool, int parts, Function body) {
  pool.run(parts, [](void *context, int part) { (*static_cast<Function *>(context))(part); }, &body);
}

/// Threads of a pool, and whether cores are left for them, so that they spin.
class ThreadPoolTest : public testing::TestWithParam<std::tuple<int, bool>> {
protected:
  ThreadPoolTest() : use(std::get<1>(GetParam()) ? -1000 : Cores::available() + 1), pool(std::get<0>(GetParam())) {}
  Cores::Use use;
  ThreadPool pool;
};

} // namespace

// Whatever order threads come in, each part is done once before `run` returns, and sees what was written before.
TEST_P(ThreadPoolTest, DoesEachPartOnce) {
  std::mt19937_64 random(7);
  int size = pool.size();
  EXPECT_EQ(size, std::get<0>(GetParam()));
  std::vector<int64_t> input(size), output(size); // Not atomic: the pool orders accesses.
  std::vector<int> delays(size);
  for (int round = 0; round < 2000; ++round) {
    int parts = static_cast<int>(random() % (size + 1));
    for (int part = 0; part < size; ++part) {
      input[part] = static_cast<int64_t>(random());
      output[part] = 0;
      // Some parts take long enough for others to be done by whoever is free, some for workers to fall asleep.
      uint64_t kind = random() % 64;
      delays[part] = kind == 0 ? 200 : kind < 8 ? 5 : 0;
    }
    runOn(pool, parts, [&](int part) {
      auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(delays[part]);
      while (delays[part] > 0 && std::chrono::steady_clock::now() < end)
        ;
      output[part] += input[part] + round;
    });
    for (int part = 0; part < size; ++part)
      ASSERT_EQ(output[part], part < parts ? input[part] + round : 0) << "round " << round << ", part " << part;
    if (random() % 256 == 0)
      std::this_thread::sleep_for(4 * spinTime);
  }
}

// What each part writes is what the next job's parts read, on whatever threads.
TEST_P(ThreadPoolTest, OrdersJobs) {
  int size = pool.size();
  std::vector<int64_t> values(size), next(size);
  for (int round = 0; round < 2000; ++round) {
    runOn(pool, size, [&](int part) { next[part] = values[(part + 1) % size] + part; });
    std::swap(values, next);
  }
  // Each value has gone around, a step a round, and met every part's number as often.
  int64_t sum = 0;
  for (int64_t value : values)
    sum += value;
  EXPECT_EQ(sum, int64_t(2000) * size * (size - 1) / 2);
}

INSTANTIATE_TEST_SUITE_P(All, ThreadPoolTest, testing::Combine(testing::Values(1, 2, 3, 5, 16), testing::Bool()),
                         [](const auto &info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "Spinning" : "Sleeping");
                         });

// As ranks have pools of their own.
TEST(ThreadPool, DoesNotMindOthers) {
  std::vector<std::thread> ranks;
  std::atomic<int64_t> total{0};
  for (int rank = 0; rank < 6; ++rank)
    ranks.emplace_back([&] {
      ThreadPool pool(3);
      for (int round = 0; round < 500; ++round)
        runOn(pool, 3, [&](int part) { total += part + 1; });
    });
  for (std::thread &rank : ranks)
    rank.join();
  EXPECT_EQ(total.load(), 6 * 500 * 6);
}

TEST(ThreadPool, WorkersBeginOnce) {
  std::mutex mutex;
  std::multiset<int> begun;
  std::set<std::thread::id> ids;
  {
    ThreadPool pool(4, [&](int worker) { std::lock_guard(mutex), begun.insert(worker); });
    // Parts that wait for each other are on different threads.
    std::atomic<int> arrived{0};
    runOn(pool, 4, [&](int) {
      std::lock_guard(mutex), ids.insert(std::this_thread::get_id());
      ++arrived;
      while (arrived.load() < 4)
        std::this_thread::yield();
    });
  }
  EXPECT_EQ(begun, (std::multiset<int>{1, 2, 3}));
  EXPECT_EQ(ids.size(), 4u);
}

#if defined(__x86_64__)
TEST(ThreadPool, LeavesModesOfArithmeticAlone) {
  unsigned before = _mm_getcsr();
  ThreadPool pool(4);
  std::vector<unsigned> modes(4);
  std::atomic<int> arrived{0};
  runOn(pool, 4, [&](int part) {
    modes[part] = _mm_getcsr();
    ++arrived;
    while (arrived.load() < 4)
      std::this_thread::yield();
  });
  // All but what has happened so far.
  for (unsigned mode : modes)
    EXPECT_EQ(mode & ~0x3fu, before & ~0x3fu);
  EXPECT_EQ(_mm_getcsr() & ~0x3fu, before & ~0x3fu);
}
#endif
