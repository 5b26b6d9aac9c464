//===- ExchangeTiming.cpp - How ranks carry out exchanges -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements what collectives and messages take over links of several levels.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/ExchangeTiming.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace dovetail;

ExchangeEngine dovetail::getExchangeEngine(plan::ProgramMemory memory) {
  return memory == plan::ProgramMemory::Host ? ExchangeEngine::Threads : ExchangeEngine::Streams;
}

llvm::SmallVector<LinkTraffic> dovetail::getCollectiveTraffic(layout::ExchangeKind kind, double partBytes,
                                                              llvm::ArrayRef<double> near) {
  bool reduces = !layout::isGather(kind), collects = kind != layout::ExchangeKind::ReduceScatter;
  // All of it is each member's part of an all-reduce.
  double all = kind == layout::ExchangeKind::AllReduce ? partBytes : partBytes * near.back();
  llvm::SmallVector<LinkTraffic> traffic(near.size());
  double reached = 1;
  for (auto [own, next] : llvm::zip_equal(traffic, near)) {
    if (next <= reached)
      continue;
    // Of `next` members, those at one place in groups of `reached` divide what each such group has.
    double width = next / reached, held = all / reached;
    double bytes = held * (width - 1) / width * (reduces + collects);
    double steps = std::ceil(std::log2(width)) * (reduces + collects);
    own = {bytes, bytes, steps, steps};
    reached = next;
  }
  return traffic;
}

double dovetail::getStreamSeconds(llvm::ArrayRef<LinkTraffic> traffic, llvm::ArrayRef<Link> links, bool isCollective) {
  double seconds = 0;
  for (auto [own, link] : llvm::zip_equal(traffic, links)) {
    double bytes = std::max(own.receivedBytes, own.sentBytes);
    double messages = std::max(own.receivedMessages, own.sentMessages);
    if (messages == 0)
      continue;
    double one = Cluster::getSeconds(link, {bytes, messages, 1});
    seconds = isCollective ? seconds + one : std::max(seconds, one);
  }
  return seconds;
}
