//===- CutsTest.cpp - Tests of cuts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Cuts.h"
#include "Helpers.h"

#include "Random.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace dovetail::layout;
using testing::ElementsAre;

TEST(CutsTest, BalancedSizesDifferByAtMostOne) {
  EXPECT_THAT(balancedCuts(10, 4), ElementsAre(0, 3, 6, 8, 10));
  EXPECT_THAT(balancedCuts(8, 4), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(balancedCuts(2, 4), ElementsAre(0, 1, 2, 2, 2));
  EXPECT_THAT(balancedCuts(0, 2), ElementsAre(0, 0, 0));
  EXPECT_THAT(balancedCuts(5, 1), ElementsAre(0, 5));
}

TEST(CutsTest, AlignedBalancedCutsAreMultiples) {
  // 4 units of 8, the last one of 5.
  EXPECT_THAT(balancedCuts(29, 2, 8), ElementsAre(0, 16, 29));
  EXPECT_THAT(balancedCuts(29, 3, 8), ElementsAre(0, 16, 24, 29));
  EXPECT_THAT(balancedCuts(29, 6, 8), ElementsAre(0, 8, 16, 24, 29, 29, 29));
}

TEST(CutsTest, ChunkCutsAreThoseOfTorchChunk) {
  // torch.arange(10).chunk(4): 3, 3, 3, 1. torch.arange(9).chunk(4): 3, 3, 3.
  EXPECT_THAT(chunkCuts(10, 4), ElementsAre(0, 3, 6, 9, 10));
  EXPECT_THAT(chunkCuts(9, 4), ElementsAre(0, 3, 6, 9, 9));
  EXPECT_THAT(chunkCuts(5, 4), ElementsAre(0, 2, 4, 5, 5));
  EXPECT_THAT(chunkCuts(0, 2), ElementsAre(0, 0, 0));
}

TEST(CutsTest, CutsFromSizesAreSums) {
  EXPECT_THAT(cutsFromSizes(std::vector<int64_t>{300, 212, 0, 232}), ElementsAre(0, 300, 512, 512, 744));
  EXPECT_THAT(cutsFromSizes({}), ElementsAre(0));
}

TEST(CutsTest, PiecesLieBetweenCuts) {
  std::vector<int64_t> cuts = {0, 3, 3, 5};
  std::vector<Interval> pieces = piecesFromCuts(cuts);
  EXPECT_THAT(pieces, ElementsAre(Interval{0, 3}, Interval{3, 3}, Interval{3, 5}));
  EXPECT_EQ(pieces[1].lo, 3);
}

TEST(CutsTest, ValidCutsRunFromZeroToTheExtent) {
  EXPECT_TRUE(isValidCuts(std::vector<int64_t>{0, 3, 3, 5}, 5));
  EXPECT_FALSE(isValidCuts(std::vector<int64_t>{0, 3, 2, 5}, 5));
  EXPECT_FALSE(isValidCuts(std::vector<int64_t>{1, 3, 5}, 5));
  EXPECT_FALSE(isValidCuts(std::vector<int64_t>{0, 3, 5}, 6));
  EXPECT_FALSE(isValidCuts({}, 0));
}

TEST(CutsTest, RandomCutsKeepTheirPromises) {
  forRandomCases(1000, [](Random &random) {
    int64_t n = random.between(0, 200), parts = random.between(1, 20), align = random.between(1, 9);

    std::vector<int64_t> balanced = balancedCuts(n, parts, align);
    ASSERT_EQ(static_cast<int64_t>(balanced.size()), parts + 1);
    EXPECT_TRUE(isValidCuts(balanced, n));
    int64_t least = n, most = 0;
    for (int64_t p = 0; p < parts; ++p) {
      EXPECT_TRUE(balanced[p] % align == 0 || balanced[p] == n);
      // Sizes in units, a short one counting as whole.
      int64_t units = (balanced[p + 1] - balanced[p] + align - 1) / align;
      least = std::min(least, units);
      most = std::max(most, units);
    }
    EXPECT_LE(most - least, 1);

    std::vector<int64_t> chunks = chunkCuts(n, parts);
    ASSERT_EQ(static_cast<int64_t>(chunks.size()), parts + 1);
    EXPECT_TRUE(isValidCuts(chunks, n));
    int64_t size = (n + parts - 1) / parts;
    for (int64_t p = 0, left = n; p < parts; ++p) {
      EXPECT_EQ(chunks[p + 1] - chunks[p], std::min(size, left));
      left -= std::min(size, left);
    }
  });
}

/// The least that the longest time of `n` elements on pieces of these speeds, from number `piece` on, can be.
static double getLeastTime(int64_t n, const std::vector<double> &speeds, size_t piece = 0) {
  if (piece + 1 == speeds.size())
    return static_cast<double>(n) / speeds[piece];
  double least = std::numeric_limits<double>::infinity();
  for (int64_t size = 0; size <= n; ++size)
    least =
        std::min(least, std::max(static_cast<double>(size) / speeds[piece], getLeastTime(n - size, speeds, piece + 1)));
  return least;
}

TEST(CutsTest, WeightedCutsTakeTheLeastTime) {
  EXPECT_EQ(weightedCuts(12, std::vector<double>{1, 2, 3}), (std::vector<int64_t>{0, 2, 6, 12}));
  EXPECT_EQ(weightedCuts(1, std::vector<double>{1, 3}), (std::vector<int64_t>{0, 0, 1}));
  forRandomCases(300, [](Random &random) {
    int64_t n = random.between(0, 20);
    std::vector<double> speeds;
    for (int64_t i = 0, parts = random.between(1, 4); i < parts; ++i)
      speeds.push_back(static_cast<double>(random.between(1, 50)) / 7);
    std::vector<int64_t> cuts = weightedCuts(n, speeds);
    ASSERT_EQ(cuts.size(), speeds.size() + 1);
    EXPECT_TRUE(isValidCuts(cuts, n));
    double longest = 0;
    for (size_t p = 0; p < speeds.size(); ++p)
      longest = std::max(longest, static_cast<double>(cuts[p + 1] - cuts[p]) / speeds[p]);
    EXPECT_DOUBLE_EQ(longest, getLeastTime(n, speeds));
    EXPECT_EQ(weightedCuts(n, std::vector<double>(speeds.size(), 0.3)), balancedCuts(n, speeds.size()));
  });
}
