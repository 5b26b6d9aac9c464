//===- MemoryFormatTest.cpp - How tensors lie in memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/MemoryFormat.h"

#include "Random.h"

#include "gmock/gmock.h"

using namespace dovetail::layout;
using testing::ElementsAre;

namespace {

using Shape = std::vector<int64_t>;

const MemoryFormat channelBlocks{{0, 1, 2, 3}, 1, 16};

} // namespace

TEST(MemoryFormat, StridesOfBlocks) {
  EXPECT_THAT(MemoryFormat::rowMajor(3).strides(Shape{2, 5, 7}), ElementsAre(35, 7, 1));
  EXPECT_THAT((MemoryFormat{{0, 2, 3, 1}}.strides(Shape{2, 8, 5, 7})), ElementsAre(280, 1, 56, 8));
  // nChw16c: 3 blocks for 40 channels, each of 5 x 7 x 16.
  EXPECT_THAT(channelBlocks.strides(Shape{2, 40, 5, 7}), ElementsAre(1680, 560, 112, 16));
  EXPECT_THAT(channelBlocks.strides(Box{{1, 2}, {0, 40}, {3, 8}, {0, 7}}), ElementsAre(1680, 560, 112, 16));
  // A box has all blocks that it begins or ends in.
  EXPECT_THAT(channelBlocks.strides(Box{{0, 2}, {10, 34}, {0, 5}, {0, 7}}), ElementsAre(1680, 560, 112, 16));
  EXPECT_THAT(channelBlocks.strides(Box{{0, 2}, {16, 32}, {0, 5}, {0, 7}}), ElementsAre(560, 560, 112, 16));
  EXPECT_EQ(channelBlocks.volume(Box{{0, 2}, {10, 34}, {0, 5}, {0, 7}}), 2 * 48 * 5 * 7);
  EXPECT_EQ(channelBlocks.volume(Box{{0, 2}, {10, 10}, {0, 5}, {0, 7}}), 0);
}

TEST(MemoryFormat, UnknownExtentsGiveUnknownStrides) {
  constexpr int64_t unknown = MemoryFormat::dynamic;
  EXPECT_THAT(channelBlocks.strides(Shape{1, 40, unknown, 7}), ElementsAre(unknown, unknown, 112, 16));
  EXPECT_THAT(channelBlocks.strides(Shape{1, unknown, 5, 7}), ElementsAre(unknown, 560, 112, 16));
  EXPECT_THAT((MemoryFormat{{1, 0}}.strides(Shape{unknown, 3})), ElementsAre(1, unknown));
}

TEST(MemoryFormat, WholeBlocksMayEndWithTheTensor) {
  Shape shape = {1, 40, 5, 7};
  auto isWhole = [&](Interval channels) {
    return channelBlocks.hasWholeBlocks(Box{{0, 1}, channels, {2, 3}, {0, 7}}, shape);
  };
  EXPECT_TRUE(isWhole({0, 16}));
  EXPECT_TRUE(isWhole({16, 40}));
  EXPECT_TRUE(isWhole({32, 40}));
  EXPECT_TRUE(isWhole({5, 5}));
  EXPECT_FALSE(isWhole({0, 20}));
  EXPECT_FALSE(isWhole({20, 40}));
  EXPECT_TRUE(MemoryFormat::rowMajor(4).hasWholeBlocks(Box{{0, 1}, {3, 5}, {0, 1}, {0, 1}}, shape));
}

TEST(MemoryFormat, NamesAndMistakes) {
  EXPECT_EQ(MemoryFormat::rowMajor(2).str(), "row-major");
  EXPECT_EQ((MemoryFormat{{0, 2, 1}}.str()), "0,2,1");
  EXPECT_EQ(channelBlocks.str(), "0,1,2,3,16x1");
  auto mistake = [](MemoryFormat format, size_t rank) {
    std::string why;
    return format.verify(rank, &why) ? std::string() : why;
  };
  EXPECT_EQ(mistake(channelBlocks, 4), "");
  EXPECT_EQ(mistake({{}}, 0), "");
  for (const std::vector<int> &order : {std::vector<int>{0}, {0, 0}, {0, 2}, {0, -1}, {0, 1, 1}})
    EXPECT_EQ(mistake({order}, 2), "is not a permutation of the dimensions");
  EXPECT_EQ(mistake({{0, 1}, 2, 4}, 2), "has blocks of a dimension that does not exist");
  EXPECT_EQ(mistake({{0, 1}, -2, 1}, 2), "has blocks of a dimension that does not exist");
  for (int64_t block : {-4, 0, 1, 1025})
    EXPECT_EQ(mistake({{0, 1}, 0, block}, 2), "has blocks of an impossible size");
  EXPECT_EQ(mistake({{0, 1}, -1, 4}, 2), "has blocks of an impossible size");
}

// Elements are counted one after another as the format says.
TEST(MemoryFormatProperty, StridesCountElements) {
  int blocked = 0;
  forRandomCases(1000, [&](Random &random) {
    int rank = random.below(5);
    MemoryFormat format = MemoryFormat::rowMajor(rank);
    random.shuffle(format.order);
    if (rank > 0 && random.chance(70)) {
      format.blockDim = random.below(rank);
      format.block = random.between(2, 5);
      ++blocked;
    }
    ASSERT_TRUE(format.verify(rank));
    std::vector<Interval> intervals;
    for (int dim = 0; dim < rank; ++dim) {
      int64_t lo = random.between(0, 7);
      intervals.push_back({lo, lo + random.between(1, 6)});
    }
    Box box(intervals);
    // Digits of a position, outermost first: dimensions in order, then the elements of a block.
    std::vector<int> digits(format.order);
    std::vector<int64_t> first(rank + 1, 0), count(rank + 1, 1);
    for (int dim = 0; dim < rank; ++dim) {
      int64_t step = dim == format.blockDim ? format.block : 1;
      first[dim] = box[dim].lo / step;
      count[dim] = (box[dim].hi - 1) / step - first[dim] + 1;
    }
    digits.push_back(rank);
    count[rank] = format.block;
    std::vector<int64_t> strides = format.strides(box);
    int64_t volume = 1;
    for (int64_t each : count)
      volume *= each;
    EXPECT_EQ(format.volume(box), volume);
    for (int64_t position = 0; position < volume; ++position) {
      std::vector<int64_t> at(rank + 1);
      int64_t rest = position;
      for (size_t i = digits.size(); i-- > 0;) {
        at[digits[i]] = rest % count[digits[i]];
        rest /= count[digits[i]];
      }
      int64_t offset = at[rank];
      for (int dim = 0; dim < rank; ++dim)
        offset += at[dim] * strides[dim];
      ASSERT_EQ(offset, position) << format.str() << " of " << box.str();
    }
  });
  EXPECT_GT(blocked, testing::Test::HasFailure() ? -1 : 100);
}
