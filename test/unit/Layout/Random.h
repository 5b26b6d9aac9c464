//===- Random.h - Seeded random cases for property tests -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TEST_UNIT_LAYOUT_RANDOM_H
#define DOVETAIL_TEST_UNIT_LAYOUT_RANDOM_H

#include "dovetail/Layout/Interval.h"

#include "gtest/gtest.h"

#include <cstdio>
#include <cstdlib>
#include <random>

namespace dovetail::layout {

/// Random choices of one test case.
class Random {
public:
  explicit Random(uint64_t seed) : engine(seed) {}

  /// A number in `lo ... hi`, both included.
  int64_t between(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(engine); }
  int below(int bound) { return static_cast<int>(between(0, bound - 1)); }
  bool chance(int percent) { return below(100) < percent; }

  template <typename T> void shuffle(std::vector<T> &list) { std::shuffle(list.begin(), list.end(), engine); }

  /// Cuts of `[0, extent)` into `parts` pieces, some of them often empty.
  std::vector<int64_t> cuts(int64_t extent, int parts) {
    std::vector<int64_t> cuts = {0, extent};
    for (int i = 1; i < parts; ++i)
      cuts.push_back(between(0, extent));
    std::sort(cuts.begin(), cuts.end());
    return cuts;
  }

private:
  std::mt19937_64 engine;
};

/// Runs `check` on `cases` random cases until one fails. The seed of the first is printed; the environment variable
/// DOVETAIL_TEST_SEED sets it. A failure names the seed of its case.
template <typename Check> void forRandomCases(int cases, Check check) {
  const char *given = std::getenv("DOVETAIL_TEST_SEED");
  uint64_t seed = given ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("DOVETAIL_TEST_SEED=%llu, %d cases\n", static_cast<unsigned long long>(seed), cases);
  for (int i = 0; i < cases; ++i) {
    SCOPED_TRACE("DOVETAIL_TEST_SEED=" + std::to_string(seed + i));
    Random random(seed + i);
    check(random);
    if (testing::Test::HasFailure())
      return;
  }
}

} // namespace dovetail::layout

#endif // DOVETAIL_TEST_UNIT_LAYOUT_RANDOM_H
