//===- DimMapTest.cpp - Tests of dimension maps by example -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/DimMap.h"
#include "Helpers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace dovetail::layout;
using testing::ElementsAre;
using testing::Optional;

using Cuts = std::vector<int64_t>;

//===----------------------------------------------------------------------===//
// Need
//===----------------------------------------------------------------------===//

TEST(DimMapTest, WindowNeedsItsRowsAndPadding) {
  // Kernel 3, stride 2, dilation 1, pad 1: row i reads 2i-1 ... 2i+1.
  DimMap map = DimMap::window(3, 2, 1, 1);
  EXPECT_EQ(map.need({0, 8}), (Interval{-1, 16}));
  EXPECT_EQ(map.needClipped({0, 8}, 32), (Interval{0, 16}));
  EXPECT_EQ(map.need({8, 16}), (Interval{15, 32}));
  EXPECT_TRUE(map.need({5, 5}).empty());
}

TEST(DimMapTest, DilatedWindow) { EXPECT_EQ(DimMap::window(3, 1, 4, 4).need({10, 11}), (Interval{6, 15})); }

TEST(DimMapTest, WindowInThePaddingNeedsNothingOfTheOperand) {
  EXPECT_EQ(DimMap::window(1, 1, 1, 1).need({0, 1}), (Interval{-1, 0}));
  EXPECT_TRUE(DimMap::window(1, 1, 1, 1).needClipped({0, 1}, 8).empty());
}

TEST(DimMapTest, TransposedWindow) {
  // Kernel 2, stride 2: o reads floor(o / 2).
  EXPECT_EQ(transposedWindow(2, 2, 1, 0).need({3, 7}), (Interval{1, 4}));
  // Kernel 4, stride 2, pad 1: o reads two of them.
  EXPECT_EQ(transposedWindow(4, 2, 1, 1).need({3, 4}), (Interval{1, 3}));
}

TEST(DimMapTest, TransposedWindowSmallerThanItsStrideLeavesGaps) {
  // Kernel 1, stride 3: only multiples of 3 read anything.
  DimMap map = transposedWindow(1, 3, 1, 0);
  EXPECT_EQ(map.need({3, 4}), (Interval{1, 2}));
  EXPECT_TRUE(map.need({4, 6}).empty());
  EXPECT_EQ(map.need({4, 9}), (Interval{2, 3}));
  EXPECT_EQ(map.need({1, 9}), (Interval{1, 3}));
}

TEST(DimMapTest, SlicesRunBothWays) {
  EXPECT_EQ(DimMap::slice(3, 2).need({0, 4}), (Interval{3, 10}));
  EXPECT_EQ(DimMap::slice(9, -2).need({0, 4}), (Interval{3, 10}));
  EXPECT_EQ(DimMap::slice(9, -2).need({1, 3}), (Interval{5, 8}));
  EXPECT_EQ(DimMap::shift(-2).need({0, 4}), (Interval{-2, 2}));
}

TEST(DimMapTest, Groups) {
  EXPECT_EQ(DimMap::merge(4).need({3, 9}), (Interval{0, 3}));
  EXPECT_EQ(DimMap::split(4).need({2, 4}), (Interval{8, 16}));
}

TEST(DimMapTest, TableNeedsTheHullOfItsEntries) {
  // Reflected padding of 4 elements by 2 on both sides.
  Cuts source = {2, 1, 0, 1, 2, 3, 2, 1};
  DimMap map = DimMap::table(source, source);
  EXPECT_EQ(map.need({0, 3}), (Interval{0, 3}));
  EXPECT_EQ(map.need({5, 8}), (Interval{1, 4}));
  EXPECT_EQ(map.need({5, 99}), (Interval{1, 4}));
  EXPECT_TRUE(map.need({3, 3}).empty());
  // An entry whose first exceeds its last needs nothing.
  EXPECT_EQ(DimMap::table({0, 5}, {-1, 6}).need({0, 2}), (Interval{5, 7}));
}

TEST(DimMapTest, WholeAndPointDoNotDependOnTheLoop) {
  EXPECT_EQ(DimMap::whole().needClipped({0, 1}, 10), (Interval{0, 10}));
  EXPECT_EQ(DimMap::whole().needClipped({}, 10), (Interval{0, 10}));
  EXPECT_TRUE(DimMap::whole().need({}).contains(Interval{0, 1 << 30}));
  EXPECT_EQ(DimMap::broadcastPoint().need({5, 9}), (Interval{0, 1}));
  EXPECT_EQ(DimMap::broadcastPoint().needClipped({5, 9}, 1), (Interval{0, 1}));
}

TEST(DimMapTest, FarCoordinatesDoNotOverflow) {
  int64_t far = int64_t(1) << 60;
  EXPECT_EQ(DimMap::slice(0, 1 << 20).need({far, far + 1}).hi, (int64_t(1) << 62) + 1);
  EXPECT_EQ(DimMap::affine(far, far, 0, 0).need({7, 9}), (Interval{7, 9}));
}

//===----------------------------------------------------------------------===//
// Follow
//===----------------------------------------------------------------------===//

TEST(DimMapTest, UnevenStridedConvolutions) {
  // Kernel 3, stride 2, pad 1 on 15 + 17 and on 9 + 9 rows.
  EXPECT_THAT(DimMap::window(3, 2, 1, 1).follow(Cuts{0, 15, 32}, 16), Optional(ElementsAre(0, 8, 16)));
  EXPECT_THAT(DimMap::window(3, 2, 1, 1).follow(Cuts{0, 9, 18}, 9), Optional(ElementsAre(0, 5, 9)));
  // Kernel 2, stride 2 on 17 + 16.
  EXPECT_THAT(DimMap::window(2, 2, 1, 0).follow(Cuts{0, 17, 33}, 16), Optional(ElementsAre(0, 9, 16)));
  // Kernel 7, stride 2, pad 3 on 9 + 9 + 9 + 5.
  EXPECT_THAT(DimMap::window(7, 2, 1, 3).follow(Cuts{0, 9, 18, 27, 32}, 16), Optional(ElementsAre(0, 5, 9, 14, 16)));
  // Kernel 1, pad 1 on 4 + 4: each padding row goes with its neighbour.
  EXPECT_THAT(DimMap::window(1, 1, 1, 1).follow(Cuts{0, 4, 8}, 10), Optional(ElementsAre(0, 5, 10)));
}

TEST(DimMapTest, EmptyShardsStayEmpty) {
  EXPECT_THAT(DimMap::window(1, 1, 1, 1).follow(Cuts{0, 0, 4, 4, 8, 8}, 10), Optional(ElementsAre(0, 0, 5, 5, 10, 10)));
  EXPECT_THAT(DimMap::window(3, 2, 1, 1).follow(Cuts{0, 0, 5, 9, 9}, 5), Optional(ElementsAre(0, 0, 3, 5, 5)));
}

TEST(DimMapTest, SlicedAwayShardsBecomeEmpty) {
  EXPECT_THAT(DimMap::slice(10, 1).follow(Cuts{0, 5, 10, 15, 20}, 5), Optional(ElementsAre(0, 0, 0, 5, 5)));
}

TEST(DimMapTest, TransposedConvolutionScalesCuts) {
  EXPECT_THAT(transposedWindow(2, 2, 1, 0).follow(Cuts{0, 3, 7, 9}, 18), Optional(ElementsAre(0, 6, 14, 18)));
  EXPECT_THAT(transposedWindow(4, 2, 1, 1).follow(Cuts{0, 3, 7, 9}, 18), Optional(ElementsAre(0, 6, 14, 18)));
}

TEST(DimMapTest, GroupsFollowAtTheirBorders) {
  EXPECT_THAT(DimMap::merge(4).follow(Cuts{0, 2, 5}, 20), Optional(ElementsAre(0, 8, 20)));
  EXPECT_THAT(DimMap::split(4).follow(Cuts{0, 8, 20}, 5), Optional(ElementsAre(0, 2, 5)));
}

TEST(DimMapTest, UpsamplingTablesDoubleCuts) {
  // Nearest, scale 2.
  Cuts nearest = {0, 0, 1, 1, 2, 2, 3, 3};
  EXPECT_THAT(DimMap::table(nearest, nearest).follow(Cuts{0, 1, 3, 4}, 8), Optional(ElementsAre(0, 2, 6, 8)));
  // Linear with half-pixel centres, scale 2.
  DimMap linear = DimMap::table({0, 0, 0, 1, 1, 2, 2, 3}, {0, 1, 1, 2, 2, 3, 3, 3});
  EXPECT_THAT(linear.follow(Cuts{0, 1, 3, 4}, 8), Optional(ElementsAre(0, 2, 6, 8)));
}

TEST(DimMapTest, PaddingTablesShiftCuts) {
  Cuts reflect = {2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 6, 5};
  EXPECT_THAT(DimMap::table(reflect, reflect).follow(Cuts{0, 4, 8}, 12), Optional(ElementsAre(0, 6, 12)));
  Cuts wrap = {6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1};
  EXPECT_THAT(DimMap::table(wrap, wrap).follow(Cuts{0, 4, 8}, 12), Optional(ElementsAre(0, 6, 12)));
}

TEST(DimMapTest, NothingFollowsWhatRunsBackwardsOrHasNoLoop) {
  Cuts cuts = {0, 4, 8}, reversed = {7, 6, 5, 4, 3, 2, 1, 0};
  EXPECT_EQ(DimMap::slice(7, -1).follow(cuts, 8), std::nullopt);
  EXPECT_EQ(DimMap::slice(7, 0).follow(cuts, 8), std::nullopt);
  EXPECT_EQ(DimMap::table(reversed, reversed).follow(cuts, 8), std::nullopt);
  EXPECT_EQ(DimMap::whole().follow(cuts, 8), std::nullopt);
  EXPECT_EQ(DimMap::broadcastPoint().follow(cuts, 8), std::nullopt);
  EXPECT_EQ(DimMap::whole().followBack(cuts, 8), std::nullopt);
  EXPECT_EQ(DimMap::slice(7, -1).followBack(cuts, 8), std::nullopt);
}

//===----------------------------------------------------------------------===//
// Follow back and alignment
//===----------------------------------------------------------------------===//

TEST(DimMapTest, AlignedCutsGoForthAndBack) {
  std::vector<DimMap> maps = {DimMap::window(3, 2, 1, 1), DimMap::window(2, 2, 1, 0), DimMap::window(7, 2, 1, 3),
                              DimMap::window(4, 2, 1, 1), DimMap::window(1, 2, 1, 0), DimMap::split(2)};
  for (const DimMap &map : maps) {
    SCOPED_TRACE(map.str());
    EXPECT_THAT(map.follow(Cuts{0, 6, 10, 32}, 16), Optional(ElementsAre(0, 3, 5, 16)));
    EXPECT_THAT(map.followBack(Cuts{0, 3, 5, 16}, 32), Optional(ElementsAre(0, 6, 10, 32)));
  }
  for (const DimMap &map : {transposedWindow(2, 2, 1, 0), DimMap::merge(2)})
    EXPECT_THAT(map.followBack(Cuts{0, 6, 10, 32}, 16), Optional(ElementsAre(0, 3, 5, 16)));
}

TEST(DimMapTest, OddCutsOfATransposedConvolutionRoundDown) {
  EXPECT_THAT(transposedWindow(2, 2, 1, 0).followBack(Cuts{0, 7, 18}, 9), Optional(ElementsAre(0, 3, 9)));
}

TEST(DimMapTest, EndsStayEnds) {
  EXPECT_THAT(DimMap::window(1, 1, 1, 1).followBack(Cuts{0, 0, 5, 10, 10}, 8), Optional(ElementsAre(0, 0, 4, 8, 8)));
}

//===----------------------------------------------------------------------===//
// Equality and printing
//===----------------------------------------------------------------------===//

TEST(DimMapTest, IdentityAndEquality) {
  EXPECT_TRUE(DimMap::identity().isIdentity());
  EXPECT_TRUE(DimMap::window(1, 1, 1, 0).isIdentity());
  EXPECT_TRUE(DimMap::affine(2, 2, 1, 1).isIdentity());
  EXPECT_FALSE(DimMap::affine(2, 2, 2, 2).isIdentity());
  EXPECT_FALSE(DimMap::window(3, 1, 1, 1).isIdentity());
  EXPECT_FALSE(DimMap::whole().isIdentity());
  EXPECT_EQ(DimMap::window(1, 1, 1, 0), DimMap::identity());
  EXPECT_EQ(DimMap::table({0, 1}, {0, 2}), DimMap::table({0, 1}, {0, 2}));
  EXPECT_FALSE(DimMap::table({0, 1}, {0, 2}) == DimMap::table({0, 1}, {0, 3}));
  EXPECT_FALSE(DimMap::whole() == DimMap::broadcastPoint());
}

TEST(DimMapTest, Prints) {
  EXPECT_EQ(DimMap::identity().str(), "i");
  EXPECT_EQ(DimMap::window(3, 2, 1, 1).str(), "2*i - 1 ... 2*i + 1");
  EXPECT_EQ(DimMap::merge(4).str(), "i / 4");
  EXPECT_EQ(DimMap::slice(9, -1).str(), "-i + 9");
  EXPECT_EQ(transposedWindow(4, 2, 1, 1).str(), "(i - 1) / 2 ... (i + 1) / 2");
  EXPECT_EQ(DimMap::whole().str(), "whole");
  EXPECT_EQ(DimMap::broadcastPoint().str(), "point");
  EXPECT_EQ(DimMap::table({0}, {0}).str(), "table of 1");
}
