//===- ShardingTest.cpp - Tests of shardings -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Sharding.h"
#include "Helpers.h"

#include "dovetail/Layout/Cuts.h"

#include "Random.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace dovetail::layout;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

namespace {

const Mesh mesh({{"y", 3}, {"x", 2}});
const std::vector<int64_t> shape = {8, 10, 9};

/// Rows over "y", columns over "x".
Sharding rowsAndColumns() {
  Sharding sharding = Sharding::replicated(3);
  sharding.dims[1] = DimSharding::fromCuts({0}, std::vector<int64_t>{0, 3, 3, 10});
  sharding.dims[2] = DimSharding::fromCuts({1}, balancedCuts(9, 2));
  return sharding;
}

} // namespace

TEST(DimShardingTest, CutsTileInOrder) {
  DimSharding dim = DimSharding::fromCuts({0}, std::vector<int64_t>{0, 3, 3, 10});
  EXPECT_TRUE(dim.isSplit());
  EXPECT_TRUE(dim.isCuts(10));
  EXPECT_FALSE(dim.isCuts(11));
  EXPECT_THAT(dim.cuts(10), Optional(ElementsAre(0, 3, 3, 10)));
}

TEST(DimShardingTest, WindowsAreNotCuts) {
  EXPECT_FALSE((DimSharding{{0}, {{0, 4}, {3, 8}, {7, 10}}}.isCuts(10)));
  EXPECT_FALSE((DimSharding{{0}, {{0, 3}, {4, 8}, {8, 10}}}.isCuts(10)));
  EXPECT_FALSE((DimSharding{{0}, {{8, 10}, {3, 8}, {0, 3}}}.isCuts(10)));
}

TEST(DimShardingTest, EmptyPiecesOfCutsLieAnywhere) {
  DimSharding dim{{0}, {{0, 4}, {0, 0}, {4, 10}}};
  EXPECT_THAT(dim.cuts(10), Optional(ElementsAre(0, 4, 4, 10)));
  EXPECT_EQ(dim, DimSharding::fromCuts({0}, std::vector<int64_t>{0, 4, 4, 10}));
}

TEST(DimShardingTest, CoversWhatLiesInSomePiece) {
  EXPECT_TRUE((DimSharding{{0}, {{6, 10}, {0, 4}, {3, 8}}}.covers(10)));
  EXPECT_FALSE((DimSharding{{0}, {{0, 4}, {5, 10}}}.covers(10)));
  EXPECT_FALSE((DimSharding{{0}, {{0, 4}, {4, 9}}}.covers(10)));
  EXPECT_TRUE((DimSharding{{0}, {{0, 0}, {0, 0}}}.covers(0)));
  EXPECT_TRUE(DimSharding().covers(10));
}

TEST(DimShardingTest, OwnersShareWhatOverlaps) {
  EXPECT_THAT((DimSharding{{0}, {{0, 5}, {3, 8}, {7, 10}}}.ownerCuts(10)), Optional(ElementsAre(0, 4, 7, 10)));
  EXPECT_THAT((DimSharding{{0}, {{0, 1}, {0, 1}, {1, 2}, {1, 2}}}.ownerCuts(2)), Optional(ElementsAre(0, 0, 1, 1, 2)));
  EXPECT_THAT((DimSharding{{0}, {{0, 6}, {6, 6}, {4, 10}}}.ownerCuts(10)), Optional(ElementsAre(0, 5, 5, 10)));
  EXPECT_THAT((DimSharding{{0}, {{0, 4}, {0, 0}, {4, 10}}}.ownerCuts(10)), Optional(ElementsAre(0, 4, 4, 10)));
  EXPECT_EQ((DimSharding{{0}, {{3, 10}, {0, 5}}}.ownerCuts(10)), std::nullopt);
  EXPECT_EQ((DimSharding{{0}, {{0, 4}, {5, 10}}}.ownerCuts(10)), std::nullopt);
}

TEST(DimShardingTest, OwnersHoldWhatTheyOwn) {
  forRandomCases(2000, [](Random &random) {
    int64_t extent = random.between(0, 12);
    std::vector<int64_t> cuts = random.cuts(extent, 1 + random.below(6));
    DimSharding dim = DimSharding::fromCuts({0}, cuts);
    // Windows of one width around cuts begin and end in order.
    int64_t before = random.below(4), after = random.below(4);
    for (Interval &piece : dim.pieces)
      if (!piece.empty())
        piece = {std::max<int64_t>(0, piece.lo - before), std::min(extent, piece.hi + after)};
    std::optional<std::vector<int64_t>> owners = dim.ownerCuts(extent);
    ASSERT_TRUE(owners && owners->size() == cuts.size());
    EXPECT_EQ(owners->front(), 0);
    EXPECT_EQ(owners->back(), extent);
    for (size_t i = 0; i < dim.pieces.size(); ++i) {
      Interval owned{(*owners)[i], (*owners)[i + 1]};
      EXPECT_LE(owned.lo, owned.hi);
      EXPECT_TRUE(dim.pieces[i].contains(owned)) << owned.str() << " of " << dim.pieces[i].str();
    }
  });
}

TEST(DimShardingTest, UnsplitDimensionIsOnePiece) {
  DimSharding dim;
  EXPECT_FALSE(dim.isSplit());
  EXPECT_TRUE(dim.isCuts(10));
  EXPECT_THAT(dim.cuts(10), Optional(ElementsAre(0, 10)));
  EXPECT_EQ(dim.pieceAt(0, 10), (Interval{0, 10}));
}

TEST(ShardingTest, BoxesOfRanks) {
  Sharding sharding = rowsAndColumns();
  ASSERT_TRUE(sharding.verify(mesh, shape));
  EXPECT_EQ(sharding.boxOf(mesh, shape, 0), (Box{{0, 8}, {0, 3}, {0, 5}}));
  EXPECT_EQ(sharding.boxOf(mesh, shape, 1), (Box{{0, 8}, {0, 3}, {5, 9}}));
  EXPECT_TRUE(sharding.boxOf(mesh, shape, 2).empty());
  EXPECT_EQ(sharding.boxOf(mesh, shape, 5), (Box{{0, 8}, {3, 10}, {5, 9}}));
  EXPECT_THAT(replicaAxes(sharding, mesh), IsEmpty());
}

TEST(ShardingTest, SeveralAxesOnADimensionAreMajorToMinor) {
  Sharding sharding = Sharding::replicated(1);
  sharding.dims[0] = DimSharding::fromCuts({1, 0}, balancedCuts(12, 6));
  std::vector<int64_t> line = {12};
  ASSERT_TRUE(sharding.verify(mesh, line));
  // Rank 3 is at y = 1, x = 1: "x" is the major axis here.
  EXPECT_EQ(sharding.coordinateOf(mesh, 0, 3), 4);
  EXPECT_EQ(sharding.boxOf(mesh, line, 3), (Box{{8, 10}}));
}

TEST(ShardingTest, ReplicasAndPartialValues) {
  Sharding sharding = Sharding::replicated(3);
  EXPECT_TRUE(sharding.isReplicated());
  EXPECT_THAT(replicaAxes(sharding, mesh), ElementsAre(0, 1));
  sharding.partialAxes = {1};
  sharding.partialKind = ReductionKind::Sum;
  EXPECT_TRUE(sharding.verify(mesh, shape));
  EXPECT_FALSE(sharding.isReplicated());
  EXPECT_THAT(replicaAxes(sharding, mesh), ElementsAre(0));
  EXPECT_EQ(sharding.boxOf(mesh, shape, 4), Box::ofShape(shape));
}

TEST(ShardingTest, Prints) {
  Sharding sharding = rowsAndColumns();
  EXPECT_EQ(sharding.str(mesh), R"([{}, {"y" : 0, 3, 3, 10}, {"x" : 0, 5, 9}])");
  sharding.dims[2] = {};
  sharding.dims[1].pieces = {{0, 4}, {2, 7}, {6, 10}};
  sharding.partialAxes = {1};
  sharding.partialKind = ReductionKind::Max;
  EXPECT_EQ(sharding.str(mesh), R"([{}, {"y" : [0, 4), [2, 7), [6, 10)}, {}] partial max over {"x"})");
}

TEST(ShardingTest, VerifyNamesTheFault) {
  std::string why;
  auto whyNot = [&](auto damage) {
    Sharding sharding = rowsAndColumns();
    damage(sharding);
    why.clear();
    EXPECT_FALSE(sharding.verify(mesh, shape, &why));
    return why;
  };
  EXPECT_EQ(whyNot([](Sharding &s) { s.dims.pop_back(); }), "the sharding has 2 dimensions, the tensor 3");
  EXPECT_EQ(whyNot([](Sharding &s) { s.dims[2].axes = {0}; }), "mesh axis \"y\" is used twice");
  EXPECT_EQ(whyNot([](Sharding &s) { s.dims[2].axes = {7}; }), "axis 7 is not in the mesh [\"y\"=3, \"x\"=2]");
  EXPECT_EQ(whyNot([](Sharding &s) { s.dims[1].pieces.pop_back(); }),
            "dimension 1 has 2 pieces for 3 coordinates of its mesh axes");
  EXPECT_EQ(whyNot([](Sharding &s) { s.dims[0].pieces = {{0, 8}}; }), "dimension 0 has pieces but no mesh axes");
  EXPECT_EQ(whyNot([](Sharding &s) { s.dims[1].pieces[1] = {3, 2}; }),
            "piece 1 of dimension 1, [3, 2), ends before it starts");
  EXPECT_EQ(whyNot([](Sharding &s) { s.dims[1].pieces[0].lo = -1; }),
            "piece 0 of dimension 1, [-1, 3), reaches outside of [0, 10)");
  EXPECT_EQ(whyNot([](Sharding &s) { s.dims[1].pieces[2].hi = 11; }),
            "piece 2 of dimension 1, [3, 11), reaches outside of [0, 10)");
  EXPECT_EQ(whyNot([](Sharding &s) { s.partialKind = ReductionKind::Sum; }),
            "reduction kind sum is given, but the value is not partial over any mesh axis");
  EXPECT_EQ(whyNot([](Sharding &s) {
              s.dims[2] = {};
              s.partialAxes = {1};
            }),
            "the value is partial, but no reduction kind is given");
  EXPECT_EQ(whyNot([](Sharding &s) {
              s.partialAxes = {1};
              s.partialKind = ReductionKind::Sum;
            }),
            "mesh axis \"x\" is used twice");
}
