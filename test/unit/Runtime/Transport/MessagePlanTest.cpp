//===- MessagePlanTest.cpp - When collectives take the place of messages -===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transport/message/MessagePlan.h"
#include "../Harness/DevicePlan.h"

#include "dovetail/runtime/Schedule.h"

using namespace dovetail;
using namespace dovetail::test;
using layout::ReductionKind;
using layout::Sharding;
using runtime::ChannelOffer;
using runtime::CollectiveKind;

namespace {

/// The collectives of an exchange, one for each phase: what all members of rank 0's group agree on. The source's memory
/// has the order `from`, the target's `to`.
std::vector<ChannelOffer> agreed(const std::vector<int64_t> &mesh, const Shape &shape, const Sharding &source,
                                 const Sharding &target, Order from = {}, Order to = {}) {
  PlanBuilder builder = hostBuilder(mesh);
  uint32_t in = builder.value(shape, source, from), out = builder.value(shape, target, to);
  builder.kernel("increment", {}, {in}, {}); // It is not run.
  builder.exchange(in, out);
  builder.output("out", out);
  auto program = builder.program();
  const runtime::Plan &plan = program->getPlan();
  const auto &call = std::get<runtime::ExchangeCall>(plan.steps[1].action);
  runtime::ExchangeScheduler scheduler(plan, call);
  std::vector<std::vector<ChannelOffer>> offers;
  for (int rank = 0; rank < program->numRanks(); ++rank) {
    auto view = [&](uint32_t tensor, uintptr_t address) {
      auto view = runtime::MemoryView::packed(runtime::ElementType::F32, plan.tensorBox(tensor, rank),
                                              plan.bufferOf(tensor).format);
      view.data = reinterpret_cast<std::byte *>(address);
      return view;
    };
    std::vector<ChannelOffer> own;
    for (const runtime::ExchangePhase &phase : scheduler.phases(rank)) {
      runtime::ChannelDescription channel;
      channel.target = view(call.target, 0x10000000);
      channel.source = phase.fromTarget ? channel.target : view(call.source, 0x20000000);
      channel.receives = phase.receives;
      channel.sends = phase.sends;
      channel.local = phase.local;
      channel.reduction = phase.reduction;
      own.push_back(runtime::makeOffer(channel, rank));
    }
    // As the others get it.
    auto unpacked = runtime::unpackOffers(runtime::packOffers(own));
    EXPECT_TRUE(unpacked.ok()) << unpacked.status();
    offers.push_back(*unpacked);
  }
  std::vector<ChannelOffer> result = offers[0];
  for (size_t phase = 0; phase < result.size(); ++phase)
    for (int member : result[phase].members)
      if (!offers[member][phase].agrees(result[phase]))
        result[phase].collective.kind = CollectiveKind::None;
  return result;
}

CollectiveKind kindOf(const std::vector<ChannelOffer> &offers) {
  EXPECT_EQ(offers.size(), 1u);
  return offers[0].collective.kind;
}

Sharding partial(ReductionKind kind = ReductionKind::Sum) { return sharding(1, {}, {0}, kind); }

TEST(MessagePlan, EqualPartsInARowAreGathered) {
  auto rows = sharding(2, {{0, split(0, {0, 4, 8, 12})}}), columns = sharding(2, {{1, split(0, {0, 4, 8, 12})}});
  auto offers = agreed({3}, {12, 12}, rows, sharding(2));
  EXPECT_EQ(kindOf(offers), CollectiveKind::AllGather);
  EXPECT_EQ(offers[0].collective.elements, 48);
  EXPECT_EQ(offers[0].members, (std::vector<int>{0, 1, 2}));
  // Strips of columns do not follow one another, unless they are outermost in memory.
  EXPECT_EQ(kindOf(agreed({3}, {12, 12}, columns, sharding(2))), CollectiveKind::None);
  EXPECT_EQ(kindOf(agreed({3}, {12, 12}, columns, sharding(2), {1, 0}, {1, 0})), CollectiveKind::AllGather);
  EXPECT_EQ(kindOf(agreed({3}, {12, 12}, columns, sharding(2), {0, 1}, {1, 0})), CollectiveKind::None);
}

TEST(MessagePlan, OtherExchangesAreMessages) {
  auto uneven = sharding(2, {{0, split(0, {0, 4, 8, 13})}}), empty = sharding(2, {{0, split(0, {0, 0, 6, 12})}});
  EXPECT_EQ(kindOf(agreed({3}, {13, 12}, uneven, sharding(2))), CollectiveKind::None);
  EXPECT_EQ(kindOf(agreed({3}, {12, 12}, empty, sharding(2))), CollectiveKind::None);
  auto halo = sharding(1, {{0, windows(0, {{0, 5}, {3, 8}})}});
  EXPECT_EQ(kindOf(agreed({2}, {8}, sharding(1, {{0, split(0, {0, 4, 8})}}), halo)), CollectiveKind::None);
}

TEST(MessagePlan, PartialValuesOfAllAreReduced) {
  EXPECT_EQ(kindOf(agreed({3}, {7}, partial(), sharding(1))), CollectiveKind::AllReduce);
  // Much, in two phases; parts that are not equal are messages.
  auto offers = agreed({4}, {40'000}, partial(), sharding(1));
  ASSERT_EQ(offers.size(), 2u);
  EXPECT_EQ(offers[0].collective.kind, CollectiveKind::ReduceScatter);
  EXPECT_EQ(offers[1].collective.kind, CollectiveKind::AllGather);
  EXPECT_EQ(offers[0].collective.elements, 10'000);
  for (const ChannelOffer &offer : agreed({3}, {40'000}, partial(), sharding(1)))
    EXPECT_EQ(offer.collective.kind, CollectiveKind::None);
  EXPECT_EQ(kindOf(agreed({2}, {8}, partial(), sharding(1, {{0, split(0, {0, 4, 8})}}))),
            CollectiveKind::ReduceScatter);
  EXPECT_EQ(kindOf(agreed({2}, {8}, partial(), sharding(1, {{0, split(0, {0, 3, 8})}}))), CollectiveKind::None);
}

TEST(MessagePlan, GroupsAreThoseOfAnAxis) {
  auto offers = agreed({2, 3}, {6}, sharding(1, {}, {1}, ReductionKind::Sum), sharding(1));
  EXPECT_EQ(kindOf(offers), CollectiveKind::AllReduce);
  EXPECT_EQ(offers[0].members, (std::vector<int>{0, 1, 2}));
  offers = agreed({2, 3}, {6}, sharding(1, {}, {0}, ReductionKind::Sum), sharding(1));
  EXPECT_EQ(offers[0].members, (std::vector<int>{0, 3}));
}

TEST(MessagePlan, DamagedOffersAreRefused) {
  ChannelOffer offer;
  offer.sends.push_back({1, {1, 0}});
  std::string packed = runtime::packOffers({offer});
  EXPECT_TRUE(runtime::unpackOffers(packed).ok());
  for (size_t size = 0; size < packed.size(); ++size)
    EXPECT_FALSE(runtime::unpackOffers(packed.substr(0, size)).ok()) << size;
  offer.sends[0].order = {1, 1};
  EXPECT_FALSE(runtime::unpackOffers(runtime::packOffers({offer})).ok());
}

} // namespace
