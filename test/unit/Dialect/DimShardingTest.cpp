//===- DimShardingTest.cpp - Tests of what is known of pieces -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares what DimShardingAttr finds once with what its methods say of each piece.
//
//===----------------------------------------------------------------------===//

#include "../Layout/Random.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/IR/MLIRContext.h"

#include <map>

using namespace mlir;
using namespace dovetail;
using layout::Interval;

/// Cuts, windows that may overlap or leave gaps, and pieces that end before they start or lie outside.
static SmallVector<Interval> getRandomPieces(layout::Random &random, int64_t extent) {
  SmallVector<Interval> pieces;
  std::vector<int64_t> cuts = random.cuts(extent, 1 + random.below(6));
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    pieces.push_back({cuts[i], cuts[i + 1]});
  if (random.chance(30))
    random.chance(50) ? std::reverse(pieces.begin(), pieces.end())
                      : static_cast<void>(std::swap(pieces.front(), pieces.back()));
  for (Interval &piece : pieces) {
    if (piece.empty() && random.chance(30))
      piece = {random.between(0, extent), 0}, piece.hi = piece.lo;
    if (random.chance(15))
      piece.lo += random.between(-2, 2);
    if (random.chance(15))
      piece.hi += random.between(-2, 2);
  }
  return pieces;
}

TEST(DimShardingTest, FactsFollowFromPieces) {
  MLIRContext context;
  context.loadDialect<DovetailDialect>();
  auto axis = StringAttr::get(&context, "x");
  int covered = 0, once = 0, inside = 0;
  layout::forRandomCases(20000, [&](layout::Random &random) {
    int64_t extent = random.between(0, 12);
    SmallVector<Interval> pieces = getRandomPieces(random, extent);
    auto dim = DimShardingAttr::getWindows({axis}, pieces);
    ASSERT_EQ(dim.getNumPieces(), pieces.size());
    bool isInside = true, isOrdered = true;
    int64_t largest = 0;
    std::map<int64_t, int> holders;
    for (auto [number, piece] : llvm::enumerate(pieces)) {
      EXPECT_EQ(dim.getPiece(number).lo, piece.lo);
      EXPECT_EQ(dim.getIntervals()[number].hi, piece.hi);
      isInside &= 0 <= piece.lo && piece.lo <= piece.hi && piece.hi <= extent;
      largest = std::max(largest, piece.size());
      for (int64_t i = piece.lo; i < piece.hi; ++i) {
        isOrdered &= holders.empty() || holders.rbegin()->first < i;
        ++holders[i];
      }
    }
    bool covers = true, coversOnce = isOrdered;
    for (int64_t i = 0; i < extent; ++i) {
      covers &= holders[i] > 0;
      coversOnce &= holders[i] == 1;
    }
    for (auto [position, count] : holders)
      coversOnce &= count == 0 || (0 <= position && position < extent);
    EXPECT_EQ(dim.isInside(extent), isInside);
    EXPECT_EQ(dim.getLargestSize(extent), largest);
    EXPECT_EQ(dim.coversOnce(extent), coversOnce);
    // What begins before the tensor is no sharding of it.
    if (isInside)
      EXPECT_EQ(dim.covers(extent), covers);
    inside += isInside;
    covered += isInside && covers;
    once += coversOnce;
  });
  EXPECT_TRUE(testing::Test::HasFailure() || (inside > 2000 && covered > 1000 && once > 500))
      << inside << " inside, " << covered << " covered, " << once << " once";
  auto unsplit = DimShardingAttr::getUnsplit(&context);
  EXPECT_TRUE(unsplit.covers(5) && unsplit.coversOnce(5));
  EXPECT_EQ(unsplit.getLargestSize(5), 5);
}
