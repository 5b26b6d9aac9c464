//===- IndexExprTest.cpp - Indices as functions of loops ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/IndexExpr.h"
#include "Helpers.h"

#include "Random.h"
#include "dovetail/Layout/Arith.h"
#include "gtest/gtest.h"

#include <functional>

using namespace dovetail::layout;

namespace {

const IndexExpr d0 = IndexExpr::loop(0), d1 = IndexExpr::loop(1), d2 = IndexExpr::loop(2);

TEST(IndexExpr, Sums) {
  EXPECT_EQ((2 * d0 + d1 - 3).str(), "2*d0 + d1 - 3");
  EXPECT_EQ(d0 + d1, d1 + d0);
  EXPECT_EQ(d0 - d0, IndexExpr(0));
  EXPECT_EQ((d0 * 0).asConstant(), 0);
  EXPECT_EQ(d1.asLoop(), 1);
  EXPECT_EQ((d1 + 1).asLoop(), std::nullopt);
  EXPECT_EQ((2 * d0 - d1).getFactor(1), -1);
  EXPECT_EQ((2 * d0 - d1).getFactor(2), 0);
  EXPECT_EQ((2 * d0 + d1.floorDiv(2)).getFactor(1), std::nullopt);
}

TEST(IndexExpr, Quotients) {
  EXPECT_EQ((6 * d0 + 7).floorDiv(3), 2 * d0 + 2);
  EXPECT_EQ((4 * d0 + d1).floorDiv(4), d0 + d1.floorDiv(4));
  EXPECT_EQ((4 * d0 + 3).floorDiv(8), d0.floorDiv(2));
  EXPECT_EQ(d0.floorDiv(3).floorDiv(4), d0.floorDiv(12));
  EXPECT_EQ((d0.floorDiv(3) + 5).floorDiv(4), (d0 + 15).floorDiv(12));
  EXPECT_EQ(IndexExpr(-7).floorDiv(2).asConstant(), -4);
  EXPECT_EQ((d0 + 3).floorDiv(4).str(), "floor((d0 + 3) / 4)");
}

TEST(IndexExpr, Remainders) {
  EXPECT_EQ((6 * d0 + 7).mod(3).asConstant(), 1);
  EXPECT_EQ((5 * d0 - 1).mod(4), (d0 + 3).mod(4));
  EXPECT_EQ(d0.mod(4).bounds(std::vector<Interval>{{5, 8}}), (Interval{1, 4}));
  EXPECT_EQ(d0.mod(4).bounds(std::vector<Interval>{{3, 5}}), (Interval{0, 4}));
}

TEST(IndexExpr, UnknownValuesReachEverywhere) {
  IndexExpr unknown = IndexExpr::unknown(0);
  EXPECT_TRUE((d0 + unknown).hasUnknown());
  EXPECT_TRUE((d0 + unknown).floorDiv(2).hasUnknown());
  Interval bounds = (d0 + unknown).bounds(std::vector<Interval>{{0, 5}});
  EXPECT_TRUE(bounds.contains(Interval{-1000000000, 1000000000}));
  EXPECT_EQ(AccessDim(d0 + unknown).getMap(0, std::vector<Interval>{{0, 5}}), DimMap::whole());
}

TEST(IndexExpr, UnknownValuesInIntervals) {
  IndexExpr unknown = IndexExpr::unknown(0, d0, {4, 2, 9, 0}, {5, 3, 8, 0});
  EXPECT_EQ((unknown + 1).bounds(std::vector<Interval>{{0, 2}}), (Interval{3, 7}));
  EXPECT_TRUE(unknown.bounds(std::vector<Interval>{{2, 3}}).empty()) << "there is no value at 2";
  EXPECT_EQ(unknown.bounds(std::vector<Interval>{{2, 4}}), (Interval{0, 1}));
  EXPECT_EQ(AccessDim(unknown).getMap(0, std::vector<Interval>{{0, 4}}), DimMap::table({4, 2, 9, 0}, {5, 3, 8, 0}));
  std::vector<IndexExpr> shift = {d0 + 1};
  EXPECT_EQ(IndexExpr::unknown(0, d0, {3, 0}, {3, 0}).evaluate(std::vector<int64_t>{7}), 0) << "clamped to the table";
  EXPECT_EQ(unknown.substitute(shift).bounds(std::vector<Interval>{{0, 1}}), (Interval{2, 4}));
}

TEST(IndexExpr, SaturatesInsteadOfOverflowing) {
  IndexExpr large = d0 * (int64_t(1) << 40);
  EXPECT_EQ((large + large).evaluate(std::vector<int64_t>{int64_t(1) << 40}), int64_t(1) << 62);
}

/// A random expression over three loops, and the function that it stands for.
struct Case {
  IndexExpr expr;
  std::function<int64_t(const std::vector<int64_t> &)> value;
};

Case randomCase(Random &random, int depth) {
  if (depth == 0 || random.chance(15)) {
    if (random.chance(25)) {
      int64_t constant = random.between(-9, 9);
      return {constant, [=](const auto &) { return constant; }};
    }
    int loop = random.below(3);
    return {IndexExpr::loop(loop), [=](const auto &at) { return at[loop]; }};
  }
  Case a = randomCase(random, depth - 1);
  int64_t number = random.between(1, 6);
  switch (random.below(6)) {
  case 0: {
    Case b = randomCase(random, depth - 1);
    return {a.expr + b.expr, [=](const auto &at) { return a.value(at) + b.value(at); }};
  }
  case 1: {
    Case b = randomCase(random, depth - 1);
    return {a.expr - b.expr, [=](const auto &at) { return a.value(at) - b.value(at); }};
  }
  case 2: {
    int64_t factor = random.between(-4, 4);
    return {a.expr * factor, [=](const auto &at) { return a.value(at) * factor; }};
  }
  case 3:
    return {a.expr.floorDiv(number), [=](const auto &at) { return floorDiv(a.value(at), number); }};
  case 4:
    return {a.expr.mod(number), [=](const auto &at) { return a.value(at) - floorDiv(a.value(at), number) * number; }};
  default: {
    std::vector<int64_t> table;
    for (int64_t i = 0; i < number; ++i)
      table.push_back(random.between(-5, 20));
    return {IndexExpr::unknown(0, a.expr, table, table),
            [=](const auto &at) { return table[std::clamp<int64_t>(a.value(at), 0, number - 1)]; }};
  }
  }
}

void forEachIn(const std::vector<Interval> &box, const std::function<void(const std::vector<int64_t> &)> &visit) {
  for (int64_t i = box[0].lo; i < box[0].hi; ++i)
    for (int64_t j = box[1].lo; j < box[1].hi; ++j)
      for (int64_t k = box[2].lo; k < box[2].hi; ++k)
        visit({i, j, k});
}

std::vector<Interval> randomBox(Random &random, int64_t lowest) {
  std::vector<Interval> box;
  for (int loop = 0; loop < 3; ++loop) {
    int64_t lo = random.between(lowest, 6);
    box.push_back({lo, lo + random.between(1, 5)});
  }
  return box;
}

TEST(IndexExprProperty, NormalFormsHaveTheSameValuesAndBoundsContainThem) {
  forRandomCases(3000, [](Random &random) {
    Case random3 = randomCase(random, 4);
    std::vector<Interval> box = randomBox(random, -6);
    Interval bounds = random3.expr.bounds(box);
    forEachIn(box, [&](const std::vector<int64_t> &at) {
      int64_t value = random3.value(at);
      ASSERT_EQ(random3.expr.evaluate(at), value) << random3.expr;
      ASSERT_TRUE(bounds.contains(value)) << random3.expr << " has bounds " << bounds << " and the value " << value;
      for (int loop = 0; loop < 3; ++loop)
        if (!random3.expr.dependsOn(loop)) {
          std::vector<int64_t> other = at;
          other[loop] += 17;
          ASSERT_EQ(random3.expr.evaluate(other), value) << random3.expr << " depends on d" << loop;
        }
    });
  });
}

TEST(IndexExprProperty, SubstitutionComposes) {
  forRandomCases(1000, [](Random &random) {
    Case outer = randomCase(random, 3), inner[3];
    std::vector<IndexExpr> replacements;
    for (Case &each : inner) {
      each = randomCase(random, 2);
      replacements.push_back(each.expr);
    }
    IndexExpr composed = outer.expr.substitute(replacements);
    forEachIn(randomBox(random, -4), [&](const std::vector<int64_t> &at) {
      std::vector<int64_t> middle;
      for (const Case &each : inner)
        middle.push_back(each.value(at));
      ASSERT_EQ(composed.evaluate(at), outer.value(middle)) << composed;
    });
  });
}

/// What iterations with an element need, by brute force.
Interval bruteNeed(const AccessDim &access, const std::vector<Interval> &box) {
  Interval hull;
  forEachIn(box, [&](const std::vector<int64_t> &at) {
    int64_t value = access.index.evaluate(at);
    if (access.border != Border::None)
      value = continueInside(value, access.within, access.border);
    if (value % access.divisor == 0)
      hull = hull.hull({value / access.divisor, value / access.divisor + 1});
  });
  return hull;
}

TEST(AccessDimProperty, NeedsContainWhatIsRead) {
  forRandomCases(2000, [](Random &random) {
    AccessDim access(randomCase(random, 3).expr, random.chance(50) ? 1 : random.between(1, 4));
    std::vector<Interval> box = randomBox(random, 0);
    ASSERT_TRUE(access.need(box).contains(bruteNeed(access, box))) << access.index;
    int loop = random.below(3);
    std::vector<Interval> all = box;
    all[loop] = {0, box[loop].hi};
    DimMap map = access.getMap(loop, all);
    if (map.hasLoop())
      ASSERT_TRUE(map.need(box[loop]).contains(bruteNeed(access, box))) << access.index << " as " << map;
    else
      ASSERT_TRUE(!access.index.dependsOn(loop) || access.index.str().find("mod") != std::string::npos);
  });
}

TEST(AccessDimProperty, BordersStandForWhatIsInside) {
  forRandomCases(1000, [](Random &random) {
    Border border = std::vector{Border::Edge, Border::Reflect, Border::Wrap}[random.below(3)];
    int64_t lo = random.between(0, 3);
    Interval within = {lo, lo + random.between(1, 5)};
    AccessDim access(d0 * random.between(1, 2) + random.between(-12, 12), border, within);
    std::vector<Interval> box = {{0, random.between(1, 12)}, {0, 1}, {0, 1}};
    EXPECT_TRUE(access.need(box).contains(bruteNeed(access, box))) << access.index;
    if (access.index.getFactor(0) == 1)
      EXPECT_EQ(access.need(box), bruteNeed(access, box)) << access.index;
    DimMap map = access.getMap(0, box);
    for (int64_t i = 0; i < box[0].hi; ++i)
      EXPECT_EQ(map.need({i, i + 1}), access.need(std::vector<Interval>{{i, i + 1}, {0, 1}, {0, 1}}));
  });
  EXPECT_EQ(continueInside(-1, {0, 4}, Border::Reflect), 1);
  EXPECT_EQ(continueInside(4, {0, 4}, Border::Reflect), 2);
  EXPECT_EQ(continueInside(-1, {0, 4}, Border::Wrap), 3);
  EXPECT_EQ(continueInside(-5, {1, 4}, Border::Edge), 1);
}

TEST(AccessDimProperty, WindowsGroupsAndTransposedWindowsAreTheirMaps) {
  forRandomCases(1000, [](Random &random) {
    int64_t kernel = random.between(1, 5), stride = random.between(1, 4), dilation = random.between(1, 3),
            pad = random.between(-2, 5), extent = random.between(1, 20);
    std::vector<Interval> loops = {{0, extent}, {0, kernel}};
    EXPECT_EQ(AccessDim(d0 * stride + d1 * dilation - pad).getMap(0, loops),
              DimMap::window(kernel, stride, dilation, pad));
    EXPECT_EQ(AccessDim(d0 + pad - d1 * dilation, stride).getMap(0, loops),
              transposedWindow(kernel, stride, dilation, pad));
    // Channels of the group of channel d0, `stride` of which make a group.
    DimMap group = AccessDim(d0.floorDiv(stride) * kernel + d1).getMap(0, loops);
    if (stride == 1)
      EXPECT_EQ(group, kernel == 1 ? DimMap::identity() : DimMap::split(kernel));
    else if (kernel == 1)
      EXPECT_EQ(group, DimMap::merge(stride));
    else
      EXPECT_EQ(group.need({0, 1}), (Interval{0, kernel}));
  });
}

} // namespace
