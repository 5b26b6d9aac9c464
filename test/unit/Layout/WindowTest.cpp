//===- WindowTest.cpp - Windows in accesses -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Window.h"

#include "Random.h"

#include <set>

using namespace dovetail::layout;

namespace {

Window randomWindow(Random &random) {
  return {random.between(1, 6), random.between(1, 4), random.between(1, 4), random.between(-3, 8), random.chance(40)};
}

Interval randomRange(Random &random, int64_t extent) {
  int64_t lo = random.between(0, extent - 1);
  return {lo, random.between(lo + 1, extent)};
}

/// The elements, inside and outside of a tensor, that iterations read: by definition.
std::set<int64_t> readsOf(const Window &window, Interval out) {
  std::set<int64_t> result;
  for (int64_t o = out.lo; o < out.hi; ++o)
    for (int64_t t = 0; t < window.kernel; ++t) {
      if (!window.isTransposed) {
        result.insert(o * window.stride - window.pad + t * window.dilation);
        continue;
      }
      for (int64_t i = -100; i < 100; ++i)
        if (i * window.stride - window.pad + t * window.dilation == o)
          result.insert(i);
    }
  return result;
}

} // namespace

TEST(Window, IsWhereItSays) {
  forRandomCases(2000, [](Random &random) {
    Window window = randomWindow(random);
    AccessDim access = window.at(IndexExpr::loop(1), IndexExpr::loop(0));
    Interval out = {random.between(0, 5), random.between(6, 9)};
    std::set<int64_t> reads;
    for (int64_t o = out.lo; o < out.hi; ++o)
      for (int64_t t = 0; t < window.kernel; ++t)
        if (int64_t index = access.index.evaluate(std::vector<int64_t>{t, o}); index % access.divisor == 0)
          reads.insert(index / access.divisor);
    EXPECT_EQ(reads, readsOf(window, out)) << str(access);
  });
}

TEST(Window, IsFoundInItsAccess) {
  forRandomCases(2000, [](Random &random) {
    Window window = randomWindow(random);
    int loop = random.below(4), tap = (loop + 1 + random.below(3)) % 4;
    AccessDim access = window.at(IndexExpr::loop(loop), IndexExpr::loop(tap));
    EXPECT_EQ(Window::find(access, loop, tap, window.kernel), window) << str(access);
    EXPECT_FALSE(Window::find(access, loop, tap, 0));
    // Its loops may not change places, unless that is a window as well.
    if (std::optional<Window> other = Window::find(access, tap, loop, 3))
      EXPECT_EQ(other->at(IndexExpr::loop(tap), IndexExpr::loop(loop)), access);
  });
}

TEST(Window, IsNotFoundInOthers) {
  IndexExpr o = IndexExpr::loop(0), t = IndexExpr::loop(1), other = IndexExpr::loop(2);
  for (const AccessDim &access : std::vector<AccessDim>{
           o, t, IndexExpr(3), o + t + other, o - t * 2 + 1 + other, AccessDim(o + t, 2), AccessDim(o * 2 - t, 2),
           t - o, o.floorDiv(2) + t, o + t.mod(2), (o + t).floorDiv(2), AccessDim(o + t - 1, Border::Edge, {0, 4})})
    EXPECT_FALSE(Window::find(access, 0, 1, 3)) << str(access);
}

TEST(Window, NeedsWhatItReads) {
  forRandomCases(5000, [](Random &random) {
    Window window = randomWindow(random);
    AccessDim access = window.at(IndexExpr::loop(0), IndexExpr::loop(1));
    Interval out = randomRange(random, 12), loops[] = {out, {0, window.kernel}};
    Interval tensor = {random.chance(70) ? 0 : random.between(1, 6), random.between(0, 14)};
    Interval held = {random.between(0, 14), random.between(0, 14)};
    std::set<int64_t> reads = readsOf(window, out);
    DimNeed need = needInside(access, loops, tensor, held);

    Interval read;
    for (int64_t i : reads)
      if (tensor.contains(i))
        read = read.hull({i, i + 1});
    EXPECT_TRUE(need.inside.contains(read)) << need.inside << " of " << read;
    EXPECT_TRUE(tensor.contains(need.inside));
    if (!need.inside.empty())
      for (int64_t end : {need.inside.lo, need.inside.hi - 1})
        EXPECT_TRUE(reads.contains(end) || held.contains(end)) << end << " of " << need.inside;
    if (!window.isTransposed && !need.inside.empty()) {
      EXPECT_EQ(need.inside.lo - need.before, *reads.begin());
      EXPECT_EQ(need.inside.hi + need.behind, *reads.rbegin() + 1);
    }
    for (int64_t i = -5; i < 30; ++i)
      EXPECT_EQ(isRead(access, i, loops), reads.contains(i)) << i << " of " << str(access) << " over " << out;
    // All results of a transposed window that these give something to.
    if (window.isTransposed && !need.inside.empty())
      for (int64_t o = -40; o < 80; ++o) {
        bool gets = false;
        for (int64_t i : readsOf(window, {o, o + 1}))
          gets |= need.inside.contains(i);
        EXPECT_TRUE(!gets || window.resultOf(need.inside).contains(o)) << o;
      }
  });
}

TEST(Window, ReadsOfAnySumsAreExact) {
  forRandomCases(5000, [](Random &random) {
    IndexExpr index = random.between(-9, 9);
    std::vector<Interval> loops;
    int count = random.below(4);
    for (int i = 0; i < count; ++i) {
      index = index + IndexExpr::loop(i) * random.between(-7, 7);
      loops.push_back(randomRange(random, 6));
    }
    if (random.chance(20) && count > 0)
      index = index + IndexExpr::loop(0).floorDiv(random.between(2, 3)) * random.between(-3, 3);
    AccessDim access = {index, random.between(1, 4)};
    std::set<int64_t> reads;
    std::vector<int64_t> at;
    for (Interval range : loops)
      at.push_back(range.lo);
    for (bool isDone = false; !isDone;) {
      if (int64_t value = index.evaluate(at); value % access.divisor == 0)
        reads.insert(value / access.divisor);
      isDone = true;
      for (int i = 0; i < count && isDone; ++i) {
        isDone = ++at[i] == loops[i].hi;
        if (isDone)
          at[i] = loops[i].lo;
      }
    }
    int64_t longer = 0;
    for (int i = 0; i < count; ++i)
      longer += loops[i].size() > 1 && index.dependsOn(i);
    bool isExact = longer <= 2;
    for (const IndexExpr::Term &term : index.getTerms())
      isExact &= term.kind == IndexExpr::Kind::Loop;
    for (int64_t i = -60; i < 60; ++i) {
      EXPECT_TRUE(!reads.contains(i) || isRead(access, i, loops)) << i << " of " << str(access);
      if (isExact)
        EXPECT_EQ(isRead(access, i, loops), reads.contains(i)) << i << " of " << str(access);
    }
  });
}

TEST(Window, LargeNumbersDoNotOverflow) {
  int64_t large = int64_t(1) << 40;
  Window window{large, (int64_t(1) << 20) - 1, (int64_t(1) << 20) + 1, -7, false};
  Interval loops[] = {{0, large}, {0, large}};
  AccessDim access = window.at(IndexExpr::loop(0), IndexExpr::loop(1));
  EXPECT_TRUE(isRead(access, 7, loops));
  EXPECT_FALSE(isRead(access, 8, loops));
  EXPECT_TRUE(isRead(access, 7 + (int64_t(1) << 20) - 1, loops));
  // The first that two multiples differ by 1: taps and indices far from zero.
  int64_t sum = ((int64_t(1) << 19) - 1) * window.stride + (int64_t(1) << 19) * window.dilation + 7;
  EXPECT_TRUE(isRead(access, sum, loops));
}

TEST(Window, AccessesHaveText) {
  IndexExpr o = IndexExpr::loop(2), t = IndexExpr::loop(4);
  EXPECT_EQ(str(o * 2 + t - 1), "2*d2 + d4 - 1");
  EXPECT_EQ(str({o - t + 1, 2}), "exact((d2 - d4 + 1) / 2)");
  EXPECT_EQ(str(AccessDim(o - 1, Border::Edge, {0, 4})), "edge(d2 - 1, [0, 4))");
  EXPECT_EQ(str(AccessDim(o - 1, Border::Reflect, {0, 4})), "reflect(d2 - 1, [0, 4))");
  EXPECT_EQ(str(AccessDim(o - 1, Border::Wrap, {0, 4})), "wrap(d2 - 1, [0, 4))");
}
