//===- ExchangeTimingTest.cpp - Tests of what exchanges take over links ----===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/ExchangeTiming.h"

#include "gtest/gtest.h"

using namespace dovetail;

TEST(TransportTest, AllGatherGoesOverTheFarthestLinksFirst) {
  // Sixteen ranks in nodes of eight, each of which gives 100 bytes. With the other node each exchanges what both have:
  // 100 bytes. Inside of its node each then gets the seven eighths of 1600 bytes that it has not.
  auto traffic = getCollectiveTraffic(layout::ExchangeKind::AllGather, 100, {8, 16});
  ASSERT_EQ(traffic.size(), 2u);
  EXPECT_EQ(traffic[0].receivedBytes, 1400);
  EXPECT_EQ(traffic[0].receivedMessages, 3);
  EXPECT_EQ(traffic[1].receivedBytes, 100);
  EXPECT_EQ(traffic[1].receivedMessages, 1);
  EXPECT_EQ(traffic[1].sentBytes, traffic[1].receivedBytes);
}

TEST(TransportTest, AllReduceScattersThenGathers) {
  auto scattered = getCollectiveTraffic(layout::ExchangeKind::ReduceScatter, 100, {4, 4, 12});
  auto gathered = getCollectiveTraffic(layout::ExchangeKind::AllGather, 100, {4, 4, 12});
  // Of an all-reduce all is each one's part.
  auto reduced = getCollectiveTraffic(layout::ExchangeKind::AllReduce, 1200, {4, 4, 12});
  for (int link = 0; link < 3; ++link) {
    EXPECT_EQ(reduced[link].receivedBytes, scattered[link].receivedBytes + gathered[link].receivedBytes);
    EXPECT_EQ(reduced[link].receivedMessages, scattered[link].receivedMessages + gathered[link].receivedMessages);
  }
  // Over a link that reaches nobody else nothing goes.
  EXPECT_EQ(reduced[1].receivedBytes, 0);
  EXPECT_EQ(reduced[1].receivedMessages, 0);
}

TEST(TransportTest, MessagesGoOverAllLinksAtOnce) {
  std::vector<Link> links = {{"near", 8, 1, 0.5, 100}, {"far", 0, 2, 1, 10}};
  // 1 + 0.5 + 2 seconds over the one, 2 + 3 over the other.
  std::vector<LinkTraffic> traffic = {{200, 100, 2, 1}, {20, 30, 1, 1}};
  EXPECT_DOUBLE_EQ(getStreamSeconds(traffic, links, /*isCollective=*/false), 5);
  EXPECT_DOUBLE_EQ(getStreamSeconds(traffic, links, /*isCollective=*/true), 8.5);
}
