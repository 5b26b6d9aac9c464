//===- ExchangePropertyTest.cpp - Tests of exchange planning against brute force -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Helpers.h"
#include "dovetail/Layout/Cuts.h"
#include "dovetail/Layout/Exchange.h"
#include "dovetail/Layout/HaloMessages.h"

#include "Random.h"

#include "gmock/gmock.h"

#include <map>
#include <numeric>
#include <set>

using namespace dovetail::layout;

using Index = std::vector<int64_t>;

namespace {

struct Case {
  Mesh mesh;
  std::vector<int64_t> shape;
  Sharding from, to;
};

/// A mesh of at most `mostRanks`, on axes of at most `mostSize`.
Mesh randomMesh(Random &random, int mostRanks, int mostSize) {
  std::vector<MeshAxis> axes;
  int ranks = 1;
  // One rank in some cases; axes of size 1 in some.
  for (int axis = random.chance(3) ? 0 : 1 + random.below(3); axis > 0; --axis) {
    int size = random.chance(10) ? 1 : static_cast<int>(random.between(2, mostSize));
    if (ranks * size > mostRanks)
      size = 1;
    ranks *= size;
    axes.push_back({std::string(1, static_cast<char>('a' + axis)), size});
  }
  return Mesh(axes);
}

/// Cuts, halos, reversed cuts or windows at random.
std::vector<Interval> randomPieces(Random &random, int64_t extent, int parts) {
  std::vector<Interval> pieces = piecesFromCuts(random.cuts(extent, parts));
  switch (random.below(5)) {
  case 0:
    std::reverse(pieces.begin(), pieces.end());
    break;
  case 1: {
    int64_t before = random.between(0, 4), after = random.between(0, 4);
    for (Interval &piece : pieces)
      if (!piece.empty())
        piece = Interval{piece.lo - before, piece.hi + after}.intersect({0, extent});
    break;
  }
  case 2:
    for (Interval &piece : pieces) {
      piece.lo = random.between(0, extent);
      piece.hi = random.between(piece.lo, extent);
    }
    break;
  default:
    break;
  }
  return pieces;
}

Sharding randomSharding(Random &random, const Mesh &mesh, const std::vector<int64_t> &shape, bool mayBePartial) {
  Sharding sharding = Sharding::replicated(static_cast<int>(shape.size()));
  std::vector<int> axes(mesh.numAxes());
  std::iota(axes.begin(), axes.end(), 0);
  random.shuffle(axes);
  for (int axis : axes) {
    if (mayBePartial && random.chance(20)) {
      sharding.partialAxes.push_back(axis);
      sharding.partialKind = ReductionKind::Sum;
    } else if (!shape.empty() && random.chance(80)) {
      sharding.dims[random.below(static_cast<int>(shape.size()))].axes.push_back(axis);
    }
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    int parts = 1;
    for (int axis : sharding.dims[d].axes)
      parts *= mesh.axisSize(axis);
    if (sharding.dims[d].isSplit())
      sharding.dims[d].pieces = randomPieces(random, shape[d], parts);
  }
  return sharding;
}

Case randomCase(Random &random, int mostRanks = 20, int mostSize = 5, int mostExtent = 8) {
  Case result;
  result.mesh = randomMesh(random, mostRanks, mostSize);
  for (int d = random.chance(3) ? 0 : 1 + random.below(3); d > 0; --d)
    result.shape.push_back(random.chance(3) ? 0 : random.between(1, mostExtent));
  result.from = randomSharding(random, result.mesh, result.shape, true);
  // Often the same axes with other pieces, as for halos.
  if (random.chance(40)) {
    result.to = result.from;
    for (size_t d = 0; d < result.shape.size(); ++d)
      if (result.to.dims[d].isSplit() && random.chance(60))
        result.to.dims[d].pieces =
            randomPieces(random, result.shape[d], static_cast<int>(result.to.dims[d].pieces.size()));
  } else {
    result.to = randomSharding(random, result.mesh, result.shape, false);
  }
  // Some of the partial axes may stay partial, where `to` does not use them.
  std::vector<int> unused = replicaAxes(result.to, result.mesh);
  result.to.partialAxes.clear();
  for (int axis : result.from.partialAxes)
    if (std::find(unused.begin(), unused.end(), axis) != unused.end() && random.chance(40))
      result.to.partialAxes.push_back(axis);
  result.to.partialKind = result.to.isPartial() ? result.from.partialKind : ReductionKind::None;
  return result;
}

template <typename Visit> void forEachIndex(const Box &box, Visit visit) {
  if (box.empty())
    return;
  Index index;
  for (Interval dim : box)
    index.push_back(dim.lo);
  while (true) {
    visit(index);
    int d = box.rank();
    while (d > 0 && ++index[d - 1] == box[d - 1].hi) {
      --d;
      index[d] = box[d].lo;
    }
    if (d == 0)
      return;
  }
}

bool isIn(const std::vector<int> &axes, int axis) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); }

/// Whether every needed element is held by some rank.
bool isCovered(const Case &c) {
  bool covered = true;
  for (int dest = 0; dest < c.mesh.numRanks(); ++dest)
    forEachIndex(c.to.boxOf(c.mesh, c.shape, dest), [&](const Index &index) {
      bool held = false;
      for (int source = 0; source < c.mesh.numRanks(); ++source)
        held |= c.from.boxOf(c.mesh, c.shape, source).contains(index);
      covered &= held;
    });
  return covered;
}

/// The ranks whose contributions make up the element at `index` on rank `dest`, by the definition: among the ranks
/// that hold it and are at `dest`'s coordinates on axes that are neither split nor reduced, those nearest in each
/// dimension.
std::vector<int> sourcesOf(const Case &c, int dest, const Index &index) {
  std::vector<bool> free(c.mesh.numAxes());
  for (const DimSharding &dim : c.from.dims)
    for (int axis : dim.axes)
      free[axis] = true;
  for (int axis : c.from.partialAxes)
    free[axis] = free[axis] || !isIn(c.to.partialAxes, axis);
  std::vector<int> own = c.mesh.coordsOf(dest);
  // Distances in all dimensions, then the coordinates themselves.
  using Key = std::vector<std::pair<int, int>>;
  std::map<Key, std::vector<int>> byDistance;
  for (int source = 0; source < c.mesh.numRanks(); ++source) {
    std::vector<int> coords = c.mesh.coordsOf(source);
    bool eligible = c.from.boxOf(c.mesh, c.shape, source).contains(index);
    for (int axis = 0; axis < c.mesh.numAxes(); ++axis)
      eligible &= free[axis] || coords[axis] == own[axis];
    if (!eligible)
      continue;
    Key key;
    for (size_t d = 0; d < c.shape.size(); ++d) {
      int coordinate = c.from.coordinateOf(c.mesh, static_cast<int>(d), source);
      key.push_back({std::abs(coordinate - c.from.coordinateOf(c.mesh, static_cast<int>(d), dest)), coordinate});
    }
    byDistance[key].push_back(source);
  }
  // Dimensions are independent, so the least key is least in each of them.
  return byDistance.empty() ? std::vector<int>() : byDistance.begin()->second;
}

} // namespace

TEST(ExchangePropertyTest, PlansMatchBruteForce) {
  int planned = 0, moving = 0, heldOnce = 0, betweenSome = 0;
  forRandomCases(5000, [&](Random &random) {
    Case c = randomCase(random);
    SCOPED_TRACE(c.mesh.str() + " " + testing::PrintToString(c.shape) + "\nfrom " + c.from.str(c.mesh) + "\nto " +
                 c.to.str(c.mesh));
    bool covered = isCovered(c);
    ASSERT_EQ(verifyExchange(c.mesh, c.shape, c.from, c.to), covered);
    if (!covered)
      return;
    ++planned;

    ExchangePlanner planner(c.mesh, c.shape, c.from, c.to);
    std::map<std::pair<int, int>, std::vector<Transfer>> received, sent;
    bool anyTransfer = false, allEqual = true;
    ExchangeVolume moved, far;
    std::vector<int> nearAxes;
    for (int axis = 0; axis < c.mesh.numAxes(); ++axis)
      if (random.chance(50))
        nearAxes.push_back(axis);
    auto areFar = [&](int a, int b) {
      std::vector<int> some = c.mesh.coordsOf(a), others = c.mesh.coordsOf(b);
      for (int axis : nearAxes)
        some[axis] = others[axis];
      return some != others;
    };
    for (int rank = 0; rank < c.mesh.numRanks(); ++rank) {
      Box needed = c.to.boxOf(c.mesh, c.shape, rank), held = c.from.boxOf(c.mesh, c.shape, rank);
      allEqual &= needed == held;
      // Every element comes from where it should, once, in ascending order.
      std::map<Index, std::vector<int>> arrivals;
      int64_t volume = 0, farVolume = 0;
      std::set<int> sources, farSources;
      std::vector<Transfer> receives = planner.receives(rank);
      for (const Transfer &transfer : receives) {
        EXPECT_EQ(transfer.dest, rank);
        EXPECT_FALSE(transfer.box.empty());
        anyTransfer = true;
        sources.insert(transfer.source);
        volume += transfer.box.volume();
        if (areFar(transfer.source, rank)) {
          farVolume += transfer.box.volume();
          farSources.insert(transfer.source);
        }
        received[{transfer.source, rank}].push_back(transfer);
        forEachIndex(transfer.box, [&](const Index &index) { arrivals[index].push_back(transfer.source); });
      }
      std::vector<Box> local = planner.local(rank);
      for (const Box &box : local)
        forEachIndex(box, [&](const Index &index) {
          std::vector<int> &sources = arrivals[index];
          sources.insert(std::upper_bound(sources.begin(), sources.end(), rank), rank);
        });
      size_t elements = 0;
      forEachIndex(needed, [&](const Index &index) {
        ++elements;
        EXPECT_EQ(arrivals[index], sourcesOf(c, rank, index)) << "element " << testing::PrintToString(index);
      });
      EXPECT_EQ(arrivals.size(), elements) << "rank " << rank << " receives what it does not need";
      EXPECT_EQ(volume, lowerBound(c.mesh, c.shape, c.from, c.to, rank));
      EXPECT_EQ(volume, receiveVolume(c.mesh, c.shape, c.from, c.to, rank));
      moved.total += volume;
      moved.largest = std::max(moved.largest, volume);
      moved.sources = std::max<int64_t>(moved.sources, sources.size());
      far.total += farVolume;
      far.largest = std::max(far.largest, farVolume);
      far.sources = std::max<int64_t>(far.sources, farSources.size());

      // No two boxes of a source could be one.
      for (size_t i = 0; i < receives.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (receives[i].source == receives[j].source) {
            EXPECT_GT(receives[i].box.hull(receives[j].box).volume(),
                      receives[i].box.volume() + receives[j].box.volume());
          }

      int lastDest = -1;
      int64_t given = 0, farGiven = 0;
      std::set<int> targets, farTargets;
      for (const Transfer &transfer : planner.sends(rank)) {
        EXPECT_EQ(transfer.source, rank);
        EXPECT_GE(transfer.dest, lastDest);
        lastDest = transfer.dest;
        sent[{rank, transfer.dest}].push_back(transfer);
        given += transfer.box.volume();
        targets.insert(transfer.dest);
        if (areFar(rank, transfer.dest)) {
          farGiven += transfer.box.volume();
          farTargets.insert(transfer.dest);
        }
      }
      far.largestSent = std::max(far.largestSent, farGiven);
      far.targets = std::max<int64_t>(far.targets, farTargets.size());
      moved.largestSent = std::max(moved.largestSent, given);
      moved.targets = std::max<int64_t>(moved.targets, targets.size());
    }
    moving += anyTransfer;
    ExchangeVolume expected = getExchangeVolume(c.mesh, c.shape, c.from, c.to);
    EXPECT_EQ(expected.total, moved.total);
    EXPECT_EQ(expected.largest, moved.largest);
    EXPECT_GE(expected.largestSent, moved.largestSent);
    EXPECT_GE(expected.sources, moved.sources);
    EXPECT_GE(expected.targets, moved.targets);
    bool isHeldOnce = true;
    for (size_t dim = 0; dim < c.shape.size(); ++dim)
      isHeldOnce &= c.from.dims[dim].isCuts(c.shape[dim]);
    if (isHeldOnce) {
      ++heldOnce;
      EXPECT_EQ(expected, moved);
      EXPECT_EQ(getExchangeVolume(c.mesh, c.shape, c.from, c.to, /*countSent=*/true, nearAxes), far)
          << "near along " << testing::PrintToString(nearAxes);
      betweenSome += far.total > 0 && far.total < moved.total;
    }
    ExchangeVolume receivedOnly = expected;
    receivedOnly.largestSent = receivedOnly.targets = 0;
    EXPECT_EQ(getExchangeVolume(c.mesh, c.shape, c.from, c.to, /*countSent=*/false), receivedOnly);
    // Sends are the receives of the others, for each pair in the same order.
    EXPECT_EQ(sent, received);
    EXPECT_EQ(planner.findDisagreement(), std::nullopt);

    ExchangeClass exchangeClass = classify(c.mesh, c.shape, c.from, c.to);
    bool reduces = exchangeClass == ExchangeClass::AllReduce || exchangeClass == ExchangeClass::ReduceScatter;
    if (exchangeClass != ExchangeClass::General && !reduces) {
      bool isLocal = exchangeClass == ExchangeClass::None || exchangeClass == ExchangeClass::Slice;
      EXPECT_EQ(isLocal, !anyTransfer) << stringifyExchangeClass(exchangeClass);
      EXPECT_EQ(exchangeClass == ExchangeClass::None, allEqual);
    }
  });
  // A failure stops the cases early; otherwise most must be exchanges that were really planned.
  EXPECT_TRUE(HasFailure() || planned > 2500) << planned << " planned";
  EXPECT_TRUE(HasFailure() || moving > 1500) << moving << " with transfers";
  EXPECT_TRUE(HasFailure() || heldOnce > 1000) << heldOnce << " from cuts";
  EXPECT_TRUE(HasFailure() || betweenSome > 200) << betweenSome << " of which a part is between near ranks";
}

/// A sharding of which each dimension is split as in one of the two; none where these together use an axis twice.
static std::optional<Sharding> mixDims(Random &random, const Sharding &a, const Sharding &b) {
  Sharding mixed = random.chance(50) ? a : b;
  std::vector<int> axes = mixed.partialAxes;
  for (size_t dim = 0; dim < a.dims.size(); ++dim) {
    mixed.dims[dim] = (random.chance(50) ? a : b).dims[dim];
    axes.insert(axes.end(), mixed.dims[dim].axes.begin(), mixed.dims[dim].axes.end());
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    return std::nullopt;
  return mixed;
}

TEST(ExchangePropertyTest, CountersSayOfEachExchangeWhatIsSaidOfItAlone) {
  int compared = 0, moving = 0;
  forRandomCases(3000, [&](Random &random) {
    Case c = randomCase(random, 60, 12, 20);
    std::vector<int> nearAxes;
    for (int axis = 0; axis < c.mesh.numAxes(); ++axis)
      if (random.chance(50))
        nearAxes.push_back(axis);
    ExchangeCounter counter(c.mesh, /*countSent=*/true, nearAxes);
    for (int i = 0; i < 8; ++i) {
      std::optional<Sharding> from = mixDims(random, c.from, c.to), to = mixDims(random, c.from, c.to);
      if (!from || !to || !verifyExchange(c.mesh, c.shape, *from, *to))
        continue;
      SCOPED_TRACE("from " + from->str(c.mesh) + "\nto " + to->str(c.mesh));
      ExchangeVolume volume = getExchangeVolume(c.mesh, c.shape, *from, *to, /*countSent=*/true, nearAxes);
      EXPECT_EQ(counter.get(c.shape, *from, *to), volume);
      ++compared;
      moving += volume.total > 0;
    }
  });
  EXPECT_TRUE(HasFailure() || compared > 2000) << compared << " compared";
  EXPECT_TRUE(HasFailure() || moving > 1000) << moving << " that move anything";
}

TEST(ExchangePropertyTest, VolumesOfManyRanksAreSumsOverRanks) {
  int large = 0, moving = 0;
  forRandomCases(3000, [&](Random &random) {
    Case c = randomCase(random, 600, 24, 40);
    SCOPED_TRACE(c.mesh.str() + " " + testing::PrintToString(c.shape) + "\nfrom " + c.from.str(c.mesh) + "\nto " +
                 c.to.str(c.mesh));
    int64_t total = 0, largest = 0;
    for (int rank = 0; rank < c.mesh.numRanks(); ++rank) {
      int64_t volume = lowerBound(c.mesh, c.shape, c.from, c.to, rank);
      total += volume;
      largest = std::max(largest, volume);
    }
    ExchangeVolume volume = getExchangeVolume(c.mesh, c.shape, c.from, c.to);
    EXPECT_EQ(volume.total, total);
    EXPECT_EQ(volume.largest, largest);
    large += c.mesh.numRanks() > 128;
    moving += total > 0;
  });
  EXPECT_TRUE(HasFailure() || large > 800) << large << " of many ranks";
  EXPECT_TRUE(HasFailure() || moving > 1500) << moving << " that move anything";
}

TEST(ExchangePropertyTest, WhatHoldsOnAllRanksFollowsFromPieces) {
  int inside = 0, outside = 0;
  forRandomCases(5000, [&](Random &random) {
    Case c = randomCase(random);
    SCOPED_TRACE(c.mesh.str() + " " + testing::PrintToString(c.shape) + "\nfrom " + c.from.str(c.mesh) + "\nto " +
                 c.to.str(c.mesh));
    bool contains = true;
    int64_t largest = 0;
    for (int rank = 0; rank < c.mesh.numRanks(); ++rank) {
      Box held = c.from.boxOf(c.mesh, c.shape, rank);
      contains &= held.contains(c.to.boxOf(c.mesh, c.shape, rank));
      largest = std::max(largest, held.volume());
    }
    (contains ? inside : outside) += 1;
    EXPECT_EQ(c.from.contains(c.mesh, c.shape, c.to), contains);
    EXPECT_EQ(c.from.largestVolume(c.shape), largest);

    for (size_t dim = 0; dim < c.shape.size(); ++dim) {
      const DimSharding &from = c.from.dims[dim], &to = c.to.dims[dim];
      std::set<std::pair<int, int>> expected;
      bool dimContains = true;
      for (int rank = 0; rank < c.mesh.numRanks(); ++rank) {
        int a = c.from.coordinateOf(c.mesh, static_cast<int>(dim), rank),
            b = c.to.coordinateOf(c.mesh, static_cast<int>(dim), rank);
        expected.insert({a, b});
        dimContains &= from.pieceAt(a, c.shape[dim]).contains(to.pieceAt(b, c.shape[dim]));
      }
      std::vector<std::pair<int, int>> pairs = coordinatePairs(c.mesh, from.axes, to.axes);
      EXPECT_EQ(pairs.size(), expected.size());
      EXPECT_EQ(std::set(pairs.begin(), pairs.end()), expected);
      EXPECT_EQ(from.contains(c.mesh, to, c.shape[dim]), dimContains);
    }
  });
  EXPECT_TRUE(HasFailure() || inside > 500) << inside << " inside";
  EXPECT_TRUE(HasFailure() || outside > 500) << outside << " outside";
}

TEST(ExchangePropertyTest, MessagesLeaveWhatIsNeitherSentNorReceived) {
  int left = 0, met = 0;
  forRandomCases(3000, [&](Random &random) {
    Case c = randomCase(random);
    if (c.from.isPartial() || c.to.isPartial() || !verifyExchange(c.mesh, c.shape, c.from, c.to))
      return;
    SCOPED_TRACE(c.mesh.str() + " " + testing::PrintToString(c.shape) + "\nfrom " + c.from.str(c.mesh) + "\nto " +
                 c.to.str(c.mesh));
    HaloMessages messages(c.mesh, c.shape, c.from, c.to);
    // From whom each element that a rank lacks comes, the receivers say.
    std::vector<Transfer> transfers;
    for (int rank = 0; rank < c.mesh.numRanks(); ++rank)
      for (Transfer &transfer : planReceives(c.mesh, c.shape, c.from, c.to, rank))
        transfers.push_back(std::move(transfer));
    for (int rank = 0; rank < c.mesh.numRanks(); ++rank) {
      Box held = c.from.boxOf(c.mesh, c.shape, rank), box = held;
      for (int dim = 0; dim < box.rank(); ++dim) {
        Interval whole = random.chance(90) ? held[dim] : Interval{0, c.shape[dim]};
        box[dim].lo = random.between(whole.lo, whole.hi);
        box[dim].hi = random.between(box[dim].lo, whole.hi);
      }
      bool isFree = box.empty() || held.contains(box);
      for (const Transfer &transfer : transfers)
        if (transfer.source == rank || transfer.dest == rank)
          isFree &= transfer.box.intersect(box).empty();
      bool isLeft = messages.leaves(rank, box);
      EXPECT_EQ(isLeft, isFree) << "rank " << rank << ", " << box;
      (isLeft ? left : met) += !box.empty();
    }
  });
  EXPECT_TRUE(HasFailure() || (left > 500 && met > 500)) << left << " left alone, " << met << " not";
}
