//===- SessionTest.cpp - Kernels, exchanges and memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/PlanBuilder.h"

using namespace dovetail;
using namespace dovetail::test;
using artifact::BufferKind;

namespace {

/// What the kernel `stencil` computes.
std::vector<float> stencil(const std::vector<float> &in, int64_t columns) {
  std::vector<float> out(in.size());
  for (int64_t i = 0; i < 40; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float above = i > 0 ? in[(i - 1) * columns + j] : 0, below = i < 39 ? in[(i + 1) * columns + j] : 0;
      out[i * columns + j] = above + 2 * in[i * columns + j] + 3 * below;
    }
  return out;
}

/// Rows as cut, with `halo` more at each side.
layout::DimSharding extended(std::vector<int64_t> cuts, int64_t halo) {
  std::vector<layout::Interval> pieces;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    pieces.push_back(cuts[i] == cuts[i + 1] ? layout::Interval{}
                                            : layout::Interval{std::max<int64_t>(0, cuts[i] - halo),
                                                               std::min<int64_t>(cuts.back(), cuts[i + 1] + halo)});
  return windows(0, pieces);
}

/// A stencil applied `times` times; every value lies in a buffer extended for the next one, and an exchange moves the
/// strips.
std::vector<float> runStencils(std::vector<int64_t> cuts, int64_t columns, int times, const std::vector<float> &in,
                               runtime::RunnerOptions options, Order order = {0, 1}) {
  PlanBuilder builder({static_cast<int64_t>(cuts.size()) - 1});
  layout::Sharding cut = sharding(2, {{0, split(0, cuts)}}), held = sharding(2, {{0, extended(cuts, 1)}});
  Shape shape = {40, columns};
  uint32_t buffer = builder.buffer(shape, held, order);
  builder.input("in", builder.tensor(buffer, cut, "in"));
  for (int i = 0; i < times; ++i) {
    uint32_t owned = builder.tensor(buffer, cut, "owned"), extendedValue = builder.tensor(buffer, held, "extended");
    builder.exchange(owned, extendedValue);
    buffer = builder.buffer(shape, held, order);
    builder.kernel("stencil", {extendedValue}, {builder.tensor(buffer, cut, "result")},
                   {{40, split(0, cuts)}, {columns, {}}}, 0);
  }
  builder.output("out", builder.tensor(buffer, cut, "out"));
  auto results = runFloats(builder.program(), {in}, options);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? (*results)[0] : std::vector<float>();
}

} // namespace

TEST(Session, KernelsGetNoCounts) {
  for (int threads : {1, 3}) {
    PlanBuilder builder({2});
    layout::DimSharding rows = split(0, {0, 20000, 50000});
    uint32_t in = builder.value({50000}, sharding(1, {{0, rows}})),
             out = builder.value({50000}, sharding(1, {{0, rows}}));
    builder.input("in", in);
    builder.kernel("incrementWithoutCounts", {in}, {out}, {{50000, rows}}, 0);
    builder.output("out", out);
    runtime::RunnerOptions options;
    options.threads = threads;
    auto results = runFloats(builder.program(), {std::vector<float>(50000, 2)}, options);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[0], std::vector<float>(50000, 3));
  }
}

TEST(Session, StencilOnUnevenCuts) {
  std::mt19937_64 random(1);
  for (int64_t columns : {1, 7, 3000}) {
    std::vector<float> in = randomFloats(random, 40 * columns), expected = in;
    for (int i = 0; i < 5; ++i)
      expected = stencil(expected, columns);
    for (std::vector<int64_t> cuts : std::vector<std::vector<int64_t>>{
             {0, 40}, {0, 13, 40}, {0, 1, 2, 40}, {0, 20, 20, 40}, {0, 0, 40, 40}, {0, 10, 20, 30, 40}})
      for (int threads : {1, 6}) {
        runtime::RunnerOptions options;
        options.threads = threads;
        EXPECT_EQ(runStencils(cuts, columns, 5, in, options), expected) << cuts.size() << " " << columns;
        EXPECT_EQ(runStencils(cuts, columns, 5, in, options, {1, 0}), expected) << cuts.size() << " " << columns;
      }
  }
}

TEST(Session, ConstantsInTheMapAndCopied) {
  std::mt19937_64 random(2);
  Shape shape = {11, 9};
  std::vector<float> in = randomFloats(random, 99), scale = randomFloats(random, 9), expected(99);
  for (int i = 0; i < 11; ++i)
    for (int j = 0; j < 9; ++j)
      expected[i * 9 + j] = in[i * 9 + j] * scale[j] + static_cast<float>(1000 * i + j);
  // Columns are split: each rank holds a part of the constants; and the first operand is a constant in another format.
  for (Order order : {Order{0, 1}, Order{1, 0}}) {
    PlanBuilder builder({3});
    auto dim = split(0, {0, 2, 3, 9});
    layout::Sharding cut = sharding(2, {{1, dim}});
    uint32_t matrix = builder.constantValue(shape, cut, in, order);
    uint32_t vector = builder.constantValue({9}, sharding(1, {{0, dim}}), scale);
    uint32_t result = builder.value(shape, cut, order);
    builder.kernel("scaleAndPlace", {matrix, vector}, {result}, {{11, {}}, {9, dim}});
    builder.output("out", result);
    auto results = runFloats(builder.program(), {});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[0], expected);
  }
}

TEST(Session, PrologueRunsOnce) {
  PlanBuilder builder({2});
  auto dim = split(0, {0, 1, 4});
  layout::Sharding cut = sharding(1, {{0, dim}}), whole = sharding(1);
  uint32_t one = builder.constantValue({4}, cut, {1, 2, 3, 4});
  uint32_t temporary = builder.value({4}, cut);
  uint32_t kept = builder.tensor(builder.buffer({4}, whole, {}, BufferKind::Persistent), whole, "kept");
  uint32_t out = builder.value({4}, whole);
  builder.kernel("increment", {one}, {temporary}, {{4, dim}}, -1, /*inPrologue=*/true);
  builder.exchange(temporary, kept, /*inPrologue=*/true);
  builder.kernel("increment", {kept}, {out}, {{4, {}}});
  builder.output("out", out);
  auto results = runFloats(builder.program(), {});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0], (std::vector<float>{3, 4, 5, 6}));
}

TEST(Session, ArenaIsSharedByLiveness) {
  PlanBuilder builder({1});
  layout::Sharding whole = sharding(1);
  uint32_t value = builder.value({1000}, whole);
  builder.input("in", value);
  for (int i = 0; i < 10; ++i) {
    uint32_t next = builder.value({1000}, whole);
    builder.kernel("increment", {value}, {next}, {{1000, {}}});
    value = next;
  }
  builder.output("out", value);
  auto program = builder.program();
  auto runner = runtime::ProgramRunner::create(program);
  ASSERT_TRUE(runner.ok()) << runner.status();
  // Two values of 4000 bytes live at any time.
  EXPECT_EQ((*runner)->statistics(0).arenaBytes, 2 * 4032);
  auto results = runFloats(program, {std::vector<float>(1000, 5)});
  ASSERT_TRUE(results.ok());
  EXPECT_EQ((*results)[0], std::vector<float>(1000, 15));
}

TEST(Session, SplitReductionIsCombined) {
  PlanBuilder builder({3});
  std::mt19937_64 random(3);
  std::vector<float> in(30 * 5);
  for (float &value : in)
    value = static_cast<float>(static_cast<int>(random() % 100));
  auto rows = split(0, {0, 7, 7, 30});
  uint32_t matrix = builder.value({30, 5}, sharding(2, {{0, rows}}));
  uint32_t partial = builder.value({5}, sharding(1, {}, {0}, layout::ReductionKind::Sum));
  uint32_t total = builder.value({5}, sharding(1));
  builder.input("in", matrix);
  builder.kernel("sumRows", {matrix}, {partial}, {{5, {}}, {30, rows}});
  builder.exchange(partial, total);
  builder.output("out", total);
  auto results = runFloats(builder.program(), {in});
  ASSERT_TRUE(results.ok()) << results.status();
  for (int j = 0; j < 5; ++j) {
    float sum = 0;
    for (int i = 0; i < 30; ++i)
      sum += in[i * 5 + j];
    EXPECT_EQ((*results)[0][j], sum);
  }
}
