//===- DimMapPropertyTest.cpp - Tests of dimension maps against brute force -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Helpers.h"
#include "dovetail/Layout/Arith.h"
#include "dovetail/Layout/Cuts.h"
#include "dovetail/Layout/DimMap.h"

#include "Random.h"

using namespace dovetail::layout;

using Cuts = std::vector<int64_t>;

namespace {

/// The smallest interval with all of `indices`.
Interval hullOf(const std::vector<int64_t> &indices) {
  if (indices.empty())
    return {};
  auto [lo, hi] = std::minmax_element(indices.begin(), indices.end());
  return {*lo, *hi + 1};
}

Interval randomLoop(Random &random) {
  int64_t lo = random.between(-20, 20);
  return {lo, lo + random.between(0, 12)};
}

DimMap randomForwardMap(Random &random) {
  switch (random.below(5)) {
  case 0:
    return transposedWindow(random.between(1, 6), random.between(1, 4), random.between(1, 3), random.between(0, 4));
  case 1:
    return DimMap::merge(random.between(1, 6));
  case 2:
    return DimMap::split(random.between(1, 6));
  case 3: {
    int64_t offset = random.between(-9, 9);
    return DimMap::affine(random.between(1, 5), random.between(1, 5), offset, offset + random.between(0, 9));
  }
  default:
    return DimMap::window(random.between(1, 6), random.between(1, 4), random.between(1, 3), random.between(-2, 6));
  }
}

DimMap randomTable(Random &random, int64_t loopExtent, int64_t operandExtent, bool monotone) {
  Cuts lo, last;
  for (int64_t i = 0; i < loopExtent; ++i)
    lo.push_back(random.between(0, operandExtent - 1));
  if (monotone)
    std::sort(lo.begin(), lo.end());
  int64_t width = random.between(0, 2);
  for (int64_t first : lo)
    last.push_back(monotone ? first + width : first + random.between(-1, 2));
  return DimMap::table(lo, last);
}

} // namespace

TEST(DimMapPropertyTest, WindowsNeedTheirTaps) {
  forRandomCases(2000, [](Random &random) {
    int64_t kernel = random.between(1, 7), stride = random.between(1, 5), dilation = random.between(1, 4),
            pad = random.between(-3, 9);
    Interval loop = randomLoop(random);
    std::vector<int64_t> taps;
    for (int64_t i = loop.lo; i < loop.hi; ++i)
      for (int64_t k = 0; k < kernel; ++k)
        taps.push_back(i * stride - pad + k * dilation);
    DimMap map = DimMap::window(kernel, stride, dilation, pad);
    EXPECT_EQ(map.need(loop), hullOf(taps)) << map << " on " << loop;
    EXPECT_EQ(map.needClipped(loop, 10), hullOf(taps).intersect({0, 10}));
  });
}

TEST(DimMapPropertyTest, TransposedWindowsNeedWhatReachesThem) {
  forRandomCases(2000, [](Random &random) {
    int64_t kernel = random.between(1, 5), stride = random.between(1, 6), pad = random.between(0, 6);
    // Without dilation each element's hull is made of elements that reach it; with it, of bounds.
    int64_t dilation = random.between(1, 3);
    Interval loop = randomLoop(random);
    std::vector<int64_t> sources;
    for (int64_t o = loop.lo; o < loop.hi; ++o) {
      std::vector<int64_t> between;
      for (int64_t i = -60; i <= 60; ++i) {
        int64_t reach = o + pad - i * stride;
        if (0 <= reach && reach <= (kernel - 1) * dilation)
          between.push_back(i);
      }
      sources.insert(sources.end(), between.begin(), between.end());
    }
    DimMap map = transposedWindow(kernel, stride, dilation, pad);
    EXPECT_EQ(map.need(loop), hullOf(sources)) << map << " on " << loop;
    // Nothing that contributes is left out.
    for (int64_t o = loop.lo; o < loop.hi; ++o)
      for (int64_t i = -60; i <= 60; ++i)
        for (int64_t k = 0; k < kernel; ++k)
          if (i * stride - pad + k * dilation == o) {
            EXPECT_TRUE(map.need(loop).contains(i));
          }
  });
}

TEST(DimMapPropertyTest, AffineMapsNeedTheHullOfTheirElements) {
  forRandomCases(2000, [](Random &random) {
    int64_t num = random.between(-5, 5), den = random.between(1, 6), offLo = random.between(-15, 15),
            offHi = offLo + random.between(-5, 8);
    Interval loop = randomLoop(random);
    std::vector<int64_t> needed;
    for (int64_t i = loop.lo; i < loop.hi; ++i)
      for (int64_t j = -200; j <= 200; ++j)
        // floor((num*i + offLo) / den) <= j <= floor((num*i + offHi) / den).
        if (num * i + offLo < (j + 1) * den && j * den <= num * i + offHi)
          needed.push_back(j);
    DimMap map = DimMap::affine(num, den, offLo, offHi);
    EXPECT_EQ(map.need(loop), hullOf(needed)) << map << " on " << loop;
  });
}

TEST(DimMapPropertyTest, TablesNeedTheHullOfTheirEntries) {
  forRandomCases(500, [](Random &random) {
    int64_t extent = random.between(1, 12);
    DimMap map = randomTable(random, extent, 9, false);
    Interval loop = randomLoop(random);
    std::vector<int64_t> needed;
    for (int64_t i = 0; i < extent; ++i)
      for (int64_t j = map.getTableLo()[i]; loop.contains(i) && j <= map.getTableLast()[i]; ++j)
        needed.push_back(j);
    EXPECT_EQ(map.need(loop), hullOf(needed));
  });
}

TEST(DimMapPropertyTest, AffineCutsFollowCentres) {
  forRandomCases(2000, [](Random &random) {
    DimMap map = randomForwardMap(random);
    int64_t operandExtent = random.between(0, 30), loopExtent = random.between(0, 30);
    Cuts cuts = random.cuts(operandExtent, 5);
    std::optional<Cuts> followed = map.follow(cuts, loopExtent);
    ASSERT_TRUE(followed);
    EXPECT_TRUE(isValidCuts(*followed, loopExtent));
    ASSERT_EQ(followed->size(), cuts.size());
    for (size_t p = 1; p + 1 < cuts.size(); ++p) {
      // The smallest index whose centre is at or after the cut.
      int64_t expected = 0;
      auto centre = [&](int64_t i) {
        return floorDiv(map.getNum() * i + floorDiv(map.getOffLo() + map.getOffHi(), 2), map.getDen());
      };
      while (expected < loopExtent && centre(expected) < cuts[p])
        ++expected;
      if (cuts[p] == 0)
        expected = 0;
      else if (cuts[p] == operandExtent)
        expected = loopExtent;
      EXPECT_EQ((*followed)[p], expected) << map << " at " << cuts[p];
    }
  });
}

TEST(DimMapPropertyTest, FollowedWindowsCommunicateLeast) {
  forRandomCases(1000, [](Random &random) {
    int64_t kernel = random.between(1, 7), stride = random.between(1, 4), dilation = random.between(1, 3),
            pad = random.between(0, (kernel - 1) * dilation);
    DimMap map = DimMap::window(kernel, stride, dilation, pad);
    int64_t operandExtent = random.between(120, 140);
    int64_t loopExtent = (operandExtent + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
    int64_t cut = random.between(50, 70);
    // Elements that cross the cut when the loop is cut at `i`.
    auto crossing = [&](int64_t i) {
      return map.needClipped({0, i}, operandExtent).intersect({cut, operandExtent}).size() +
             map.needClipped({i, loopExtent}, operandExtent).intersect({0, cut}).size();
    };
    // Not all to one side, which is least for a dimension shorter than the window.
    int64_t least = operandExtent;
    for (int64_t i = 1; i < loopExtent; ++i)
      least = std::min(least, crossing(i));
    int64_t followed = (*map.follow(Cuts{0, cut, operandExtent}, loopExtent))[1];
    EXPECT_EQ(crossing(followed), least) << map << " at " << cut;
  });
}

TEST(DimMapPropertyTest, TablesAreCutWhereFewestAreOnTheWrongSide) {
  int64_t numChecked = 0;
  forRandomCases(1000, [&](Random &random) {
    int64_t loopExtent = random.between(1, 14), operandExtent = random.between(1, 10);
    DimMap map = randomTable(random, loopExtent, operandExtent, random.chance(50));
    Cuts cuts = random.cuts(operandExtent, 4);
    std::optional<Cuts> followed = map.follow(cuts, loopExtent);
    if (!followed)
      return;
    ++numChecked;
    EXPECT_TRUE(isValidCuts(*followed, loopExtent));
    for (size_t p = 1; p + 1 < cuts.size(); ++p) {
      if (cuts[p] == 0 || cuts[p] == operandExtent)
        continue;
      auto wrong = [&](int64_t split) {
        int64_t count = 0;
        for (int64_t i = 0; i < loopExtent; ++i) {
          int64_t lo = map.getTableLo()[i], last = map.getTableLast()[i];
          if (lo > last)
            continue;
          // Elements of the window before the cut and after it.
          int64_t before = 0, after = 0;
          for (int64_t j = lo; j <= last; ++j)
            ++(j < cuts[p] ? before : after);
          count += i < split ? after > before : before > after;
        }
        return count;
      };
      int64_t least = loopExtent;
      for (int64_t i = 0; i <= loopExtent; ++i)
        least = std::min(least, wrong(i));
      EXPECT_EQ(wrong((*followed)[p]), least);
    }
  });
  // Most tables can be followed.
  EXPECT_GT(numChecked, 500);
}

TEST(DimMapPropertyTest, TablesFollowAsTheWindowsTheySpell) {
  forRandomCases(500, [](Random &random) {
    DimMap map = DimMap::window(random.between(1, 6), random.between(1, 4), 1, random.between(0, 5));
    int64_t loopExtent = random.between(1, 20), operandExtent = random.between(1, 40);
    Cuts lo, last;
    for (int64_t i = 0; i < loopExtent; ++i) {
      lo.push_back(map.need({i, i + 1}).lo);
      last.push_back(map.need({i, i + 1}).hi - 1);
    }
    Cuts cuts = random.cuts(operandExtent, 4);
    EXPECT_EQ(DimMap::table(lo, last).follow(cuts, loopExtent), map.follow(cuts, loopExtent)) << map;
  });
}

TEST(DimMapPropertyTest, CutsGoBackWhereTheyCan) {
  int64_t numChecked = 0;
  forRandomCases(2000, [&](Random &random) {
    int64_t operandExtent = random.between(1, 30), loopExtent = random.between(1, 30);
    DimMap map = random.chance(70) ? randomForwardMap(random)
                                   : randomTable(random, loopExtent, operandExtent, random.chance(70));
    Cuts loopCuts = random.cuts(loopExtent, 4);
    std::optional<Cuts> cuts = map.followBack(loopCuts, operandExtent);
    if (!cuts)
      return;
    ++numChecked;
    EXPECT_TRUE(isValidCuts(*cuts, operandExtent));
    for (size_t p = 1; p + 1 < loopCuts.size(); ++p) {
      auto followOne = [&](int64_t cut) { return (*map.follow(Cuts{0, cut, operandExtent}, loopExtent))[1]; };
      bool reachable = false;
      for (int64_t cut = 0; cut <= operandExtent; ++cut)
        reachable |= followOne(cut) == loopCuts[p];
      if (reachable) {
        EXPECT_EQ(followOne((*cuts)[p]), loopCuts[p]) << map << " from " << (*cuts)[p];
      }
    }
  });
  // Most maps can be followed back.
  EXPECT_GT(numChecked, 1000);
}
