//===- PoolTest.cpp - Pooling and reorders over cuts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/Reference.h"

#include "dovetail/Layout/Arith.h"

#include <algorithm>
#include <cstdlib>

using namespace dovetail;
using namespace dovetail::test;

namespace {

int64_t draw(std::mt19937_64 &random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

Order randomOrder(std::mt19937_64 &random, size_t rank) {
  Order order = {0, 1};
  for (size_t dim = 2; dim < rank; ++dim)
    order.push_back(dim);
  if (draw(random, 0, 1))
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  if (draw(random, 0, 3) == 0)
    std::shuffle(order.begin(), order.end(), random);
  return order;
}

/// Returns whether the library takes the case.
bool checkPool(uint64_t seed) {
  std::mt19937_64 random(seed);
  ConvolutionCase test;
  test.batch = draw(random, 1, 2);
  test.in = test.out = draw(random, 1, 20);
  int64_t spatial = draw(random, 1, 3);
  auto kind = static_cast<artifact::PoolKind>(draw(random, 0, 2));
  for (int64_t i = 0; i < spatial; ++i) {
    test.extents.push_back(draw(random, 1, spatial == 3 ? 6 : 14));
    test.kernel.push_back(draw(random, 1, 4));
    test.strides.push_back(draw(random, 1, 3));
    test.dilations.push_back(draw(random, 1, 2));
    int64_t reach = (test.kernel[i] - 1) * test.dilations[i] + 1;
    test.pads.push_back(draw(random, 0, (test.kernel[i] - 1) / 2));
    // Rounded up: the last window may reach beyond the input.
    test.results.push_back(
        std::max<int64_t>(1, layout::ceilDiv(test.extents[i] + test.pads[i] - reach, test.strides[i]) + 1));
    while (test.results[i] > 1 && (test.results[i] - 1) * test.strides[i] - test.pads[i] >= test.extents[i])
      --test.results[i];
    // Dilated windows must not miss the input altogether.
    if (test.extents[i] < test.dilations[i] + 1)
      test.dilations[i] = 1;
  }
  int dim = 2 + draw(random, 0, spatial - 1), ranks = draw(random, 1, 4), rank = test.spatial() + 2;
  auto cut = split(0, randomCuts(random, test.outputShape()[dim], ranks));
  if (draw(random, 0, 2) == 0)
    cut = withSlack(random, cut.pieces, test.outputShape()[dim]);
  std::vector<layout::Interval> needs;
  for (layout::Interval piece : cut.pieces) {
    int i = dim - 2;
    layout::Interval need = {piece.lo * test.strides[i] - test.pads[i],
                             (piece.hi - 1) * test.strides[i] - test.pads[i] +
                                 (test.kernel[i] - 1) * test.dilations[i] + 1};
    needs.push_back(piece.empty() ? layout::Interval{} : need.intersect({0, test.extents[i]}));
  }
  std::vector<float> input = randomFloats(random, volume(test.inputShape()));
  PlanBuilder builder({ranks});
  uint32_t in =
      builder.value(test.inputShape(), sharding(rank, {{dim, withSlack(random, needs, test.extents[dim - 2])}}),
                    randomOrder(random, rank));
  uint32_t out = builder.value(test.outputShape(), sharding(rank, {{dim, cut}}), randomOrder(random, rank));
  builder.input("in", in);
  builder.output("out", out);
  PoolStep call;
  call.kind = kind;
  call.input = in;
  call.output = out;
  call.kernel = test.kernel;
  call.strides = test.strides;
  call.dilations = test.dilations;
  call.pads = test.pads;
  builder.library(std::move(call));
  auto results = runFloats(builder.program(), {input}, divideCalls(random, builder));
  // The library refuses windows without elements, which these may have; it must say so.
  if (!results.ok() && results.status().code() == absl::StatusCode::kUnimplemented)
    return false;
  EXPECT_TRUE(results.ok()) << results.status() << test.str();
  if (results.ok())
    EXPECT_TRUE(near(pool(test, kind, input), (*results)[0])) << test.str() << " kind " << static_cast<int>(kind);
  return true;
}

} // namespace

TEST(Pool, RandomCases) {
  int cases = 600;
  if (const char *more = std::getenv("DOVETAIL_TEST_CASES"))
    cases = std::atoi(more);
  int taken = 0;
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    taken += checkPool(seed);
  }
  EXPECT_GT(taken, cases * 3 / 4);
}

TEST(Reorder, AllPermutationsOfAPart) {
  std::mt19937_64 random(5);
  Shape shape = {3, 17, 5, 4};
  for (auto type : {artifact::ElementType::F32, artifact::ElementType::I64, artifact::ElementType::I16,
                    artifact::ElementType::U8}) {
    int64_t size = runtime::elementSize(static_cast<runtime::ElementType>(type));
    std::vector<uint8_t> in(volume(shape) * size), out(in.size());
    for (uint8_t &byte : in)
      byte = random();
    Order order = {0, 1, 2, 3};
    do {
      PlanBuilder builder({2});
      auto cut = split(0, {0, 4, 17});
      auto held = windows(0, {{0, 6}, {3, 17}});
      uint32_t source = builder.value(shape, sharding(4, {{1, held}}), {2, 0, 3, 1}, "source", type);
      uint32_t target = builder.value(shape, sharding(4, {{1, cut}}), order, "target", type);
      builder.input("in", source);
      artifact::ReorderT call;
      call.source = source;
      call.target = target;
      builder.library(std::move(call));
      builder.output("out", target);
      auto runner = runtime::ProgramRunner::create(builder.program());
      ASSERT_TRUE(runner.ok()) << runner.status();
      runtime::FullTensor from{in.data(), static_cast<runtime::ElementType>(type), shape, {}},
          to{out.data(), static_cast<runtime::ElementType>(type), shape, {}};
      std::fill(out.begin(), out.end(), 0);
      ASSERT_TRUE((*runner)->run({from}, {to}).ok());
      EXPECT_EQ(in, out);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}
