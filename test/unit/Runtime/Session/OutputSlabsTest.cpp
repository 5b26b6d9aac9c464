//===- OutputSlabsTest.cpp - Tests of slabs of outputs --------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Runner/OutputSlabs.h"

#include "Random.h"
#include "dovetail/Layout/Cuts.h"

#include "gtest/gtest.h"

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::DimSharding;
using layout::Random;
using layout::Transfer;

namespace {

/// A program with one output.
struct Case {
  Plan plan;
  PortInfo output;

  bool holds(int rank, const Box &box) const {
    return plan.tensors[0].sharding.boxOf(plan.mesh, output.shape, rank).contains(box);
  }
};

/// Up to 24 ranks on two axes, which divide dimensions at random, or have the same.
Case randomCase(Random &random) {
  Case result;
  int rows = static_cast<int>(random.between(1, 6)), columns = static_cast<int>(random.between(1, 4));
  result.plan.mesh = layout::Mesh({{"y", rows}, {"x", columns}});
  result.output = {"y", 0, random.chance(50) ? ElementType::F32 : ElementType::U8, {}};
  int rank = static_cast<int>(random.between(1, 4));
  int large = random.below(rank);
  for (int dim = 0; dim < rank; ++dim)
    result.output.shape.push_back(random.chance(20) ? 1 : random.between(1, dim == large ? 300000 : 12));
  layout::Sharding sharding = layout::Sharding::replicated(rank);
  for (int axis = 0; axis < 2; ++axis) {
    int dim = random.below(rank + 1);
    if (dim < rank && sharding.dims[dim].axes.empty())
      sharding.dims[dim] =
          DimSharding::fromCuts({axis}, random.cuts(result.output.shape[dim], axis == 0 ? rows : columns));
  }
  result.plan.tensors.push_back({"y", 0, sharding});
  return result;
}

/// Where elements of `box` begin and end in a row-major array; both are known only if they lie together.
std::pair<int64_t, int64_t> rangeOf(const Box &box, const std::vector<int64_t> &shape) {
  int64_t first = 0, last = 0;
  for (int dim = 0; dim < box.rank(); ++dim) {
    first = first * shape[dim] + box[dim].lo;
    last = last * shape[dim] + box[dim].hi - 1;
  }
  return {first, last + 1};
}

} // namespace

TEST(OutputSlabs, AreTheOutputInOrder) {
  layout::forRandomCases(300, [](Random &random) {
    Case made = randomCase(random);
    int ranks = made.plan.mesh.numRanks();
    OutputPieces pieces(made.plan, made.output);
    OutputSlabs slabs(made.output, pieces, ranks);
    int64_t all = Box::ofShape(made.output.shape).volume(), size = elementSize(made.output.type), next = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (int64_t round = 0; round < slabs.rounds(); ++round) {
        Box slab = slabs.slab(rank, round);
        if (slab.empty())
          continue;
        auto [first, end] = rangeOf(slab, made.output.shape);
        ASSERT_EQ(first, next);
        ASSERT_EQ(end - first, slab.volume());
        ASSERT_LE(slab.volume() * size, slabs.slabBytes());
        ASSERT_LE(slab.volume() * size, 4 << 20);
        if (all * size >= 1 << 20)
          ASSERT_GE(slab.volume() * size, 1 << 20);
        next = end;
      }
    ASSERT_EQ(next, all);
  });
}

TEST(OutputSlabs, GetEachElementOnce) {
  layout::forRandomCases(300, [](Random &random) {
    Case made = randomCase(random);
    int ranks = made.plan.mesh.numRanks();
    OutputPieces pieces(made.plan, made.output);
    OutputSlabs slabs(made.output, pieces, ranks);
    for (int64_t round = 0; round < std::min<int64_t>(slabs.rounds(), 5); ++round)
      for (int rank = 0; rank < ranks; ++rank) {
        Box slab = slabs.slab(rank, round);
        std::vector<Box> got = slabs.local(rank, round);
        for (const Box &box : got)
          ASSERT_TRUE(made.holds(rank, box));
        std::vector<Transfer> receives = slabs.receives(rank, round);
        for (int source = 0; source < ranks; ++source) {
          // Both sides have the same boxes in the same order.
          std::vector<Transfer> sent, received;
          for (const Transfer &transfer : slabs.sends(source, round))
            if (transfer.dest == rank)
              sent.push_back(transfer);
          for (const Transfer &transfer : receives)
            if (transfer.source == source)
              received.push_back(transfer);
          ASSERT_EQ(sent, received);
          for (const Transfer &transfer : received)
            ASSERT_TRUE(made.holds(source, transfer.box));
        }
        for (const Transfer &transfer : receives)
          got.push_back(transfer.box);
        int64_t volume = 0;
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_TRUE(slab.contains(got[i]));
          volume += got[i].volume();
          for (size_t j = 0; j < i; ++j)
            ASSERT_TRUE(got[i].intersect(got[j]).empty());
        }
        ASSERT_EQ(volume, slab.volume());
      }
  });
}

TEST(OutputSlabs, AreBetterWherePiecesAreShort) {
  auto areBetter = [](std::vector<int64_t> shape, int dim) {
    Plan plan;
    plan.mesh = layout::Mesh({{"y", 4}});
    PortInfo output{"y", 0, ElementType::F32, shape};
    layout::Sharding sharding = layout::Sharding::replicated(shape.size());
    if (dim >= 0)
      sharding.dims[dim] = DimSharding::fromCuts(
          {0}, std::vector<int64_t>{0, shape[dim] / 4, shape[dim] / 2, shape[dim] / 4 * 3, shape[dim]});
    plan.tensors.push_back({"y", 0, sharding});
    OutputPieces pieces(plan, output);
    return OutputSlabs(output, pieces, 4).areBetter(1 << 20);
  };
  EXPECT_TRUE(areBetter({4096, 4096}, 1));
  EXPECT_FALSE(areBetter({4096, 4096}, 0));
  EXPECT_TRUE(areBetter({64, 64, 64}, 1));
  EXPECT_FALSE(areBetter({8, 1024, 4096}, 1)); // Pieces of 4 MiB.
  EXPECT_FALSE(areBetter({8, 16}, 0));         // A piece each, however short.
  EXPECT_FALSE(areBetter({64, 64}, -1));       // One rank has all.
  EXPECT_FALSE(areBetter({}, -1));
  EXPECT_FALSE(areBetter({0, 8}, -1));
}
