//===- ExchangePlanTest.cpp - Exchanges in artifacts ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests that exchanges which do not fit the memory of their tensors are rejected.
//
//===----------------------------------------------------------------------===//

#include "../Harness/DevicePlan.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/Schedule.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace dovetail;
using namespace dovetail::test;
using runtime::Program;
using testing::HasSubstr;

namespace {

/// Each kind of exchange once: a reduction in two phases, one in one, and a halo.
PlanBuilder exchanger() {
  PlanBuilder builder = hostBuilder({2, 2});
  Shape shape = {8, 6};
  auto sum = sharding(2, {}, {1}, layout::ReductionKind::Sum), all = sharding(2);
  uint32_t parts = builder.value(shape, sum), total = builder.value(shape, all), again = builder.value(shape, all);
  builder.kernel("increment", {}, {parts}, {});
  builder.exchangeInTwo(parts, total);
  builder.exchange(parts, again);
  uint32_t halo = builder.buffer(shape, sharding(2, {{0, windows(0, {{0, 5}, {3, 8}})}}));
  uint32_t own = builder.tensor(halo, sharding(2, {{0, split(0, {0, 4, 8})}})),
           wide = builder.tensor(halo, sharding(2, {{0, windows(0, {{0, 5}, {3, 8}})}}));
  builder.exchange(again, own);
  builder.exchange(own, wide);
  builder.output("total", total);
  builder.output("wide", own);
  return builder;
}

artifact::ExchangeStepT &exchangeOf(PlanBuilder &builder, int step) {
  return *builder.plan.steps[step]->action.AsExchangeStep();
}

} // namespace

TEST(Artifact, ExchangesThatDoNotFitAreRefused) {
  using artifact::ExchangeKind;
  auto good = exchanger().program();
  ASSERT_TRUE(good);
  std::vector<layout::ExchangeKind> kinds;
  for (const runtime::StepInfo &step : good->getPlan().steps)
    if (const auto *call = std::get_if<runtime::ExchangeCall>(&step.action))
      kinds.push_back(call->kind);
  using layout::ExchangeKind::AllGather, layout::ExchangeKind::AllReduce, layout::ExchangeKind::Messages,
      layout::ExchangeKind::ReduceScatter;
  EXPECT_EQ(kinds, (std::vector{ReduceScatter, AllGather, AllReduce, Messages, Messages}));

  auto expect = [](const char *words, auto change) {
    PlanBuilder builder = exchanger();
    builder.placesWaits = false;
    change(builder);
    absl::Status status = Program::load(builder.artifact()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  auto become = [&](const char *words, int step, ExchangeKind kind) {
    expect(words, [&](PlanBuilder &b) { exchangeOf(b, step).kind = kind; });
  };
  become("unknown kind 5", 1, static_cast<ExchangeKind>(5));
  become("of kind packed all-gather: contributions are combined", 1, ExchangeKind::PackedGather);
  become("step 1 'exchange1': the exchange is not of kind all-gather: contributions are combined", 1,
         ExchangeKind::AllGather);
  become("of kind all-reduce: another box is needed on rank 1", 1, ExchangeKind::AllReduce);
  become("of kind reduce-scatter: the exchange combines no elements", 2, ExchangeKind::ReduceScatter);
  become("of kind reduce-scatter: parts do not follow each other in memory", 3, ExchangeKind::ReduceScatter);
  become("of kind all-gather: no pieces are collected", 5, ExchangeKind::AllGather);
  expect("of kind all-gather: parts differ in size", [](PlanBuilder &b) {
    uint32_t part = exchangeOf(b, 2).moves[0]->source;
    b.plan.tensors[part]->dims[0]->pieces = {{0, 3}, {3, 8}};
    exchangeOf(b, 1).kind = ExchangeKind::Messages;
  });
  expect("an order that is not a permutation", [](PlanBuilder &b) { exchangeOf(b, 1).moves[0]->order = {0, 0}; });
  expect("an order that is not a permutation", [](PlanBuilder &b) { exchangeOf(b, 1).moves[0]->order = {0}; });
  expect("an order that is not a permutation", [](PlanBuilder &b) { exchangeOf(b, 1).moves[0]->order = {0, 1, 2}; });
  expect("moves nothing", [](PlanBuilder &b) { exchangeOf(b, 1).moves.clear(); });
  // Another reduction, with the last one's.
  auto add = [](PlanBuilder &b, int step, int other) {
    auto &move = exchangeOf(b, step).moves.emplace_back(std::make_unique<artifact::MoveT>());
    *move = *exchangeOf(b, other).moves[0];
    exchangeOf(b, step).kind = ExchangeKind::Messages;
  };
  expect("step 1 'exchange1' is one reduce-scatter of 2 tensors", [&](PlanBuilder &b) {
    add(b, 1, 3);
    exchangeOf(b, 1).kind = ExchangeKind::ReduceScatter;
  });
  expect("step 1 'exchange1' moves two tensors into buffer 1", [&](PlanBuilder &b) { add(b, 1, 1); });
  expect("step 4 'exchange4' overwrites elements that it moves from buffer 2", [&](PlanBuilder &b) { add(b, 4, 3); });
  expect("step 4 'exchange4' has messages in an order that is not a permutation", [&](PlanBuilder &b) {
    add(b, 4, 1);
    exchangeOf(b, 4).moves[1]->order = {1, 1};
  });
  expect("step 4 'exchange4' uses tensor 99", [&](PlanBuilder &b) {
    add(b, 4, 1);
    exchangeOf(b, 4).moves[1]->target = 99;
  });
  expect("step 4 'exchange4' has a target of another shape or type", [&](PlanBuilder &b) {
    add(b, 4, 1);
    exchangeOf(b, 4).moves[1]->target = b.value({3, 3}, sharding(2));
  });
  // Of two axes, over one and over both.
  auto loadGathers = [](bool areAlike) {
    PlanBuilder builder({2, 2});
    builder.placesWaits = false;
    layout::Sharding both =
                         sharding(1, {{0, layout::DimSharding::fromCuts({0, 1}, std::vector<int64_t>{0, 2, 4, 6, 8})}}),
                     half = sharding(1, {{0, split(0, {0, 4, 8})}});
    uint32_t in = builder.value({8}, both), a = builder.value({8}, half),
             b = builder.value({8}, areAlike ? half : sharding(1));
    builder.input("in", in);
    builder.exchange(in, a);
    builder.addMove(in, b);
    builder.packMoves();
    builder.wait({0}, {0});
    builder.output("a", a);
    builder.output("b", b);
    return Program::load(builder.artifact()).status();
  };
  EXPECT_TRUE(loadGathers(true).ok());
  EXPECT_THAT(std::string(loadGathers(false).message()), HasSubstr("among different groups of ranks at once"));
  PlanBuilder several = exchanger();
  add(several, 1, 3);
  add(several, 4, 1);
  EXPECT_TRUE(several.program());
  // Messages do for everything, in any order.
  PlanBuilder messages = exchanger();
  for (int step = 1; step <= 5; ++step) {
    exchangeOf(messages, step).kind = ExchangeKind::Messages;
    exchangeOf(messages, step).moves[0]->order = {1, 0};
  }
  EXPECT_TRUE(messages.program());
}

TEST(Artifact, CollectivesOnStripsOfMappedConstantsAreRefused) {
  layout::DimSharding rows = split(0, {0, 2, 4}), columns = split(1, {0, 3, 6});
  // Ranks hold boxes of a value by themselves, in one piece; of a constant they see strips of the whole.
  auto load = [&](bool isConstant) {
    PlanBuilder builder({2, 2});
    layout::Sharding boxes = sharding(2, {{0, rows}, {1, columns}});
    uint32_t in =
        isConstant ? builder.constantValue({4, 6}, boxes, std::vector<float>(24, 1)) : builder.value({4, 6}, boxes);
    uint32_t out = builder.value({4, 6}, sharding(2, {{1, columns}}));
    if (!isConstant)
      builder.input("in", in);
    builder.exchange(in, out);
    EXPECT_EQ(exchangeOf(builder, 0).kind, artifact::ExchangeKind::AllGather);
    builder.output("out", out);
    return Program::load(builder.artifact()).status();
  };
  EXPECT_TRUE(load(false).ok());
  absl::Status status = load(true);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("of kind all-gather: parts do not follow each other in memory"));
}

TEST(ArtifactFuzz, DamagedExchangesStayInMemory) {
  std::vector<std::byte> good = exchanger().artifact();
  auto sections = runtime::parseArtifact(good);
  ASSERT_TRUE(sections.ok());
  int collectives = 0, refused = 0;
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<std::byte> plan(sections->plan.begin(), sections->plan.end());
    for (int change = 1 + random() % 2; change > 0; --change) {
      uint8_t value = random() % 2 ? random() % 8 : random();
      std::memcpy(plan.data() + random() % plan.size(), &value, 1);
    }
    auto decoded = runtime::decodePlan(plan, 0);
    if (!decoded.ok()) {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << decoded.status();
      ++refused;
      continue;
    }
    for (const runtime::StepInfo &step : decoded->steps) {
      const auto *call = std::get_if<runtime::ExchangeCall>(&step.action);
      if (!call || call->kind == layout::ExchangeKind::Messages || decoded->mesh.numRanks() > 64)
        continue;
      ++collectives;
      runtime::MoveScheduler scheduler(*decoded, call->moves[0]);
      for (int rank = 0; rank < decoded->mesh.numRanks(); ++rank) {
        // All of a group agree on it, and nobody is left waiting.
        layout::CollectiveGroup group = scheduler.group(call->kind, rank);
        EXPECT_NE(std::find(group.members.begin(), group.members.end(), rank), group.members.end());
        ASSERT_EQ(group.parts.size(), group.members.size());
        int64_t all = 0;
        for (size_t i = 0; i < group.parts.size(); ++i) {
          EXPECT_EQ(scheduler.group(call->kind, group.members[i]).members, group.members);
          if (call->kind != layout::ExchangeKind::PackedGather)
            EXPECT_EQ(group.parts[i].volume(), group.parts[0].volume());
          all += group.parts[i].volume();
        }
        bool gathers = layout::isGather(call->kind);
        if (call->kind != layout::ExchangeKind::AllReduce)
          EXPECT_LE(
              all,
              decoded->bufferBox(decoded->tensors[gathers ? call->moves[0].target : call->moves[0].source].buffer, rank)
                  .volume());
      }
    }
  }
  EXPECT_GT(collectives, 1000);
  EXPECT_GT(refused, 1000);
}
