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

} // namespace

TEST(MemoryFormat, StridesFollowTheOrder) {
  EXPECT_THAT(MemoryFormat::rowMajor(3).strides(Shape{2, 5, 7}), ElementsAre(35, 7, 1));
  EXPECT_THAT((MemoryFormat{{0, 2, 3, 1}}.strides(Shape{2, 8, 5, 7})), ElementsAre(280, 1, 56, 8));
  EXPECT_THAT((MemoryFormat{{0, 2, 3, 1}}.strides(Box{{1, 3}, {0, 8}, {3, 8}, {2, 9}})), ElementsAre(280, 1, 56, 8));
  EXPECT_THAT((MemoryFormat{{0, 2, 3, 1}}.strides(Box{{1, 3}, {4, 4}, {3, 8}, {2, 9}})), ElementsAre(35, 1, 7, 1));
}

TEST(MemoryFormat, UnknownExtentsGiveUnknownStrides) {
  constexpr int64_t unknown = MemoryFormat::dynamic;
  EXPECT_THAT(MemoryFormat::rowMajor(4).strides(Shape{1, 40, unknown, 7}), ElementsAre(unknown, unknown, 7, 1));
  EXPECT_THAT((MemoryFormat{{1, 0}}.strides(Shape{unknown, 3})), ElementsAre(1, unknown));
}

TEST(MemoryFormat, NamesAndMistakes) {
  EXPECT_EQ(MemoryFormat::rowMajor(2).str(), "row-major");
  EXPECT_EQ((MemoryFormat{{0, 2, 1}}.str()), "0,2,1");
  auto mistake = [](MemoryFormat format, size_t rank) {
    std::string why;
    return format.verify(rank, &why) ? std::string() : why;
  };
  EXPECT_EQ(mistake({{3, 0, 2, 1}}, 4), "");
  EXPECT_EQ(mistake({{}}, 0), "");
  for (const std::vector<int> &order : {std::vector<int>{0}, {0, 0}, {0, 2}, {0, -1}, {0, 1, 1}})
    EXPECT_EQ(mistake({order}, 2), "is not a permutation of the dimensions");
}

// Elements are counted one after another as the format says.
TEST(MemoryFormatProperty, StridesCountElements) {
  forRandomCases(1000, [&](Random &random) {
    int rank = random.below(5);
    MemoryFormat format = MemoryFormat::rowMajor(rank);
    random.shuffle(format.order);
    ASSERT_TRUE(format.verify(rank));
    std::vector<Interval> intervals;
    for (int dim = 0; dim < rank; ++dim) {
      int64_t lo = random.between(0, 7);
      intervals.push_back({lo, lo + random.between(1, 6)});
    }
    Box box(intervals);
    std::vector<int64_t> strides = format.strides(box);
    int64_t volume = box.volume();
    for (int64_t position = 0; position < volume; ++position) {
      // Digits of the position are coordinates, the innermost one last.
      int64_t rest = position, offset = 0;
      for (size_t i = format.order.size(); i-- > 0;) {
        int dim = format.order[i];
        offset += rest % box[dim].size() * strides[dim];
        rest /= box[dim].size();
      }
      ASSERT_EQ(offset, position) << format.str() << " of " << box.str();
    }
  });
}
