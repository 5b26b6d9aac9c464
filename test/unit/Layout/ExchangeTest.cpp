//===- ExchangeTest.cpp - Tests of exchange planning by example -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Exchange.h"
#include "Helpers.h"

#include "dovetail/Layout/Cuts.h"
#include "dovetail/Layout/DimMap.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace dovetail::layout;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Cuts = std::vector<int64_t>;
using Shape = std::vector<int64_t>;

namespace {

/// A vector split over the only axis of a mesh.
Sharding line(std::vector<Interval> pieces) { return {{DimSharding{{0}, std::move(pieces)}}, {}, {}}; }
Sharding line(const Cuts &cuts) { return line(piecesFromCuts(cuts)); }

/// The windows of an operand of `extent` that `map` needs for loop `cuts`.
Sharding needs(const DimMap &map, const Cuts &loopCuts, int64_t extent) {
  std::vector<Interval> windows;
  for (Interval loop : piecesFromCuts(loopCuts))
    windows.push_back(map.needClipped(loop, extent));
  return line(windows);
}

/// A halo exchange of rows: the operand's cuts, and what a window needs at the cuts that follow.
struct Halo {
  Mesh mesh;
  Shape shape;
  Sharding from, to;

  Halo(const DimMap &map, const Cuts &cuts, int64_t loopExtent)
      : mesh({{"y", static_cast<int>(cuts.size()) - 1}}), shape({cuts.back()}), from(line(cuts)),
        to(needs(map, *map.follow(cuts, loopExtent), cuts.back())) {
    EXPECT_TRUE(verifyExchange(mesh, shape, from, to));
  }
  std::vector<Transfer> receives(int rank) const { return planReceives(mesh, shape, from, to, rank); }
  std::vector<Transfer> sends(int rank) const { return ExchangePlanner(mesh, shape, from, to).sends(rank); }
  std::vector<Box> local(int rank) const { return ExchangePlanner(mesh, shape, from, to).local(rank); }
};

Transfer rows(int source, int dest, int64_t lo, int64_t hi) { return {source, dest, Box{{lo, hi}}}; }

} // namespace

//===----------------------------------------------------------------------===//
// Halos
//===----------------------------------------------------------------------===//

TEST(ExchangeTest, Kernel3Stride2Pad1On15And17Rows) {
  Halo halo(DimMap::window(3, 2, 1, 1), {0, 15, 32}, 16);
  // Rank 0 computes rows 0 ... 7 from rows -1 ... 15; rank 1 reads 15 ... 31.
  EXPECT_THAT(halo.receives(0), ElementsAre(rows(1, 0, 15, 16)));
  EXPECT_THAT(halo.receives(1), IsEmpty());
  EXPECT_THAT(halo.sends(1), ElementsAre(rows(1, 0, 15, 16)));
  EXPECT_THAT(halo.local(1), ElementsAre(Box{{15, 32}}));
  EXPECT_EQ(classify(halo.mesh, halo.shape, halo.from, halo.to), ExchangeClass::Halo);
}

TEST(ExchangeTest, Kernel3Stride2Pad1On9And9Rows) {
  Halo halo(DimMap::window(3, 2, 1, 1), {0, 9, 18}, 9);
  EXPECT_THAT(halo.receives(0), ElementsAre(rows(1, 0, 9, 10)));
  EXPECT_THAT(halo.receives(1), IsEmpty());
}

TEST(ExchangeTest, Kernel2Stride2On17And16Rows) {
  Halo halo(DimMap::window(2, 2, 1, 0), {0, 17, 33}, 16);
  EXPECT_THAT(halo.receives(0), ElementsAre(rows(1, 0, 17, 18)));
  EXPECT_THAT(halo.receives(1), IsEmpty());
  // The last row is read by nobody.
  EXPECT_THAT(halo.local(1), ElementsAre(Box{{18, 32}}));
}

TEST(ExchangeTest, Kernel7Stride2Pad3On9And9And9And5Rows) {
  Halo halo(DimMap::window(7, 2, 1, 3), {0, 9, 18, 27, 32}, 16);
  EXPECT_THAT(halo.receives(0), ElementsAre(rows(1, 0, 9, 12)));
  EXPECT_THAT(halo.receives(1), ElementsAre(rows(0, 1, 7, 9), rows(2, 1, 18, 20)));
  EXPECT_THAT(halo.receives(2), ElementsAre(rows(1, 2, 15, 18), rows(3, 2, 27, 30)));
  EXPECT_THAT(halo.receives(3), ElementsAre(rows(2, 3, 25, 27)));
  EXPECT_THAT(halo.sends(2), ElementsAre(rows(2, 1, 18, 20), rows(2, 3, 25, 27)));
}

TEST(ExchangeTest, Kernel1Pad1SendsNothing) {
  Halo halo(DimMap::window(1, 1, 1, 1), {0, 4, 8}, 10);
  EXPECT_THAT(halo.receives(0), IsEmpty());
  EXPECT_THAT(halo.receives(1), IsEmpty());
  EXPECT_EQ(classify(halo.mesh, halo.shape, halo.from, halo.to), ExchangeClass::None);
}

TEST(ExchangeTest, HaloWiderThanTheNeighboursTakesSeveralHops) {
  Halo halo(DimMap::window(9, 1, 1, 4), {0, 2, 3, 5, 8}, 8);
  EXPECT_THAT(halo.receives(0), ElementsAre(rows(1, 0, 2, 3), rows(2, 0, 3, 5), rows(3, 0, 5, 6)));
  EXPECT_THAT(halo.receives(3), ElementsAre(rows(0, 3, 1, 2), rows(1, 3, 2, 3), rows(2, 3, 3, 5)));
}

TEST(ExchangeTest, EmptyShardsAreSkippedOver) {
  Halo halo(DimMap::window(3, 1, 1, 1), {0, 0, 4, 4, 8}, 8);
  EXPECT_THAT(halo.receives(0), IsEmpty());
  EXPECT_THAT(halo.sends(0), IsEmpty());
  EXPECT_THAT(halo.receives(1), ElementsAre(rows(3, 1, 4, 5)));
  EXPECT_THAT(halo.receives(2), IsEmpty());
  EXPECT_THAT(halo.receives(3), ElementsAre(rows(1, 3, 3, 4)));
}

TEST(ExchangeTest, CornersComeFromDiagonalNeighbours) {
  Mesh mesh({{"y", 2}, {"x", 2}});
  Shape shape = {8, 8};
  Sharding from = {{DimSharding::fromCuts({0}, Cuts{0, 3, 8}), DimSharding::fromCuts({1}, Cuts{0, 4, 8})}, {}, {}};
  Sharding to = {{DimSharding{{0}, {{0, 4}, {2, 8}}}, DimSharding{{1}, {{0, 5}, {3, 8}}}}, {}, {}};
  EXPECT_THAT(planReceives(mesh, shape, from, to, 0),
              ElementsAre(Transfer{1, 0, {{0, 3}, {4, 5}}}, Transfer{2, 0, {{3, 4}, {0, 4}}},
                          Transfer{3, 0, {{3, 4}, {4, 5}}}));
  EXPECT_EQ(classify(mesh, shape, from, to), ExchangeClass::Halo);
  EXPECT_EQ(receiveVolume(mesh, shape, from, to, 0), 3 + 4 + 1);
  EXPECT_EQ(lowerBound(mesh, shape, from, to, 0), 4 * 5 - 3 * 4);
}

//===----------------------------------------------------------------------===//
// Other redistributions
//===----------------------------------------------------------------------===//

TEST(ExchangeTest, AllGather) {
  Mesh mesh({{"y", 3}});
  Sharding from = line(Cuts{0, 2, 2, 5}), to = Sharding::replicated(1);
  EXPECT_EQ(classify(mesh, Shape{5}, from, to), ExchangeClass::AllGather);
  EXPECT_THAT(planReceives(mesh, Shape{5}, from, to, 1), ElementsAre(rows(0, 1, 0, 2), rows(2, 1, 2, 5)));
  EXPECT_THAT(ExchangePlanner(mesh, Shape{5}, from, to).sends(2), ElementsAre(rows(2, 0, 2, 5), rows(2, 1, 2, 5)));
}

TEST(ExchangeTest, SliceSendsNothing) {
  Mesh mesh({{"y", 3}});
  Sharding from = Sharding::replicated(1), to = line(Cuts{0, 2, 2, 5});
  EXPECT_EQ(classify(mesh, Shape{5}, from, to), ExchangeClass::Slice);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(planReceives(mesh, Shape{5}, from, to, rank), IsEmpty());
    EXPECT_THAT(ExchangePlanner(mesh, Shape{5}, from, to).sends(rank), IsEmpty());
  }
  EXPECT_THAT(ExchangePlanner(mesh, Shape{5}, from, to).local(2), ElementsAre(Box{{2, 5}}));
  EXPECT_THAT(ExchangePlanner(mesh, Shape{5}, from, to).local(1), IsEmpty());
}

TEST(ExchangeTest, AllToAll) {
  Mesh mesh({{"y", 2}});
  Shape shape = {5, 4};
  Sharding from = {{DimSharding::fromCuts({0}, Cuts{0, 3, 5}), {}}, {}, {}};
  Sharding to = {{{}, DimSharding::fromCuts({0}, Cuts{0, 1, 4})}, {}, {}};
  EXPECT_EQ(classify(mesh, shape, from, to), ExchangeClass::AllToAll);
  EXPECT_THAT(planReceives(mesh, shape, from, to, 0), ElementsAre(Transfer{1, 0, {{3, 5}, {0, 1}}}));
  EXPECT_THAT(planReceives(mesh, shape, from, to, 1), ElementsAre(Transfer{0, 1, {{0, 3}, {1, 4}}}));
}

TEST(ExchangeTest, ReversedWindows) {
  // What `x[::-1]` needs, cut evenly.
  Mesh mesh({{"y", 3}});
  Sharding from = line(Cuts{0, 2, 4, 6}), to = needs(DimMap::slice(5, -1), {0, 2, 4, 6}, 6);
  EXPECT_THAT(planReceives(mesh, Shape{6}, from, to, 0), ElementsAre(rows(2, 0, 4, 6)));
  EXPECT_THAT(planReceives(mesh, Shape{6}, from, to, 1), IsEmpty());
  EXPECT_THAT(ExchangePlanner(mesh, Shape{6}, from, to).sends(0), ElementsAre(rows(0, 2, 0, 2)));
  EXPECT_EQ(classify(mesh, Shape{6}, from, to), ExchangeClass::General);
}

TEST(ExchangeTest, NearestHolderOfOverlappingWindowsSends) {
  // Element 4 is held by ranks 0, 1 and 2; rank 3 takes it from 2, and 3 too.
  Mesh mesh({{"y", 4}});
  Sharding from = line(std::vector<Interval>{{0, 5}, {2, 6}, {3, 8}, {6, 8}});
  Sharding to = line(std::vector<Interval>{{0, 5}, {2, 6}, {3, 8}, {1, 8}});
  EXPECT_THAT(planReceives(mesh, Shape{8}, from, to, 3),
              ElementsAre(rows(0, 3, 1, 2), rows(1, 3, 2, 3), rows(2, 3, 3, 6)));
}

TEST(ExchangeTest, ReplicasReadTheirOwn) {
  Mesh mesh({{"y", 2}, {"x", 3}});
  Sharding from = line(Cuts{0, 2, 4}), to = Sharding::replicated(1);
  // Rank 4 is at y = 1, x = 1; its peer on "y" is rank 1.
  EXPECT_THAT(planReceives(mesh, Shape{4}, from, to, 4), ElementsAre(rows(1, 4, 0, 2)));
  EXPECT_THAT(ExchangePlanner(mesh, Shape{4}, from, to).sends(4), ElementsAre(rows(4, 1, 2, 4)));
}

TEST(ExchangeTest, ScalarsAndEmptyTensors) {
  Mesh mesh({{"y", 2}});
  Sharding scalar = Sharding::replicated(0);
  EXPECT_THAT(planReceives(mesh, {}, scalar, scalar, 1), IsEmpty());
  EXPECT_THAT(ExchangePlanner(mesh, {}, scalar, scalar).local(1), ElementsAre(Box()));
  Sharding from = line(Cuts{0, 0, 0}), to = Sharding::replicated(1);
  EXPECT_TRUE(verifyExchange(mesh, Shape{0}, from, to));
  EXPECT_THAT(planReceives(mesh, Shape{0}, from, to, 1), IsEmpty());
  EXPECT_EQ(classify(mesh, Shape{0}, from, to), ExchangeClass::None);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

TEST(ExchangeTest, AllReduceReceivesAllOtherContributions) {
  Mesh mesh({{"y", 3}});
  Sharding from = Sharding::replicated(1), to = from;
  from.partialAxes = {0};
  from.partialKind = ReductionKind::Sum;
  EXPECT_EQ(classify(mesh, Shape{4}, from, to), ExchangeClass::AllReduce);
  EXPECT_THAT(planReceives(mesh, Shape{4}, from, to, 1), ElementsAre(rows(0, 1, 0, 4), rows(2, 1, 0, 4)));
  EXPECT_THAT(ExchangePlanner(mesh, Shape{4}, from, to).local(1), ElementsAre(Box{{0, 4}}));
  EXPECT_THAT(ExchangePlanner(mesh, Shape{4}, from, to).getReducedAxes(), ElementsAre(0));
  EXPECT_EQ(lowerBound(mesh, Shape{4}, from, to, 1), 8);
}

TEST(ExchangeTest, ReduceScatter) {
  Mesh mesh({{"y", 3}});
  Sharding from = Sharding::replicated(1), to = line(Cuts{0, 1, 2, 5});
  from.partialAxes = {0};
  from.partialKind = ReductionKind::Sum;
  EXPECT_EQ(classify(mesh, Shape{5}, from, to), ExchangeClass::ReduceScatter);
  EXPECT_THAT(planReceives(mesh, Shape{5}, from, to, 2), ElementsAre(rows(0, 2, 2, 5), rows(1, 2, 2, 5)));
  EXPECT_THAT(ExchangePlanner(mesh, Shape{5}, from, to).sends(2), ElementsAre(rows(2, 0, 0, 1), rows(2, 1, 1, 2)));
}

TEST(ExchangeTest, PartialValuesStayApartWhereTheyStayPartial) {
  // Gathered over "y", still partial over "x": each column gathers its own contribution.
  Mesh mesh({{"y", 2}, {"x", 2}});
  Sharding from = line(Cuts{0, 2, 4}), to = Sharding::replicated(1);
  from.partialAxes = to.partialAxes = {1};
  from.partialKind = to.partialKind = ReductionKind::Max;
  EXPECT_EQ(classify(mesh, Shape{4}, from, to), ExchangeClass::AllGather);
  EXPECT_THAT(planReceives(mesh, Shape{4}, from, to, 1), ElementsAre(rows(3, 1, 2, 4)));
}

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

namespace {

/// The class of an exchange of an 8 x 8 matrix over a 2 x 2 mesh of axes 0 and 1, and an axis 2 of size 1.
ExchangeClass classOf(std::vector<DimSharding> from, std::vector<DimSharding> to) {
  Mesh mesh({{"y", 2}, {"x", 2}, {"one", 1}});
  Sharding before = {std::move(from), {}, {}}, after = {std::move(to), {}, {}};
  std::string why;
  EXPECT_TRUE(verifyExchange(mesh, Shape{8, 8}, before, after, &why)) << why;
  return classify(mesh, Shape{8, 8}, before, after);
}

/// A dimension of 8 in balanced cuts over `axes` with `parts` coordinates.
DimSharding over(std::vector<int> axes, int parts) {
  return DimSharding::fromCuts(std::move(axes), balancedCuts(8, parts));
}

const DimSharding unsplit;
const DimSharding withHalo{{0}, {{0, 5}, {3, 8}}};

} // namespace

TEST(ExchangeClassTest, DroppedHaloIsASlice) {
  EXPECT_EQ(classOf({withHalo, unsplit}, {over({0}, 2), unsplit}), ExchangeClass::Slice);
}

TEST(ExchangeClassTest, GatherOfAMinorAxisOrOfAllAxes) {
  EXPECT_EQ(classOf({over({0, 1}, 4), unsplit}, {over({0}, 2), unsplit}), ExchangeClass::AllGather);
  EXPECT_EQ(classOf({over({0}, 2), over({1}, 2)}, {unsplit, unsplit}), ExchangeClass::AllGather);
}

TEST(ExchangeClassTest, GatherThatDropsHeldElementsIsGeneral) {
  // The rank at y = 0, x = 1 held [2, 4) and needs [4, 8).
  EXPECT_EQ(classOf({over({0, 1}, 4), unsplit}, {over({1}, 2), unsplit}), ExchangeClass::General);
}

TEST(ExchangeClassTest, AxesThatMoveAreAnAllToAll) {
  EXPECT_EQ(classOf({over({0}, 2), unsplit}, {unsplit, over({0}, 2)}), ExchangeClass::AllToAll);
  EXPECT_EQ(classOf({over({0, 1}, 4), unsplit}, {over({0}, 2), over({1}, 2)}), ExchangeClass::AllToAll);
}

TEST(ExchangeClassTest, GatherAndSliceOverDifferentAxesIsGeneral) {
  EXPECT_EQ(classOf({over({0}, 2), unsplit}, {unsplit, over({1}, 2)}), ExchangeClass::General);
}

TEST(ExchangeClassTest, GatherWithAHaloIsGeneral) {
  EXPECT_EQ(classOf({over({0}, 2), over({1}, 2)}, {withHalo, unsplit}), ExchangeClass::General);
}

TEST(ExchangeClassTest, SwappedAxesAreGeneral) {
  EXPECT_EQ(classOf({over({0, 1}, 4), unsplit}, {over({1, 0}, 4), unsplit}), ExchangeClass::General);
}

TEST(ExchangeClassTest, PiecesThatMoveAwayAreGeneral) {
  DimSharding swapped{{0}, {{4, 8}, {0, 4}}};
  EXPECT_EQ(classOf({over({0}, 2), unsplit}, {swapped, unsplit}), ExchangeClass::General);
}

TEST(ExchangeClassTest, AxesOfSizeOneDoNotCount) {
  EXPECT_EQ(classOf({over({2}, 1), over({1}, 2)}, {unsplit, over({1}, 2)}), ExchangeClass::None);
  EXPECT_EQ(classOf({over({0, 2}, 2), unsplit}, {withHalo, unsplit}), ExchangeClass::Halo);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

TEST(ExchangeTest, VerifyNamesWhatIsMissing) {
  Mesh mesh({{"y", 2}, {"x", 2}});
  std::string why;
  Sharding whole = Sharding::replicated(1);
  Sharding gap = line(std::vector<Interval>{{0, 3}, {5, 8}});
  EXPECT_FALSE(verifyExchange(mesh, Shape{8}, gap, whole, &why));
  EXPECT_EQ(why, "elements [3, 5) of dimension 0 are needed at coordinate 0, but no rank holds them");
  EXPECT_FALSE(verifyExchange(mesh, Shape{8}, gap, line(std::vector<Interval>{{0, 2}, {4, 6}}), &why));
  EXPECT_EQ(why, "elements [4, 5) of dimension 0 are needed at coordinate 1, but no rank holds them");
  EXPECT_FALSE(verifyExchange(mesh, Shape{8}, gap, line(std::vector<Interval>{{0, 2}, {2, 4}}), &why));
  EXPECT_EQ(why, "elements [3, 4) of dimension 0 are needed at coordinate 1, but no rank holds them");
  EXPECT_TRUE(verifyExchange(mesh, Shape{8}, gap, line(std::vector<Interval>{{0, 2}, {6, 8}}), &why));

  EXPECT_FALSE(verifyExchange(mesh, Shape{8}, line(Cuts{0, 8}), whole, &why));
  EXPECT_THAT(why, HasSubstr("source sharding: dimension 0 has 1 pieces"));
  EXPECT_FALSE(verifyExchange(mesh, Shape{8}, whole, line(Cuts{0, 4, 9}), &why));
  EXPECT_THAT(why, HasSubstr("destination sharding: piece 1"));

  Sharding partial = whole, other = whole;
  partial.partialAxes = other.partialAxes = {1};
  partial.partialKind = ReductionKind::Sum;
  other.partialKind = ReductionKind::Max;
  EXPECT_FALSE(verifyExchange(mesh, Shape{8}, whole, partial, &why));
  EXPECT_EQ(why, "the destination is partial over mesh axis \"x\", the source is not");
  EXPECT_FALSE(verifyExchange(mesh, Shape{8}, other, partial, &why));
  EXPECT_EQ(why, "the source is partial with reduction max, the destination with sum");
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

namespace {

/// Plans for all ranks; checks that sends are the receives of others and that each rank looked at no more than
/// `perPeer` pieces and ranks for each transfer, plus `fixed`.
void expectPlansCostTheirPeers(const Mesh &mesh, const Shape &shape, const Sharding &from, const Sharding &to,
                               int64_t perPeer, int64_t fixed) {
  ASSERT_TRUE(verifyExchange(mesh, shape, from, to));
  ExchangePlanner planner(mesh, shape, from, to);
  int64_t sent = 0, received = 0;
  for (int rank = 0; rank < mesh.numRanks(); ++rank) {
    PlanStatistics receiving, sending;
    std::vector<Transfer> receives = planner.receives(rank, &receiving);
    std::vector<Transfer> sends = planner.sends(rank, &sending);
    EXPECT_LE(receiving.visited, perPeer * static_cast<int64_t>(receives.size()) + fixed) << "rank " << rank;
    EXPECT_LE(sending.visited, perPeer * static_cast<int64_t>(sends.size()) + fixed) << "rank " << rank;
    for (const Transfer &transfer : receives)
      received += transfer.box.volume();
    for (const Transfer &transfer : sends)
      sent += transfer.box.volume();
  }
  EXPECT_EQ(sent, received);
  EXPECT_GT(received, 0);
}

/// `cuts` with each piece grown by `width` on both sides.
std::vector<Interval> grown(const Cuts &cuts, int64_t width) {
  std::vector<Interval> windows;
  for (Interval piece : piecesFromCuts(cuts))
    windows.push_back(Interval{piece.lo - width, piece.hi + width}.intersect({0, cuts.back()}));
  return windows;
}

} // namespace

TEST(ExchangeCostTest, HaloOf4096Ranks) {
  Mesh mesh({{"y", 4096}});
  Cuts cuts = balancedCuts(100000, 4096);
  expectPlansCostTheirPeers(mesh, {100000}, line(cuts), line(grown(cuts, 2)), 2, 8);
  // Wider than a shard of 24 or 25: five hops each way.
  expectPlansCostTheirPeers(mesh, {100000}, line(cuts), line(grown(cuts, 110)), 2, 8);
}

TEST(ExchangeCostTest, HaloOf64By64Ranks) {
  Mesh mesh({{"y", 64}, {"x", 64}});
  Cuts cuts = balancedCuts(1000, 64);
  Sharding from = {{DimSharding::fromCuts({0}, cuts), DimSharding::fromCuts({1}, cuts)}, {}, {}};
  Sharding to = {{DimSharding{{0}, grown(cuts, 1)}, DimSharding{{1}, grown(cuts, 1)}}, {}, {}};
  expectPlansCostTheirPeers(mesh, {1000, 1000}, from, to, 2, 8);
}

TEST(ExchangeCostTest, AllToAllAlongOneAxisOf64By64Ranks) {
  Mesh mesh({{"y", 64}, {"x", 64}});
  Cuts cuts = balancedCuts(128, 64);
  Sharding from = {{DimSharding::fromCuts({0}, cuts), {}}, {}, {}};
  Sharding to = {{{}, DimSharding::fromCuts({0}, cuts)}, {}, {}};
  expectPlansCostTheirPeers(mesh, {128, 128}, from, to, 3, 8);
}

TEST(ExchangeCostTest, ReduceScatterAlongOneAxisOf64By64Ranks) {
  Mesh mesh({{"y", 64}, {"x", 64}});
  Cuts cuts = balancedCuts(128, 64);
  Sharding from = {{DimSharding::fromCuts({0}, cuts), {}}, {1}, ReductionKind::Sum};
  Sharding to = {{DimSharding::fromCuts({0}, cuts), DimSharding::fromCuts({1}, cuts)}, {}, {}};
  expectPlansCostTheirPeers(mesh, {128, 128}, from, to, 3, 8);
}
