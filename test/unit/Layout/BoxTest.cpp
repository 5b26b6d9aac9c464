//===- BoxTest.cpp - Tests of intervals and boxes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Box.h"

#include "Random.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <limits>

using namespace dovetail::layout;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(IntervalTest, IsHalfOpen) {
  Interval interval{2, 5};
  EXPECT_EQ(interval.size(), 3);
  EXPECT_TRUE(interval.contains(2));
  EXPECT_TRUE(interval.contains(4));
  EXPECT_FALSE(interval.contains(5));
  EXPECT_TRUE(interval.contains(Interval{3, 5}));
  EXPECT_FALSE(interval.contains(Interval{3, 6}));
  EXPECT_EQ(interval.str(), "[2, 5)");
  EXPECT_EQ(interval.shifted(-3), (Interval{-1, 2}));
}

TEST(IntervalTest, EmptyOnesAreEqual) {
  EXPECT_EQ((Interval{5, 5}), (Interval{0, 0}));
  EXPECT_EQ((Interval{7, 3}), (Interval{0, 0}));
  EXPECT_EQ((Interval{7, 3}.size()), 0);
  EXPECT_NE((Interval{0, 1}), (Interval{0, 0}));
  EXPECT_EQ((Interval{5, 5}.canonical().lo), 0);
  EXPECT_TRUE((Interval{2, 4}.contains(Interval{9, 9})));
}

TEST(IntervalTest, IntersectAndHull) {
  EXPECT_EQ((Interval{0, 5}.intersect({3, 9})), (Interval{3, 5}));
  Interval apart = Interval{0, 3}.intersect({6, 9});
  EXPECT_EQ(apart.lo, 0);
  EXPECT_EQ(apart.hi, 0);
  EXPECT_EQ((Interval{0, 3}.hull({6, 9})), (Interval{0, 9}));
  EXPECT_EQ((Interval{4, 4}.hull({6, 9})), (Interval{6, 9}));
  EXPECT_EQ((Interval{6, 9}.hull({4, 4})), (Interval{6, 9}));
}

TEST(IntervalTest, Subtract) {
  EXPECT_THAT(subtract(Interval{0, 9}, Interval{3, 5}), ElementsAre(Interval{0, 3}, Interval{5, 9}));
  EXPECT_THAT(subtract(Interval{3, 5}, Interval{0, 9}), IsEmpty());
  EXPECT_THAT(subtract(Interval{3, 5}, Interval{5, 9}), ElementsAre(Interval{3, 5}));
  EXPECT_THAT(subtract(Interval{3, 3}, Interval{5, 9}), IsEmpty());
}

TEST(BoxTest, VolumeAndEmptiness) {
  Box box = {{0, 2}, {5, 8}};
  EXPECT_EQ(box.rank(), 2);
  EXPECT_EQ(box.volume(), 6);
  EXPECT_THAT(box.shape(), ElementsAre(2, 3));
  EXPECT_FALSE(box.empty());
  EXPECT_TRUE((Box{{0, 2}, {5, 5}}.empty()));
  EXPECT_EQ((Box{{0, 2}, {5, 5}}), (Box{{1, 1}, {0, 3}}));
  EXPECT_EQ((Box{{0, 2}, {5, 5}}.volume()), 0);
  EXPECT_EQ(box.str(), "[0, 2) x [5, 8)");
}

TEST(BoxTest, VolumeSaturates) {
  Interval huge{0, int64_t(1) << 40};
  EXPECT_EQ((Box{huge, huge}.volume()), std::numeric_limits<int64_t>::max());
  EXPECT_EQ((Box{huge, huge, {3, 3}}.volume()), 0);
}

TEST(BoxTest, ScalarBoxHasOneElement) {
  Box scalar;
  EXPECT_FALSE(scalar.empty());
  EXPECT_EQ(scalar.volume(), 1);
  EXPECT_EQ(scalar.intersect(Box()), scalar);
  EXPECT_THAT(subtract(scalar, scalar), IsEmpty());
  EXPECT_EQ(scalar.str(), "scalar");
}

TEST(BoxTest, IntersectHullContains) {
  Box a = {{0, 4}, {0, 4}}, b = {{2, 6}, {3, 5}};
  EXPECT_EQ(a.intersect(b), (Box{{2, 4}, {3, 4}}));
  EXPECT_EQ(a.hull(b), (Box{{0, 6}, {0, 5}}));
  EXPECT_EQ(a.hull(Box{{9, 9}, {0, 50}}), a);
  EXPECT_TRUE(a.contains(Box{{1, 2}, {3, 4}}));
  EXPECT_FALSE(a.contains(b));
  EXPECT_TRUE(a.contains(Box{{9, 9}, {0, 50}}));
}

TEST(BoxTest, SubtractLeavesTheFrame) {
  std::vector<Box> frame = subtract(Box{{0, 5}, {0, 5}}, Box{{1, 4}, {2, 9}});
  EXPECT_THAT(frame, ElementsAre(Box{{0, 1}, {0, 5}}, Box{{4, 5}, {0, 5}}, Box{{1, 4}, {0, 2}}));
}

TEST(BoxTest, PartitionCheckNamesTheFault) {
  std::vector<int64_t> shape = {4, 6};
  std::string why;
  std::vector<Box> boxes = {{{0, 2}, {0, 6}}, {{2, 4}, {0, 3}}, {{2, 4}, {3, 6}}, {{4, 4}, {0, 6}}};
  EXPECT_TRUE(coversExactlyOnce(boxes, shape, &why));
  boxes[2][1] = {4, 6};
  EXPECT_FALSE(coversExactlyOnce(boxes, shape, &why));
  EXPECT_EQ(why, "2 of 24 elements are in no box");
  boxes[2][1] = {2, 6};
  EXPECT_FALSE(coversExactlyOnce(boxes, shape, &why));
  EXPECT_EQ(why, "boxes 1 and 2 overlap in [2, 4) x [2, 3)");
  boxes[2][1] = {3, 7};
  EXPECT_FALSE(coversExactlyOnce(boxes, shape, &why));
  EXPECT_THAT(why, HasSubstr("box 2, [2, 4) x [3, 7), reaches outside"));
  EXPECT_FALSE(coversExactlyOnce(std::vector<Box>{{{0, 4}}}, shape, &why));
  EXPECT_THAT(why, HasSubstr("rank 1"));
}

TEST(BoxTest, PartitionCheckOfScalarsAndEmptyTensors) {
  EXPECT_TRUE(coversExactlyOnce(std::vector<Box>{Box()}, {}));
  EXPECT_FALSE(coversExactlyOnce(std::vector<Box>{Box(), Box()}, {}));
  EXPECT_FALSE(coversExactlyOnce({}, {}));
  EXPECT_TRUE(coversExactlyOnce({}, std::vector<int64_t>{3, 0}));
}

//===----------------------------------------------------------------------===//
// Against brute force
//===----------------------------------------------------------------------===//

namespace {

constexpr int64_t side = 6;

Box randomBox(Random &random, int rank) {
  std::vector<Interval> dims;
  for (int d = 0; d < rank; ++d)
    dims.push_back({random.between(0, side), random.between(0, side)});
  // Empty intervals would be the usual case otherwise.
  for (Interval &dim : dims)
    if (dim.hi < dim.lo && random.chance(90))
      std::swap(dim.lo, dim.hi);
  return Box(dims);
}

/// Calls `visit` with each index of a cube of `side`.
template <typename Visit> void forEachIndex(int rank, Visit visit) {
  std::vector<int64_t> index(rank);
  while (true) {
    visit(index);
    int d = rank;
    while (d > 0 && ++index[d - 1] == side)
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

} // namespace

TEST(BoxTest, RandomBoxesActAsSetsOfElements) {
  forRandomCases(1500, [](Random &random) {
    int rank = random.below(4);
    Box a = randomBox(random, rank), b = randomBox(random, rank);
    Box common = a.intersect(b), hull = a.hull(b);
    std::vector<Box> rest = subtract(a, b);
    EXPECT_LE(static_cast<int>(rest.size()), 2 * rank);
    for (const Box &part : rest)
      EXPECT_FALSE(part.empty());
    int64_t volume = 0;
    bool within = true, equal = true;
    // Bounds of the union, to compare the hull with.
    std::vector<Interval> bounds(rank);
    forEachIndex(rank, [&](const std::vector<int64_t> &index) {
      bool inA = a.contains(index), inB = b.contains(index);
      volume += inA;
      within &= inA || !inB;
      equal &= inA == inB;
      EXPECT_EQ(common.contains(index), inA && inB);
      int found = 0;
      for (const Box &part : rest)
        found += part.contains(index);
      EXPECT_EQ(found, inA && !inB);
      if (inA || inB)
        for (int d = 0; d < rank; ++d)
          bounds[d] = bounds[d].hull({index[d], index[d] + 1});
    });
    EXPECT_EQ(a.volume(), volume);
    EXPECT_EQ(a.empty(), volume == 0);
    EXPECT_EQ(a.contains(b), within);
    EXPECT_EQ(a == b, equal);
    EXPECT_EQ(hull, Box(bounds));
  });
}

TEST(BoxTest, RandomPartitionsAreTold) {
  forRandomCases(1500, [](Random &random) {
    // Cut a tensor into boxes by repeated subtraction, then damage some.
    int rank = random.below(4);
    std::vector<int64_t> shape(rank, side);
    std::vector<Box> boxes = {Box::ofShape(shape)};
    for (int cut = random.below(4); cut > 0; --cut) {
      Box knife = randomBox(random, rank);
      std::vector<Box> pieces;
      for (const Box &box : boxes) {
        for (const Box &part : subtract(box, knife))
          pieces.push_back(part);
        pieces.push_back(box.intersect(knife));
      }
      boxes = pieces;
    }
    random.shuffle(boxes);
    if (random.chance(50))
      boxes[random.below(static_cast<int>(boxes.size()))] = randomBox(random, rank);
    bool exact = true;
    forEachIndex(rank, [&](const std::vector<int64_t> &index) {
      int found = 0;
      for (const Box &box : boxes)
        found += box.contains(index);
      exact &= found == 1;
    });
    EXPECT_EQ(coversExactlyOnce(boxes, shape), exact);
  });
}
