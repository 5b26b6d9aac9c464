//===- ContractionRolesTest.cpp - Loops of sums of products ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Calls/ContractionRoles.h"

#include "../Layout/Random.h"
#include "gmock/gmock.h"

using namespace dovetail::calls;
using namespace dovetail::layout;
using testing::ElementsAre;

namespace {

using Access = std::vector<AccessDim>;

IndexExpr loop(int number) { return IndexExpr::loop(number); }

std::vector<LoopRole> rolesOf(const Access &first, const Access &second, const std::vector<int64_t> &loops,
                              size_t resultRank) {
  ContractionRoles roles(first, second, loops, resultRank);
  std::vector<LoopRole> all;
  for (size_t number = 0; number < loops.size(); ++number)
    all.push_back(roles[number]);
  return all;
}

/// An index over some of `count` loops, as definitions have them.
IndexExpr makeIndex(Random &random, int count) {
  IndexExpr index(random.below(3));
  for (int number = 0; number < count; ++number)
    if (random.chance(40)) {
      IndexExpr term = loop(number);
      if (random.chance(40))
        term = term.floorDiv(random.between(1, 4));
      else if (random.chance(30))
        term = term.mod(random.between(1, 4));
      index = index + term * random.between(1, 3);
    }
  return index;
}

} // namespace

TEST(ContractionRoles, OfMatrices) {
  // [batch, row, column] of [batch, row, depth] and [depth, column], which serves all of the batch.
  EXPECT_THAT(rolesOf({loop(0), loop(1), loop(3)}, {loop(3), loop(2)}, {4, 5, 6, 7}, 3),
              ElementsAre(LoopRole::Row, LoopRole::Row, LoopRole::Column, LoopRole::Depth));
  EXPECT_THAT(rolesOf({loop(0), loop(1), loop(3)}, {loop(0), loop(3), loop(2)}, {4, 5, 6, 7}, 3),
              ElementsAre(LoopRole::Batch, LoopRole::Row, LoopRole::Column, LoopRole::Depth));
  // Along one iteration nothing differs.
  EXPECT_THAT(rolesOf({loop(0), loop(2)}, {loop(2), loop(1)}, {1, 6, 7}, 2),
              ElementsAre(LoopRole::Batch, LoopRole::Column, LoopRole::Depth));
}

TEST(ContractionRoles, OfConvolutions) {
  // [N, M, X] of [N, C, 2x + k] and [M, C, k].
  Access input = {loop(0), loop(3), loop(2) * 2 + loop(4)}, weights = {loop(1), loop(3), loop(4)};
  EXPECT_THAT(rolesOf(input, weights, {2, 8, 5, 3, 3}, 3),
              ElementsAre(LoopRole::Row, LoopRole::Column, LoopRole::Row, LoopRole::Depth, LoopRole::Depth));
  // In two groups of four channels of the result and three of the input.
  input[1] = loop(1).floorDiv(4) * 3 + loop(3);
  ContractionRoles roles(input, weights, std::vector<int64_t>{2, 8, 5, 3, 3}, 3);
  EXPECT_EQ(roles[1], LoopRole::Batch);
  EXPECT_EQ(roles.getGroupColumns(1), 4);
  EXPECT_EQ(roles.getGroupColumns(0), 1);
}

/// An operand is at one place in all of each block, whatever the other loops are at.
TEST(ContractionRoles, SharingIsExact) {
  forRandomCases(2000, [](Random &random) {
    std::vector<int64_t> loops = {random.between(1, 12), random.between(1, 4)};
    Access access;
    for (int dims = random.between(1, 2); dims > 0; --dims)
      access.push_back(makeIndex(random, 2));
    int64_t shared = countSharing(access, 0, loops[0]);
    ASSERT_GE(shared, 1);
    ASSERT_LE(shared, loops[0]);
    for (int64_t other = 0; other < loops[1]; ++other)
      for (int64_t at = 0; at < loops[0]; ++at)
        for (const AccessDim &dim : access) {
          auto indexAt = [&](int64_t number) {
            std::vector<int64_t> point = {number, other};
            return dim.index.evaluate(point);
          };
          ASSERT_EQ(indexAt(at), indexAt(at - at % shared)) << "in blocks of " << shared << " of " << loops[0];
        }
  });
}
