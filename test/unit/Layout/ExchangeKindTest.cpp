//===- ExchangeKindTest.cpp - When an exchange is a collective -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/ExchangeKind.h"
#include "dovetail/Layout/Cuts.h"

#include "Random.h"

#include "gmock/gmock.h"

#include <set>

using namespace dovetail::layout;
using testing::HasSubstr;

namespace {

using Shape = std::vector<int64_t>;
using Order = std::vector<int>;

/// An exchange between tensors that fill their buffers, unless these are said to hold more.
struct Case {
  Mesh mesh;
  Shape shape;
  Sharding from, to;
  Sharding sourceHeld = whole(from), targetHeld = whole(to);
  MemoryFormat source = MemoryFormat::rowMajor(shape.size()), target = source;

  static Sharding whole(Sharding sharding) {
    sharding.partialAxes.clear();
    sharding.partialKind = ReductionKind::None;
    return sharding;
  }
  ExchangePlace place() const { return {mesh, shape, from, to, {sourceHeld, source}, {targetHeld, target}}; }
  ExchangeKind kind() const { return place().findKind(4); }
};

Mesh meshOf(std::vector<int> sizes) {
  std::vector<MeshAxis> axes;
  for (int size : sizes)
    axes.push_back({std::string(1, static_cast<char>('a' + axes.size())), size});
  return Mesh(axes);
}

Sharding split(int rank, int dim, std::vector<int> axes, std::vector<int64_t> cuts) {
  Sharding sharding = Sharding::replicated(rank);
  sharding.dims[dim] = DimSharding::fromCuts(std::move(axes), cuts);
  return sharding;
}

Sharding partial(Sharding sharding, std::vector<int> axes, ReductionKind kind = ReductionKind::Sum) {
  sharding.partialAxes = std::move(axes);
  sharding.partialKind = kind;
  return sharding;
}

} // namespace

TEST(ExchangeKind, EqualPartsInARowAreGathered) {
  Sharding rows = split(2, 0, {0}, {0, 4, 8, 12}), columns = split(2, 1, {0}, {0, 4, 8, 12}),
           all = Sharding::replicated(2);
  Case test{meshOf({3}), {12, 12}, rows, all};
  EXPECT_EQ(test.kind(), ExchangeKind::AllGather);
  CollectiveGroup group = collectiveGroup(test.mesh, test.shape, rows, all, ExchangeKind::AllGather, 1);
  EXPECT_EQ(group.members, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(group.parts[2], (Box{{8, 12}, {0, 12}}));
  // Strips of columns do not follow one another, unless they are outermost in both memories.
  EXPECT_EQ((Case{test.mesh, test.shape, columns, all}.kind()), ExchangeKind::Messages);
  Case turned{test.mesh, test.shape, columns, all};
  turned.source.order = turned.target.order = {1, 0};
  EXPECT_EQ(turned.kind(), ExchangeKind::AllGather);
  EXPECT_EQ(turned.place().messageFormat().order, (Order{1, 0}));
  turned.source.order = {0, 1};
  EXPECT_EQ(turned.kind(), ExchangeKind::Messages);
  // In place, in a buffer that has all of it.
  test.sourceHeld = all;
  EXPECT_EQ(test.kind(), ExchangeKind::AllGather);
}

TEST(ExchangeKind, OtherExchangesAreMessages) {
  Mesh mesh = meshOf({3});
  Sharding all = Sharding::replicated(2);
  for (std::vector<int64_t> cuts : {std::vector<int64_t>{0, 4, 8, 13}, {0, 0, 6, 13}, {0, 13, 13, 13}})
    EXPECT_EQ((Case{mesh, {13, 12}, split(2, 0, {0}, cuts), all}.kind()), ExchangeKind::Messages);
  // Halos, slices, pieces that move, and nothing at all.
  Sharding cut = split(1, 0, {0}, {0, 4, 8, 12}), halo = cut, turned = cut;
  halo.dims[0].pieces = {{0, 5}, {3, 9}, {7, 12}};
  std::reverse(turned.dims[0].pieces.begin(), turned.dims[0].pieces.end());
  for (const Sharding &to : {halo, turned, cut})
    EXPECT_EQ((Case{mesh, {12}, cut, to}.kind()), ExchangeKind::Messages);
  EXPECT_EQ((Case{mesh, {12}, Sharding::replicated(1), cut}.kind()), ExchangeKind::Messages);
  EXPECT_EQ((Case{mesh, {0}, split(1, 0, {0}, {0, 0, 0, 0}), Sharding::replicated(1)}.kind()), ExchangeKind::Messages);
  EXPECT_EQ((Case{mesh, {12, 12}, split(2, 0, {0}, {0, 4, 8, 12}), split(2, 1, {0}, {0, 4, 8, 12})}.kind()),
            ExchangeKind::Messages);
  // Windows that overlap are not parts of which each has its place.
  EXPECT_EQ((Case{mesh, {12}, halo, Sharding::replicated(1)}.kind()), ExchangeKind::Messages);
}

TEST(ExchangeKind, ContributionsAreReduced) {
  Mesh mesh = meshOf({2});
  Sharding all = Sharding::replicated(1), sum = partial(all, {0});
  EXPECT_EQ((Case{mesh, {7}, sum, all}.kind()), ExchangeKind::AllReduce);
  EXPECT_EQ((Case{mesh, {8}, sum, split(1, 0, {0}, {0, 4, 8})}.kind()), ExchangeKind::ReduceScatter);
  EXPECT_EQ((Case{mesh, {8}, sum, split(1, 0, {0}, {0, 3, 8})}.kind()), ExchangeKind::Messages);
  EXPECT_EQ((Case{mesh, {8}, sum, split(1, 0, {0}, {0, 0, 8})}.kind()), ExchangeKind::Messages);
  EXPECT_EQ((Case{mesh, {}, partial(Sharding::replicated(0), {0}), Sharding::replicated(0)}.kind()),
            ExchangeKind::AllReduce);
  // A part that is not one piece of memory.
  Sharding sum2 = partial(Sharding::replicated(2), {0});
  EXPECT_EQ((Case{mesh, {8, 8}, sum2, split(2, 1, {0}, {0, 4, 8})}.kind()), ExchangeKind::Messages);
  EXPECT_EQ((Case{mesh, {8, 8}, sum2, split(2, 0, {0}, {0, 4, 8})}.kind()), ExchangeKind::ReduceScatter);
  // The target is a part of a larger buffer, with gaps.
  Case inner{meshOf({2, 2}), {8, 8}, partial(split(2, 1, {1}, {0, 4, 8}), {0}), split(2, 1, {1}, {0, 4, 8})};
  EXPECT_EQ(inner.kind(), ExchangeKind::AllReduce);
  inner.targetHeld = Sharding::replicated(2);
  EXPECT_EQ(inner.kind(), ExchangeKind::Messages);
}

TEST(ExchangeKind, GroupsAreThoseOfAnAxis) {
  Mesh mesh = meshOf({2, 3});
  Sharding all = Sharding::replicated(1);
  auto membersOf = [&](const Sharding &from, const Sharding &to, ExchangeKind kind, int rank) {
    EXPECT_EQ((Case{mesh, {6}, from, to}.kind()), kind);
    return collectiveGroup(mesh, Shape{6}, from, to, kind, rank).members;
  };
  EXPECT_EQ(membersOf(partial(all, {1}), all, ExchangeKind::AllReduce, 4), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(membersOf(partial(all, {0}), all, ExchangeKind::AllReduce, 4), (std::vector<int>{1, 4}));
  EXPECT_EQ(membersOf(partial(all, {0, 1}), partial(all, {1}), ExchangeKind::AllReduce, 4), (std::vector<int>{1, 4}));
  Sharding rows = split(1, 0, {0}, {0, 3, 6}), both = split(1, 0, {0, 1}, {0, 1, 2, 3, 4, 5, 6});
  EXPECT_EQ(membersOf(both, rows, ExchangeKind::AllGather, 4), (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(membersOf(both, all, ExchangeKind::AllGather, 4), (std::vector<int>{0, 1, 2, 3, 4, 5}));
  // Parts in another order than ranks.
  Sharding minor = split(1, 0, {1, 0}, {0, 1, 2, 3, 4, 5, 6});
  EXPECT_EQ((Case{mesh, {6}, minor, all}.kind()), ExchangeKind::PackedGather);
  // A group may have nothing to do, and groups may differ in size; but then parts of all groups are equal.
  auto gather = [&](std::vector<int64_t> cuts, std::vector<int64_t> wholeCuts) {
    return Case{mesh, {6}, split(1, 0, {0, 1}, cuts), split(1, 0, {0}, wholeCuts)}.kind();
  };
  EXPECT_EQ(gather({0, 0, 0, 0, 2, 4, 6}, {0, 0, 6}), ExchangeKind::AllGather);
  EXPECT_EQ(gather({0, 1, 2, 3, 4, 5, 6}, {0, 3, 6}), ExchangeKind::AllGather);
  EXPECT_EQ(gather({0, 1, 2, 3, 3, 5, 6}, {0, 3, 6}), ExchangeKind::Messages);
}

TEST(ExchangeKind, OtherPartsOfManyRanksArePacked) {
  Sharding columns = split(2, 1, {0}, {0, 3, 6, 9, 12}), all = Sharding::replicated(2);
  EXPECT_EQ((Case{meshOf({4}), {12, 12}, columns, all}.kind()), ExchangeKind::PackedGather);
  EXPECT_EQ((Case{meshOf({3}), {12, 12}, split(2, 1, {0}, {0, 4, 8, 12}), all}.kind()), ExchangeKind::Messages);
  // Of two dimensions at once, in any order of axes.
  Mesh mesh = meshOf({2, 2});
  Sharding both = split(2, 0, {1}, {0, 6, 12});
  both.dims[1] = DimSharding::fromCuts({0}, std::vector<int64_t>{0, 6, 12});
  Case corners{mesh, {12, 12}, both, all};
  EXPECT_EQ(corners.kind(), ExchangeKind::PackedGather);
  CollectiveGroup group = collectiveGroup(mesh, corners.shape, both, all, ExchangeKind::PackedGather, 3);
  EXPECT_EQ(group.members, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(group.parts[1], (Box{{6, 12}, {0, 6}}));
  // Parts of several sizes, of small tensors even if one has all of it: 16 pages of four are 64 KiB.
  auto kindOf = [](std::vector<int64_t> cuts, int64_t columns) {
    return Case{meshOf({4}), {16, columns}, split(2, 0, {0}, cuts), Sharding::replicated(2)}.kind();
  };
  EXPECT_EQ(kindOf({0, 16, 16, 16, 16}, 100), ExchangeKind::PackedGather);
  EXPECT_EQ(kindOf({0, 16, 16, 16, 16}, 342), ExchangeKind::Messages);
  EXPECT_EQ(kindOf({0, 5, 9, 13, 16}, 1 << 20), ExchangeKind::PackedGather);
  EXPECT_EQ(kindOf({0, 6, 9, 13, 16}, 1 << 20), ExchangeKind::Messages);
  EXPECT_EQ(CollectiveGroup({{0, 1}, {Box{{0, 3}, {0, 2}}, Box{{3, 8}, {0, 2}}}}).largestVolume(), 10);
  // Each element once: neither windows that overlap nor several ranks compute the halos of who lies outside of the
  // group.
  Sharding windows = columns;
  windows.dims[1].pieces = {{0, 4}, {3, 6}, {6, 9}, {9, 12}};
  EXPECT_EQ((Case{meshOf({4}), {12, 12}, windows, all}.kind()), ExchangeKind::Messages);
  Mesh grid = meshOf({2, 4});
  Sharding rows = split(2, 0, {0}, {0, 6, 12}), halo = rows;
  rows.dims[1] = columns.dims[1];
  rows.dims[1].axes = {1};
  EXPECT_EQ((Case{grid, {12, 12}, rows, halo}.kind()), ExchangeKind::PackedGather);
  halo.dims[0].pieces = {{0, 7}, {6, 12}};
  EXPECT_EQ((Case{grid, {12, 12}, rows, halo}.kind()), ExchangeKind::Messages);
}

TEST(ExchangeKind, WhatDoesNotFitIsExplained) {
  Sharding cut = split(1, 0, {0}, {0, 4, 8}), all = Sharding::replicated(1), sum = partial(all, {0});
  auto why = [&](const Sharding &from, const Sharding &to, ExchangeKind kind) {
    std::string reason;
    EXPECT_FALSE((Case{meshOf({2}), {8}, from, to}.place().fits(kind, &reason)));
    return reason;
  };
  EXPECT_EQ(why(cut, all, ExchangeKind::AllReduce),
            "the exchange is not of kind all-reduce: the exchange combines no elements");
  EXPECT_EQ(why(sum, all, ExchangeKind::AllGather),
            "the exchange is not of kind all-gather: contributions are combined");
  EXPECT_THAT(why(all, cut, ExchangeKind::AllGather), HasSubstr("no pieces are collected"));
  EXPECT_THAT(why(sum, cut, ExchangeKind::AllReduce), HasSubstr("another box is needed on rank 1"));
  EXPECT_THAT(why(sum, all, ExchangeKind::ReduceScatter), HasSubstr("parts do not follow each other in memory"));
  EXPECT_THAT(why(split(1, 0, {0}, {0, 3, 8}), all, ExchangeKind::AllGather),
              HasSubstr("parts differ in size on rank 1"));
  Sharding windows = cut;
  windows.dims[0].pieces = {{0, 5}, {4, 8}};
  EXPECT_EQ(why(windows, all, ExchangeKind::PackedGather), "the exchange is not of kind packed all-gather: pieces of "
                                                           "dimension 0 are not all that is needed, each element once");
  EXPECT_THAT(why(sum, all, ExchangeKind::PackedGather), HasSubstr("contributions are combined"));
  EXPECT_TRUE((Case{meshOf({2}), {8}, split(1, 0, {0}, {0, 3, 8}), all}.place().fits(ExchangeKind::PackedGather)));
  EXPECT_TRUE((Case{meshOf({2}), {8}, sum, cut}.place().fits(ExchangeKind::Messages)));
}

//===----------------------------------------------------------------------===//
// Two phases
//===----------------------------------------------------------------------===//

TEST(ScatteredSharding, TheOutermostLongDimensionIsCut) {
  Mesh mesh = meshOf({4});
  Sharding all = Sharding::replicated(3), sum = partial(all, {0});
  auto cutDim = [&](Shape shape, Order order) {
    std::optional<Sharding> parts = scatteredSharding(mesh, shape, sum, all, order);
    for (int dim = 0; parts && dim < 3; ++dim)
      if (parts->dims[dim].isSplit())
        return dim;
    return -1;
  };
  EXPECT_EQ(cutDim({8, 100, 100}, {0, 1, 2}), 0);
  EXPECT_EQ(cutDim({1, 100, 100}, {0, 2, 1}), 2);
  EXPECT_EQ(cutDim({3, 2, 3}, {1, 2, 0}), 2); // None is long enough: the longest.
  EXPECT_EQ(cutDim({1, 1, 1}, {0, 1, 2}), -1);
  EXPECT_EQ(cutDim({0, 9, 9}, {0, 1, 2}), 1);
}

TEST(ScatteredSharding, PiecesOfOtherAxesAreCutAgain) {
  Mesh mesh = meshOf({2, 2});
  Sharding rows = split(1, 0, {0}, {0, 5, 12});
  std::optional<Sharding> parts = scatteredSharding(mesh, Shape{12}, partial(rows, {1}), rows, Order{0});
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->str(mesh), split(1, 0, {0, 1}, {0, 3, 5, 9, 12}).str(mesh));
  // What overlaps is not cut.
  Sharding windows = rows;
  windows.dims[0].pieces = {{0, 6}, {4, 12}};
  EXPECT_EQ(scatteredSharding(mesh, Shape{12}, partial(windows, {1}), windows, Order{0}), std::nullopt);
  EXPECT_EQ(scatteredSharding(mesh, Shape{12}, rows, Sharding::replicated(1), Order{0}), std::nullopt);
  EXPECT_EQ(scatteredSharding(mesh, Shape{12}, partial(rows, {1}), Sharding::replicated(1), Order{0}), std::nullopt);
}

//===----------------------------------------------------------------------===//
// Against brute force
//===----------------------------------------------------------------------===//

namespace {

template <typename Visit> void forEachIndex(const Box &box, Visit visit) {
  if (box.empty())
    return;
  std::vector<int64_t> index;
  for (Interval interval : box)
    index.push_back(interval.lo);
  for (;;) {
    visit(index);
    int dim = box.rank() - 1;
    for (; dim >= 0; --dim) {
      if (++index[dim] < box[dim].hi)
        break;
      index[dim] = box[dim].lo;
    }
    if (dim < 0)
      return;
  }
}

int64_t numberOf(const Shape &shape, const std::vector<int64_t> &index) {
  int64_t number = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    number = number * shape[dim] + index[dim];
  return number;
}

/// The memory of a rank: elements of its box in a format.
struct Memory {
  Box box;
  MemoryFormat format;
  std::vector<int64_t> elements;

  Memory(Box held, MemoryFormat memoryFormat)
      : box(std::move(held)), format(std::move(memoryFormat)), elements(box.volume(), -1) {}
  int64_t &at(const std::vector<int64_t> &index) {
    int64_t position = 0;
    for (int dim : format.order)
      position = position * box[dim].size() + index[dim] - box[dim].lo;
    return elements[position];
  }
  /// Where the first element of a part is.
  int64_t *begin(const Box &part) {
    std::vector<int64_t> index;
    for (Interval interval : part)
      index.push_back(interval.lo);
    return &at(index);
  }
};

Case randomCase(Random &random) {
  std::vector<int> sizes;
  for (int axis = 1 + random.below(3); axis > 0; --axis)
    sizes.push_back(static_cast<int>(random.between(1, 3)));
  Mesh mesh = meshOf(sizes);
  Shape shape;
  for (int dim = random.below(4); dim > 0; --dim)
    shape.push_back(random.chance(60) ? 6 : random.between(0, 6));
  int rank = static_cast<int>(shape.size());
  // Some axes split a dimension before, afterwards, or both; some are reduced.
  Sharding from = Sharding::replicated(rank), to = from;
  for (int axis = 0; axis < mesh.numAxes(); ++axis) {
    int dim = rank > 0 ? random.below(rank) : -1;
    int what = random.below(5);
    if (what < 2)
      from.partialAxes.push_back(axis);
    if (what == 0 && random.chance(30))
      to.partialAxes.push_back(axis);
    else if (dim >= 0 && (what == 1 || what == 2))
      to.dims[dim].axes.push_back(axis);
    if (dim >= 0 && (what == 2 || what == 3))
      from.dims[dim].axes.push_back(axis);
  }
  for (Sharding *sharding : {&from, &to})
    for (int dim = 0; dim < rank; ++dim) {
      int parts = 1;
      for (int axis : sharding->dims[dim].axes)
        parts *= mesh.axisSize(axis);
      if (sharding->dims[dim].isSplit())
        sharding->dims[dim] =
            DimSharding::fromCuts(sharding->dims[dim].axes,
                                  random.chance(70) ? balancedCuts(shape[dim], parts) : random.cuts(shape[dim], parts));
    }
  from.partialKind = from.isPartial() ? ReductionKind::Sum : ReductionKind::None;
  to.partialKind = to.isPartial() ? ReductionKind::Sum : ReductionKind::None;
  Case result{mesh, shape, from, to};
  if (random.chance(20))
    result.sourceHeld = Sharding::replicated(rank);
  if (random.chance(20))
    result.targetHeld = Sharding::replicated(rank);
  if (random.chance(50))
    random.shuffle(result.source.order);
  result.target = result.source;
  if (random.chance(20))
    random.shuffle(result.target.order);
  return result;
}

/// A rank's contribution to an element: a bit of its own, where it has one.
int64_t contribution(const Case &test, int rank, const std::vector<int64_t> &index) {
  int coordinate = linearCoordinate(test.mesh, test.from.partialAxes, test.mesh.coordsOf(rank));
  return (numberOf(test.shape, index) << 28) + (int64_t(1) << coordinate);
}

} // namespace

TEST(ExchangeKindProperty, CollectivesDoTheExchange) {
  int found[5] = {};
  forRandomCases(8000, [&](Random &random) {
    Case test = randomCase(random);
    ASSERT_TRUE(verifyExchange(test.mesh, test.shape, test.from, test.to));
    ExchangeKind kind = test.kind();
    ++found[static_cast<int>(kind)];
    if (kind == ExchangeKind::Messages)
      return;
    int ranks = test.mesh.numRanks();
    std::vector<Memory> source, target;
    for (int rank = 0; rank < ranks; ++rank) {
      source.emplace_back(test.sourceHeld.boxOf(test.mesh, test.shape, rank), test.source);
      target.emplace_back(test.targetHeld.boxOf(test.mesh, test.shape, rank), test.target);
      forEachIndex(test.from.boxOf(test.mesh, test.shape, rank), [&](const std::vector<int64_t> &index) {
        source[rank].at(index) = contribution(test, rank, index);
      });
    }
    // As a library does it: with addresses and a number of elements.
    for (int rank = 0; rank < ranks; ++rank) {
      if (kind == ExchangeKind::PackedGather) {
        // Each element comes from one member.
        CollectiveGroup group = collectiveGroup(test.mesh, test.shape, test.from, test.to, kind, rank);
        std::set<std::vector<int64_t>> unpacked;
        for (size_t i = 0; i < group.members.size(); ++i)
          forEachIndex(group.parts[i], [&](const std::vector<int64_t> &index) {
            ASSERT_TRUE(test.from.boxOf(test.mesh, test.shape, group.members[i]).contains(index));
            EXPECT_TRUE(unpacked.insert(index).second);
            target[rank].at(index) = source[group.members[i]].at(index);
          });
        continue;
      }
      CollectiveGroup group = collectiveGroup(test.mesh, test.shape, test.from, test.to, kind, rank);
      size_t own = std::find(group.members.begin(), group.members.end(), rank) - group.members.begin();
      ASSERT_LT(own, group.members.size());
      int64_t count = group.parts[own].volume();
      if (count == 0)
        continue;
      bool gathers = kind == ExchangeKind::AllGather;
      int64_t *result = target[rank].begin(group.parts[gathers ? 0 : own]);
      for (size_t i = 0; i < group.members.size(); ++i) {
        Memory &other = source[group.members[i]];
        const int64_t *given = other.begin(group.parts[gathers ? i : 0]);
        if (kind == ExchangeKind::ReduceScatter)
          given += static_cast<int64_t>(own) * count;
        for (int64_t j = 0; j < count; ++j) {
          int64_t &element = result[gathers ? static_cast<int64_t>(i) * count + j : j];
          element = gathers || i == 0 ? given[j] : element + given[j];
        }
      }
    }
    for (int rank = 0; rank < ranks; ++rank)
      forEachIndex(test.to.boxOf(test.mesh, test.shape, rank), [&](const std::vector<int64_t> &index) {
        // The sum over all coordinates on the reduced axes; own ones on the others.
        std::vector<int> reduced;
        for (int axis : test.from.partialAxes)
          if (std::find(test.to.partialAxes.begin(), test.to.partialAxes.end(), axis) == test.to.partialAxes.end())
            reduced.push_back(axis);
        int64_t expected = 0, count = 1;
        for (int axis : reduced)
          count *= test.mesh.axisSize(axis);
        std::vector<int> coords = test.mesh.coordsOf(rank);
        for (int64_t i = 0; i < count; ++i) {
          setCoordinate(test.mesh, reduced, static_cast<int>(i), coords);
          expected += contribution(test, test.mesh.rankOf(coords), index);
        }
        ASSERT_EQ(target[rank].at(index), expected) << "rank " << rank;
      });
  });
  for (int kind = 0; kind < 5; ++kind)
    EXPECT_GT(found[kind], testing::Test::HasFailure() ? -1 : 50)
        << stringifyExchangeKind(static_cast<ExchangeKind>(kind));
}

TEST(ExchangeKindProperty, PhasesCoverWhatIsReduced) {
  int split = 0;
  forRandomCases(2000, [&](Random &random) {
    Case test = randomCase(random);
    std::optional<Sharding> parts = scatteredSharding(test.mesh, test.shape, test.from, test.to, test.target.order);
    if (!parts)
      return;
    ++split;
    std::string why;
    ASSERT_TRUE(verifyExchange(test.mesh, test.shape, test.from, *parts, &why)) << why;
    ASSERT_TRUE(verifyExchange(test.mesh, test.shape, *parts, test.to, &why)) << why;
    for (int rank = 0; rank < test.mesh.numRanks(); ++rank) {
      Box needed = test.to.boxOf(test.mesh, test.shape, rank), part = parts->boxOf(test.mesh, test.shape, rank);
      EXPECT_TRUE(needed.contains(part));
      // Each part is received once, and nothing else.
      ExchangePlanner gather(test.mesh, test.shape, *parts, test.to);
      EXPECT_TRUE(gather.getReducedAxes().empty());
      int64_t volume = part.volume();
      for (const Transfer &transfer : gather.receives(rank))
        volume += transfer.box.volume();
      EXPECT_EQ(volume, needed.volume());
      // All contributions to the part come from the rank's group.
      EXPECT_EQ(receiveVolume(test.mesh, test.shape, test.from, *parts, rank),
                lowerBound(test.mesh, test.shape, test.from, *parts, rank));
    }
  });
  EXPECT_GT(split, testing::Test::HasFailure() ? -1 : 50);
}
