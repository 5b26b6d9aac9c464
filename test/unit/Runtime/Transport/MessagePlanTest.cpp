//===- MessagePlanTest.cpp - Where messages and collectives lie -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/message/MessagePlan.h"
#include "../Harness/DevicePlan.h"

#include "dovetail/runtime/Schedule.h"
#include "dovetail/runtime/Session.h"

using namespace dovetail;
using namespace dovetail::test;
using layout::Box;
using layout::ExchangeKind;
using runtime::Collective;
using runtime::MemoryView;

namespace {

/// A channel of rank `rank` for the exchange of a program whose source and target are of their own.
runtime::ChannelDescription channelOf(const runtime::Plan &plan, const runtime::ExchangeCall &call, int rank) {
  auto view = [&](uint32_t tensor, uintptr_t address) {
    auto view =
        MemoryView::packed(runtime::ElementType::F32, plan.tensorBox(tensor, rank), plan.bufferOf(tensor).format);
    view.data = reinterpret_cast<std::byte *>(address);
    return view;
  };
  const runtime::MoveInfo &move = call.moves[0];
  runtime::MoveScheduler scheduler(plan, move);
  runtime::ChannelDescription channel;
  channel.moves.resize(1);
  channel.moves[0].source = view(move.source, 0x10000);
  channel.moves[0].target = view(move.target, 0x20000);
  channel.moves[0].reduction = scheduler.transfers(rank).reduction;
  channel.moves[0].format = {move.order};
  channel.kind = call.kind;
  channel.group = scheduler.group(call.kind, rank);
  return channel;
}

/// Of each rank.
std::vector<Collective> collectivesOf(int64_t ranks, const Shape &shape, const layout::Sharding &from,
                                      const layout::Sharding &to) {
  PlanBuilder builder = hostBuilder({ranks});
  uint32_t in = builder.value(shape, from), out = builder.value(shape, to);
  builder.kernel("increment", {}, {in}, {}); // It is not run.
  builder.exchange(in, out);
  builder.output("out", out);
  auto program = builder.program();
  const auto &call = std::get<runtime::ExchangeCall>(program->getPlan().steps[1].action);
  std::vector<Collective> result;
  for (int rank = 0; rank < ranks; ++rank)
    result.push_back(runtime::describeCollective(channelOf(program->getPlan(), call, rank), rank));
  return result;
}

uintptr_t addressOf(const std::byte *data) { return reinterpret_cast<uintptr_t>(data); }

TEST(MessagePlan, CollectivesBeginWithTheFirstPart) {
  auto cut = sharding(2, {{0, split(0, {0, 2, 4, 6})}}), all = sharding(2);
  auto sum = sharding(2, {}, {0}, layout::ReductionKind::Sum);
  auto gathers = collectivesOf(3, {6, 5}, cut, all), scatters = collectivesOf(3, {6, 5}, sum, cut),
       reduces = collectivesOf(3, {6, 5}, sum, all);
  for (int rank = 0; rank < 3; ++rank) {
    for (const Collective &collective : {gathers[rank], scatters[rank], reduces[rank]}) {
      EXPECT_EQ(addressOf(collective.source), 0x10000u);
      EXPECT_EQ(addressOf(collective.target), 0x20000u);
    }
    EXPECT_EQ(gathers[rank].kind, ExchangeKind::AllGather);
    EXPECT_EQ(gathers[rank].elements, 10);
    EXPECT_EQ(gathers[rank].reduction, layout::ReductionKind::None);
    EXPECT_EQ(scatters[rank].kind, ExchangeKind::ReduceScatter);
    EXPECT_EQ(scatters[rank].elements, 10);
    EXPECT_EQ(scatters[rank].reduction, layout::ReductionKind::Sum);
    EXPECT_EQ(reduces[rank].kind, ExchangeKind::AllReduce);
    EXPECT_EQ(reduces[rank].elements, 30);
  }
}

TEST(MessagePlan, PartsInPlaceAreWhereTheyBelong) {
  PlanBuilder builder = hostBuilder({3});
  uint32_t buffer = builder.buffer({6, 5}, sharding(2));
  uint32_t own = builder.tensor(buffer, sharding(2, {{0, split(0, {0, 2, 4, 6})}})),
           all = builder.tensor(buffer, sharding(2));
  builder.kernel("increment", {}, {own}, {});
  builder.exchange(own, all);
  builder.output("out", all);
  auto program = builder.program();
  const auto &call = std::get<runtime::ExchangeCall>(program->getPlan().steps[1].action);
  EXPECT_EQ(call.kind, ExchangeKind::AllGather);
  for (int rank = 0; rank < 3; ++rank) {
    runtime::ChannelDescription channel = channelOf(program->getPlan(), call, rank);
    channel.moves[0].source = channel.moves[0].target;
    Collective collective = runtime::describeCollective(channel, rank);
    EXPECT_EQ(addressOf(collective.source), 0x20000u + rank * 10 * sizeof(float));
    EXPECT_EQ(addressOf(collective.target), 0x20000u);
  }
}

TEST(MessagePlan, WhatIsContiguousIsAMessage) {
  MemoryView memory = MemoryView::packed(runtime::ElementType::F32, Box{{0, 4}, {0, 6}}, {{1, 0}});
  EXPECT_TRUE(runtime::isMessage(memory, Box{{0, 4}, {2, 3}}, {{1, 0}}));
  EXPECT_TRUE(runtime::isMessage(memory, Box{{0, 4}, {2, 3}}, {{0, 1}}));
  EXPECT_TRUE(runtime::isMessage(memory, Box{{0, 4}, {2, 5}}, {{1, 0}}));
  EXPECT_FALSE(runtime::isMessage(memory, Box{{0, 4}, {2, 5}}, {{0, 1}}));
  EXPECT_FALSE(runtime::isMessage(memory, Box{{0, 3}, {2, 5}}, {{1, 0}}));
}

/// Memory for the messages of each rank, as the plan says.
std::vector<int64_t> messageBytesOf(const layout::Sharding &from, const layout::Sharding &to) {
  PlanBuilder builder = hostBuilder({2});
  uint32_t in = builder.value({6, 50}, from), out = builder.value({6, 50}, to);
  builder.kernel("increment", {}, {in}, {}); // It is not run.
  builder.exchange(in, out);
  builder.output("out", out);
  auto program = builder.program();
  std::vector<int64_t> result;
  for (int rank = 0; rank < 2; ++rank) {
    auto planned = runtime::estimateStatistics(program->getPlan(), rank, 1);
    EXPECT_TRUE(planned.ok()) << planned.status();
    result.push_back(planned.ok() ? planned->messageBytes : -1);
  }
  return result;
}

TEST(MessagePlan, MessagesThatDoNotLieInOnePieceTakeMemory) {
  auto rows = sharding(2, {{0, split(0, {0, 2, 6})}}), columns = sharding(2, {{1, split(0, {0, 20, 50})}}),
       all = sharding(2), sum = sharding(2, {}, {0}, layout::ReductionKind::Sum);
  // Rows are sent and received in their places. Columns are all that a rank has, and sent as they lie, but go
  // to 6 pieces each: 6 * 30 * 4 and 6 * 20 * 4 bytes, in steps of 256.
  EXPECT_EQ(messageBytesOf(rows, all), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(messageBytesOf(columns, all), (std::vector<int64_t>{768, 512}));
  // What is added to other values is received elsewhere first.
  EXPECT_EQ(messageBytesOf(sum, rows), (std::vector<int64_t>{2 * 50 * 4 + 112, 4 * 50 * 4 + 224}));
}

} // namespace
