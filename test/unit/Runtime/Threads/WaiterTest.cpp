//===- WaiterTest.cpp - Tests of waiting threads -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Threads/Waiter.h"
#include "Threads/Cores.h"

#include <gtest/gtest.h>
#include <memory>
#include <thread>
#include <vector>

using namespace dovetail::runtime;

namespace {

/// With all cores in use, so that nobody spins, and with none.
class WaiterTest : public testing::TestWithParam<bool> {
protected:
  WaiterTest() : use(GetParam() ? Cores::available() + 1 : 0) {}
  Cores::Use use;
};

} // namespace

TEST_P(WaiterTest, ReturnsWhatHoldsAlready) {
  Waiter waiter;
  EXPECT_TRUE(waiter.wait([] { return true; }));
  EXPECT_TRUE(waiter.wait([] { return true; }, Waiter::Clock::now()));
}

TEST_P(WaiterTest, GivesUpInTime) {
  Waiter waiter;
  auto begin = Waiter::Clock::now();
  EXPECT_FALSE(waiter.wait([] { return false; }, begin + std::chrono::milliseconds(20)));
  EXPECT_GE(Waiter::Clock::now() - begin, std::chrono::milliseconds(20));
  // What others say has changed does not end it.
  waiter.notify();
  EXPECT_FALSE(waiter.wait([] { return false; }, Waiter::Clock::now() + std::chrono::milliseconds(1)));
}

// Each of many threads waits for the one before. A notification that is lost makes the test hang.
TEST_P(WaiterTest, MissesNoNotification) {
  constexpr int threads = 7, rounds = 2000;
  struct Place {
    Waiter waiter;
    std::atomic<int> count{0};
  };
  std::vector<Place> places(threads);
  std::vector<int> plain(threads); // What is written before `count` is seen after it.
  auto run = [&](int index) {
    Place &own = places[index], &next = places[(index + 1) % threads];
    for (int round = 1; round <= rounds; ++round) {
      if (index > 0 || round > 1)
        own.waiter.wait([&] { return own.count.load() >= (index == 0 ? round - 1 : round); });
      if (index > 0) {
        EXPECT_EQ(plain[index - 1], round);
      }
      plain[index] = round;
      next.count.fetch_add(1);
      next.waiter.notify();
    }
  };
  std::vector<std::thread> others;
  for (int index = 1; index < threads; ++index)
    others.emplace_back(run, index);
  run(0);
  for (std::thread &thread : others)
    thread.join();
  EXPECT_EQ(places[0].count.load(), rounds);
}

TEST(Waiter, SpinsOnlyWhereCoresSuffice) {
  int looks = 0;
  auto look = [&] { return ++looks < 0; };
  {
    Cores::Use use(Cores::available() + 1);
    EXPECT_FALSE(spinUntil(look));
    EXPECT_EQ(looks, 1);
  }
  EXPECT_FALSE(spinUntil(look, /*more=*/Cores::available() + 1));
  EXPECT_EQ(looks, 2);
  auto begin = Waiter::Clock::now();
  EXPECT_FALSE(spinUntil(look, /*more=*/-1000)); // Ranks that tests left behind as they hang are still announced.
  EXPECT_GE(Waiter::Clock::now() - begin, spinTime);
  EXPECT_GT(looks, 10);
}

INSTANTIATE_TEST_SUITE_P(Cores, WaiterTest, testing::Bool(),
                         [](const auto &info) { return info.param ? "InUse" : "Free"; });
