//===- ArenaTest.cpp - Memory shared by liveness --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session/Arena.h"
#include "dovetail/runtime/MemoryFill.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <random>

using namespace dovetail::runtime;

namespace {

/// Checks places and bound item by item, and returns the size over the bound.
double check(std::vector<ArenaItem> items) {
  int64_t bound = arenaBound(items), total = planArena(items), most = 0, last = 0;
  for (const ArenaItem &item : items)
    last = std::max(last, item.last);
  for (int64_t position = 0; position <= last; ++position) {
    int64_t sum = 0;
    for (const ArenaItem &item : items)
      if (item.first <= position && position <= item.last)
        sum += (item.bytes + 63) / 64 * 64;
    most = std::max(most, sum);
  }
  EXPECT_EQ(bound, most);
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].bytes == 0)
      continue;
    EXPECT_EQ(items[i].offset % 64, 0);
    EXPECT_LE(items[i].offset + items[i].bytes, total);
    for (size_t j = 0; j < i; ++j)
      EXPECT_TRUE(items[j].bytes == 0 || items[j].last < items[i].first || items[i].last < items[j].first ||
                  items[j].offset + items[j].bytes <= items[i].offset ||
                  items[i].offset + items[i].bytes <= items[j].offset)
          << i << " and " << j;
  }
  EXPECT_GE(total, bound);
  return bound > 0 ? static_cast<double>(total) / static_cast<double>(bound) : 1;
}

} // namespace

TEST(Arena, Few) {
  EXPECT_EQ(check({}), 1);
  EXPECT_EQ(check({{0, 0, 5, 0}}), 1);
  EXPECT_EQ(check({{1, 0, 5, 0}, {65, 0, 0, 0}, {100, 1, 1, 0}, {0, 2, 2, 0}}), 1);
}

TEST(Arena, OtherOrdersThanThatOfSizes) {
  // The largest two, one after the other, want the bottom; what bridges them and what comes before and behind fit only
  // if it gets there first.
  constexpr int64_t unit = 1 << 16;
  EXPECT_LE(check({{6 * unit, 0, 1, 0},
                   {5 * unit, 1, 2, 0},
                   {5 * unit, 3, 4, 0},
                   {4 * unit, 2, 3, 0},
                   {2 * unit, 2, 2, 0},
                   {2 * unit, 3, 3, 0}}),
            1.01);
}

TEST(Arena, LongLivesFirst) {
  // The largest goes to the bottom and lives shortly; all else fits only if what outlives it is there.
  constexpr int64_t unit = 1 << 16;
  EXPECT_EQ(check({{4 * unit, 0, 5, 0},
                   {1 * unit, 2, 6, 0},
                   {6 * unit, 2, 2, 0},
                   {4 * unit, 3, 3, 0},
                   {3 * unit, 0, 0, 0},
                   {3 * unit, 3, 3, 0}}),
            1);
}

TEST(Arena, RandomLives) {
  // A chain of values, and some that are needed much later. By sizes alone it is 1.046 times the bound.
  std::mt19937_64 random(1);
  double sum = 0;
  constexpr int count = 60;
  for (int i = 0; i < count; ++i) {
    int64_t length = 50 + random() % 200;
    std::vector<ArenaItem> items;
    for (int64_t j = 0; j < length; ++j) {
      int64_t first = random() % length;
      int64_t last = first + 1 + static_cast<int64_t>(random() % 10 == 0 ? random() % length : random() % 3);
      items.push_back({static_cast<int64_t>(1 + random() % 6400000), first, last, 0});
    }
    sum += check(items);
  }
  EXPECT_LE(sum / count, 1.02);
}

TEST(Allocation, HasWhatTestsFillItWith) {
  auto isFilled = [](std::byte value) {
    absl::StatusOr<Allocation> allocation = Allocation::create(10000);
    return allocation.ok() && std::all_of(allocation->data(), allocation->data() + allocation->size(),
                                          [&](std::byte other) { return other == value; });
  };
  EXPECT_TRUE(isFilled(std::byte{0}));
  fillMemory(std::byte{0xff});
  EXPECT_TRUE(isFilled(std::byte{0xff}));
  fillMemory(std::byte{0});
  EXPECT_TRUE(isFilled(std::byte{0}));
}
