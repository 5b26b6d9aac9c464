//===- ExchangeTest.cpp - Exchanges between ranks -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/DevicePlan.h"

#include "dovetail/Layout/Exchange.h"
#include "dovetail/runtime/Schedule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace dovetail;
using namespace dovetail::test;
using layout::ReductionKind;

namespace {

int64_t draw(std::mt19937_64 &random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

/// A sharding of `shape` over some axes of the mesh, with cuts or overlapping windows that cover each dimension.
layout::Sharding randomSharding(std::mt19937_64 &random, const Shape &shape, const std::vector<int64_t> &mesh) {
  layout::Sharding result = sharding(shape.size());
  for (int axis = 0; axis < static_cast<int>(mesh.size()); ++axis) {
    int64_t dim = draw(random, 0, shape.size());
    if (dim == static_cast<int64_t>(shape.size()) || result.dims[dim].isSplit())
      continue;
    layout::DimSharding cut = split(axis, randomCuts(random, shape[dim], mesh[axis]));
    if (draw(random, 0, 1))
      for (layout::Interval &piece : cut.pieces)
        if (!piece.empty())
          piece = {std::max<int64_t>(0, piece.lo - draw(random, 0, 3)),
                   std::min<int64_t>(shape[dim], piece.hi + draw(random, 0, 3))};
    result.dims[dim] = cut;
  }
  return result;
}

Order randomOrder(std::mt19937_64 &random, size_t rank) {
  Order order(rank);
  for (size_t i = 0; i < rank; ++i)
    order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

} // namespace

TEST(Exchange, AnyShardingToAnyOther) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<int64_t> mesh = {draw(random, 1, 3), draw(random, 1, 3)};
    Shape shape;
    for (int64_t i = draw(random, 1, 3); i > 0; --i)
      shape.push_back(draw(random, 1, 11));
    PlanBuilder builder(mesh);
    uint32_t input = builder.value(shape, randomSharding(random, shape, mesh), randomOrder(random, shape.size()));
    builder.input("in", input);
    // A chain of exchanges; the output is collected from the boxes of the last.
    uint32_t last = input;
    for (int i = 0; i < 3; ++i) {
      layout::Sharding cut = randomSharding(random, shape, mesh);
      uint32_t next = builder.value(shape, cut, randomOrder(random, shape.size()));
      builder.exchange(last, next);
      last = next;
    }
    builder.output("out", last);
    std::vector<float> in = randomFloats(random, volume(shape));
    for (std::string target : {"cpu", deviceTarget()}) {
      SCOPED_TRACE(target);
      builder.plan.target = target;
      auto program = builder.program();
      ASSERT_TRUE(program);
      EXPECT_TRUE(runtime::checkSchedule(program->getPlan()).ok());
      auto results = runFloats(program, {in});
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_EQ((*results)[0], in);
    }
  }
}

TEST(Exchange, WideHalosInPlaceOverSeveralNeighbours) {
  // Each rank needs 9 rows at both sides, more than its neighbours have. Strips land around what is there.
  std::vector<int64_t> cuts = {0, 3, 4, 4, 11, 20};
  std::vector<layout::Interval> extended;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    extended.push_back({std::max<int64_t>(0, cuts[i] - 9), std::min<int64_t>(20, cuts[i + 1] + 9)});
  Shape shape = {20, 3};
  layout::Sharding cut = sharding(2, {{0, split(0, cuts)}}), held = sharding(2, {{0, windows(0, extended)}});
  std::mt19937_64 random(1);
  std::vector<float> in = randomFloats(random, 60);
  PlanBuilder builder({5});
  uint32_t buffer = builder.buffer(shape, held, {1, 0});
  uint32_t owned = builder.tensor(buffer, cut), full = builder.tensor(buffer, held);
  builder.input("in", owned);
  builder.exchange(owned, full);
  // Rank 1 then collects everything, and takes what it holds already from the strips that it got.
  uint32_t again = builder.value(shape, sharding(2, {{0, split(0, {0, 0, 20, 20, 20, 20})}}));
  builder.exchange(full, again);
  builder.output("out", again);
  auto program = builder.program();
  runtime::MoveScheduler scheduler(program->getPlan(),
                                   std::get<runtime::ExchangeCall>(program->getPlan().steps[0].action).moves[0]);
  for (int rank = 0; rank < 5; ++rank) {
    int64_t needed = extended[rank].size(), own = cuts[rank + 1] - cuts[rank];
    EXPECT_EQ(scheduler.receivedBytes(rank), (needed - own) * 3 * 4);
  }
  auto results = runFloats(program, {in});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0], in);
}

namespace {

/// What each rank contributes: multiples of a power of two, so that results are exact.
float contribution(int rank, int64_t element) { return static_cast<float>((rank * 37 + element * 11) % 64 - 20) / 4; }
/// Of elements with an owner, all others contribute zero, which is larger than some.
float contribution(ReductionKind kind, int rank, int64_t element) {
  bool isOwner = element * 7 % 3 == rank;
  return kind != ReductionKind::Owner || isOwner ? contribution(rank, element) : 0;
}

/// What `ranks` ranks contribute to each of `count` elements, a row for each rank.
std::vector<float> contributionsOf(ReductionKind kind, int ranks, int64_t count) {
  std::vector<float> rows;
  for (int rank = 0; rank < ranks; ++rank)
    for (int64_t i = 0; i < count; ++i)
      rows.push_back(contribution(kind, rank, i));
  return rows;
}

/// The rows combined, in their order.
std::vector<float> combined(ReductionKind kind, int ranks, const std::vector<float> &rows) {
  int64_t count = static_cast<int64_t>(rows.size()) / ranks;
  std::vector<float> result(rows.begin(), rows.begin() + count);
  for (int rank = 1; rank < ranks; ++rank)
    for (int64_t i = 0; i < count; ++i) {
      float &all = result[i], value = rows[rank * count + i];
      all = kind == ReductionKind::Owner  ? value != 0 ? value : all
            : kind == ReductionKind::Sum  ? all + value
            : kind == ReductionKind::Prod ? all * value
            : kind == ReductionKind::Max  ? std::max(all, value)
                                          : std::min(all, value);
    }
  return result;
}

/// Gives each rank of the mesh's axis 0 a row of `source`, as what it contributes to a vector. Returns the vector.
uint32_t addPartial(PlanBuilder &builder, ReductionKind kind, int ranks, int64_t count, bool onDevice,
                    std::string input) {
  std::vector<int64_t> cuts(ranks + 1);
  std::iota(cuts.begin(), cuts.end(), 0);
  auto rows = split(0, cuts);
  uint32_t source = builder.value({ranks, count}, sharding(2, {{0, rows}}));
  uint32_t partial = builder.value({count}, sharding(1, {}, {0}, kind));
  builder.input(std::move(input), source);
  // "Adds up" the one row that the rank has.
  builder.kernel(onDevice ? "sumRowsBlocks" : "sumRows", {source}, {partial}, {{count, {}}, {ranks, rows}});
  if (onDevice)
    setBlocks(builder, 64, {0}, 64);
  return partial;
}

/// Combines one vector of `count` elements from each of 3 ranks, in one phase or two, and gives each rank the box of
/// `to`.
void checkReduction(ReductionKind kind, int64_t count, const layout::Sharding &to, bool inTwo, bool onDevice) {
  int ranks = 3;
  std::vector<float> in = contributionsOf(kind, ranks, count);
  PlanBuilder builder = onDevice ? deviceBuilder({ranks}) : hostBuilder({ranks});
  uint32_t partial = addPartial(builder, kind, ranks, count, onDevice, "in");
  uint32_t total = builder.value({count}, to);
  if (inTwo)
    builder.exchangeInTwo(partial, total);
  else
    builder.exchange(partial, total);
  builder.output("out", total);
  auto program = builder.program();
  ASSERT_TRUE(program);
  ASSERT_TRUE(runtime::checkSchedule(program->getPlan()).ok());
  auto results = runFloats(program, {in});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0], combined(kind, ranks, in));
}

} // namespace

TEST(Exchange, ReducesEveryKind) {
  for (ReductionKind kind :
       {ReductionKind::Sum, ReductionKind::Prod, ReductionKind::Max, ReductionKind::Min, ReductionKind::Owner})
    for (int64_t count : {1, 7, 100, 99'999, 100'000}) // The large ones in two phases: equal thirds, and others.
      for (bool onDevice : {false, true}) {
        if (onDevice && !hasKernels())
          continue;
        checkReduction(kind, count, sharding(1), /*inTwo=*/count > 100, onDevice);
        checkReduction(kind, count, sharding(1, {{0, split(0, {0, count / 3, count / 3, count})}}), /*inTwo=*/false,
                       onDevice);
      }
}

TEST(Exchange, SeveralMovesAtOnce) {
  const ReductionKind kinds[] = {ReductionKind::Sum, ReductionKind::Prod, ReductionKind::Max, ReductionKind::Min,
                                 ReductionKind::Owner};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (bool onDevice : {false, true}) {
      std::mt19937_64 random(seed);
      int64_t ranks = draw(random, 1, 5);
      PlanBuilder builder = onDevice ? deviceBuilder({ranks}) : hostBuilder({ranks});
      std::vector<std::vector<float>> inputs, expected;
      std::vector<std::pair<uint32_t, uint32_t>> moves;
      for (int64_t i = draw(random, 2, 4); i > 0; --i) {
        std::string name = std::to_string(i);
        bool reduces = draw(random, 0, 1);
        if (reduces && (!onDevice || hasKernels())) {
          // Sums of fractions, of which the order shows.
          ReductionKind kind = kinds[draw(random, 0, 4)];
          int64_t count = draw(random, 1, 300);
          std::vector<float> rows =
              kind == ReductionKind::Owner ? contributionsOf(kind, ranks, count) : randomFloats(random, ranks * count);
          uint32_t source = addPartial(builder, kind, ranks, count, onDevice, "in" + name);
          moves.emplace_back(source, builder.value({count}, randomSharding(random, {count}, {ranks})));
          expected.push_back(combined(kind, ranks, rows));
          inputs.push_back(std::move(rows));
        } else {
          Shape shape;
          for (int64_t dims = draw(random, 1, 3); dims > 0; --dims)
            shape.push_back(draw(random, 1, 11));
          uint32_t source =
              builder.value(shape, randomSharding(random, shape, {ranks}), randomOrder(random, shape.size()));
          builder.input("in" + name, source);
          moves.emplace_back(
              source, builder.value(shape, randomSharding(random, shape, {ranks}), randomOrder(random, shape.size())));
          inputs.push_back(randomFloats(random, volume(shape)));
          expected.push_back(inputs.back());
        }
      }
      builder.exchange(moves[0].first, moves[0].second);
      for (size_t i = 1; i < moves.size(); ++i)
        builder.addMove(moves[i].first, moves[i].second);
      for (size_t i = 0; i < moves.size(); ++i)
        builder.output("out" + std::to_string(i), moves[i].second);
      auto program = builder.program();
      ASSERT_TRUE(program);
      EXPECT_TRUE(runtime::checkSchedule(program->getPlan()).ok());
      auto results = runFloats(program, inputs);
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_EQ(*results, expected);
    }
  }
}

TEST(Exchange, PackedPartsOfSeveralTensors) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<int64_t> mesh = {draw(random, 1, 3), draw(random, 2, 3)};
    // Over both axes, or the last one alone.
    bool isAll = draw(random, 0, 1);
    PlanBuilder builder(mesh);
    std::vector<std::vector<float>> inputs;
    std::vector<std::pair<uint32_t, uint32_t>> moves;
    std::vector<Shape> shapes;
    std::vector<layout::Sharding> turned;
    for (int64_t i = draw(random, 1, 3); i > 0; --i) {
      Shape shape = {draw(random, 1, 9), draw(random, 1, 9), draw(random, 1, 4)};
      Order dims = randomOrder(random, 3);
      layout::Sharding from = sharding(3), to = from;
      for (int axis : {0, 1}) {
        int64_t dim = dims[axis];
        from.dims[dim] = split(axis, randomCuts(random, shape[dim], mesh[axis]));
        if (axis == 0 && !isAll)
          to.dims[dim] = from.dims[dim];
      }
      // One of them in place: others find their parts around what is there.
      bool isInPlace = i == 1;
      Order order = randomOrder(random, 3);
      uint32_t target = isInPlace ? builder.buffer(shape, to, order) : 0;
      uint32_t source = isInPlace ? builder.tensor(target, from) : builder.value(shape, from, order);
      builder.input("in" + std::to_string(i), source);
      moves.emplace_back(source,
                         isInPlace ? builder.tensor(target, to) : builder.value(shape, to, randomOrder(random, 3)));
      inputs.push_back(randomFloats(random, volume(shape)));
      for (int axis : {0, 1})
        if (axis == 1 || isAll)
          std::reverse(from.dims[dims[axis]].pieces.begin(), from.dims[dims[axis]].pieces.end());
      shapes.push_back(shape);
      turned.push_back(from);
    }
    builder.exchange(moves[0].first, moves[0].second);
    for (size_t i = 1; i < moves.size(); ++i)
      builder.addMove(moves[i].first, moves[i].second);
    builder.packMoves();
    // The output is what ranks got from others.
    for (size_t i = 0; i < moves.size(); ++i) {
      uint32_t out = builder.value(shapes[i], turned[i]);
      builder.exchange(moves[i].second, out);
      builder.output("out" + std::to_string(i), out);
    }
    for (std::string target : {"cpu", deviceTarget()}) {
      SCOPED_TRACE(target);
      builder.plan.target = target;
      auto program = builder.program();
      ASSERT_TRUE(program);
      auto results = runFloats(program, inputs);
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_EQ(*results, inputs);
    }
  }
}

TEST(Exchange, SeveralHalosInPlace) {
  // The strips of two values, and what ranks have of a third, which all collect.
  for (std::string target : {"cpu", deviceTarget()}) {
    PlanBuilder builder({3});
    builder.plan.target = target;
    layout::Sharding own = sharding(2, {{0, split(0, {0, 4, 5, 12})}}),
                     wide = sharding(2, {{0, windows(0, {{0, 6}, {2, 7}, {3, 12}})}});
    std::mt19937_64 random(7);
    std::vector<std::vector<float>> inputs;
    std::vector<std::pair<uint32_t, uint32_t>> moves;
    for (int i = 0; i < 3; ++i) {
      Shape shape = {12, i + 2};
      uint32_t buffer = builder.buffer(shape, i == 2 ? own : wide);
      moves.emplace_back(builder.tensor(buffer, own),
                         i == 2 ? builder.value(shape, sharding(2)) : builder.tensor(buffer, wide));
      builder.input("in" + std::to_string(i), moves.back().first);
      inputs.push_back(randomFloats(random, volume(shape)));
    }
    builder.exchange(moves[0].first, moves[0].second);
    builder.addMove(moves[1].first, moves[1].second);
    builder.addMove(moves[2].first, moves[2].second);
    for (int i = 0; i < 3; ++i) {
      Shape shape = {12, i + 2};
      // Rank 0 gets all of what ranks 0 and 2 have, with their strips.
      uint32_t all = builder.value(shape, sharding(2, {{0, windows(0, {{0, 12}, {0, 0}, {0, 0}})}}));
      builder.exchange(moves[i].second, all);
      builder.output("out" + std::to_string(i), all);
    }
    auto program = builder.program();
    ASSERT_TRUE(program);
    auto results = runFloats(program, inputs);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(*results, inputs);
  }
}

TEST(Exchange, LargeAllReduceMovesEachPartOnce) {
  PlanBuilder builder = hostBuilder({4});
  Shape shape = {1000, 100};
  uint32_t partial = builder.value(shape, sharding(2, {}, {0}, ReductionKind::Sum));
  uint32_t total = builder.value(shape, sharding(2));
  builder.input("in", builder.value(shape, sharding(2)));
  builder.kernel("increment", {}, {partial}, {});
  builder.exchangeInTwo(partial, total);
  builder.output("out", total);
  auto program = builder.program();
  ASSERT_TRUE(program);
  using layout::ExchangeClass, layout::ExchangeKind;
  std::vector<runtime::ExchangeCall> calls;
  for (const runtime::StepInfo &step : program->getPlan().steps)
    if (const auto *call = std::get_if<runtime::ExchangeCall>(&step.action))
      calls.push_back(*call);
  ASSERT_EQ(calls.size(), 2u);
  for (auto [number, exchangeClass, kind] : {std::tuple(0, ExchangeClass::ReduceScatter, ExchangeKind::ReduceScatter),
                                             std::tuple(1, ExchangeClass::AllGather, ExchangeKind::AllGather)}) {
    const runtime::ExchangeCall &call = calls[number];
    runtime::MoveScheduler scheduler(program->getPlan(), call.moves[0]);
    EXPECT_EQ(call.kind, kind);
    EXPECT_EQ(scheduler.getClass(), exchangeClass);
    // A quarter from each of three ranks, then the three quarters of the others.
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_EQ(scheduler.receivedBytes(rank), 3 * 1000 * 100);
  }
}

//===----------------------------------------------------------------------===//
// Devices that do not reach each other's memory
//===----------------------------------------------------------------------===//

namespace {
/// Two devices of the imitated driver, without peer access; a test of its own (see test/unit/Cuda/CMakeLists.txt).
class NoPeers : public testing::Test {
protected:
  void SetUp() override {
    if (!std::getenv("FAKE_NO_PEERS"))
      GTEST_SKIP() << "for the imitated driver";
  }

  /// The output of a program that passes a matrix of 8 x 4 from one sharding over two ranks to another.
  absl::StatusOr<std::vector<std::vector<float>>> pass(const layout::Sharding &from, const layout::Sharding &to) {
    PlanBuilder builder = deviceBuilder({2});
    uint32_t in = builder.value({8, 4}, from), out = builder.value({8, 4}, to);
    builder.input("in", in);
    builder.exchange(in, out);
    builder.output("out", out);
    return runFloats(builder.program(), {matrix});
  }

  std::mt19937_64 random{1};
  std::vector<float> matrix = randomFloats(random, 32);
};
} // namespace

TEST_F(NoPeers, ContiguousPiecesAreCopied) {
  auto results = pass(sharding(2, {{0, split(0, {0, 3, 8})}}), sharding(2));
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0], matrix);
}

TEST_F(NoPeers, OtherBoxesAreRefusedAtStart) {
  auto results = pass(sharding(2, {{1, split(0, {0, 1, 4})}}), sharding(2));
  EXPECT_EQ(results.status().code(), absl::StatusCode::kUnimplemented) << results.status();
  // Either one may come first.
  EXPECT_THAT(std::string(results.status().message()),
              testing::AnyOf(testing::MatchesRegex("rank 0, exchange '.*': GPU 0 cannot read the memory of GPU 1 "
                                                   "directly; run the ranks as processes, with --comm nccl"),
                             testing::MatchesRegex("rank 1, exchange '.*': GPU 1 cannot read the memory of GPU 0 "
                                                   "directly; run the ranks as processes, with --comm nccl")));
}
