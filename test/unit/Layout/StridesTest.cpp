//===- StridesTest.cpp - Dimensions that are one in memory ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Strides.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace dovetail::layout;

namespace {

using Numbers = std::vector<int64_t>;

/// Where the elements lie, in row-major order.
Numbers addresses(const Numbers &extents, const Numbers &strides) {
  Numbers result = {0};
  for (size_t dim = 0; dim < extents.size(); ++dim) {
    Numbers next;
    for (int64_t base : result)
      for (int64_t i = 0; i < extents[dim]; ++i)
        next.push_back(base + i * strides[dim]);
    result = next;
  }
  return result;
}

} // namespace

TEST(Strides, MergedDimensionsHaveTheSameElements) {
  std::mt19937_64 random(1);
  auto draw = [&](int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  int merged = 0, refused = 0;
  for (int round = 0; round < 5000; ++round) {
    Numbers extents(draw(1, 4)), strides(extents.size());
    int64_t stride = draw(1, 3);
    for (size_t dim = extents.size(); dim-- > 0; stride *= extents[dim]) {
      extents[dim] = draw(1, 3);
      // Anything where there is one element, and at times elsewhere.
      strides[dim] = extents[dim] == 1 || draw(0, 5) == 0 ? draw(1, 20) : stride;
    }
    Numbers expected = addresses(extents, strides);
    bool atOneDistance = true;
    for (size_t i = 2; i < expected.size(); ++i)
      atOneDistance &= expected[i] - expected[i - 1] == expected[1] - expected[0];
    std::optional<StridedDim> dim = mergeDims(extents, strides);
    ASSERT_EQ(dim.has_value(), atOneDistance) << "round " << round;
    if (dim)
      EXPECT_EQ(addresses({dim->extent}, {dim->stride}), expected) << "round " << round;
    ++(dim ? merged : refused);
  }
  EXPECT_GT(merged, 1000);
  EXPECT_GT(refused, 500);
}

TEST(Strides, OneElementLiesAsTheLastDimensionDoes) {
  EXPECT_EQ(mergeDims(Numbers{1, 1}, Numbers{7, 3}), (StridedDim{1, 3}));
}
