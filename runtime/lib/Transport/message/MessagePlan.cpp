//===- MessagePlan.cpp - What ranks send each other -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MessagePlan.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;

MemoryView dovetail::runtime::messageView(const MemoryView &memory, const Box &box, const MemoryFormat &format) {
  return MemoryView::packed(memory.type, box, format, memory.blockedExtent);
}

bool dovetail::runtime::isMessage(const MemoryView &memory, const Box &box, const MemoryFormat &format) {
  return memory.isLike(messageView(memory, box, format), box);
}

Collective dovetail::runtime::describeCollective(const ChannelDescription &channel, int rank) {
  const layout::CollectiveGroup &group = channel.group;
  const ChannelMove &move = channel.moves[0];
  size_t own = std::find(group.members.begin(), group.members.end(), rank) - group.members.begin();
  // The memory that has the parts of all begins with the first one's.
  bool gathers = channel.kind == layout::ExchangeKind::AllGather;
  return {channel.kind,
          move.reduction,
          move.source.type,
          move.format.volume(group.parts[own]),
          move.source.address(group.parts[gathers ? own : 0]),
          move.target.address(group.parts[gathers ? 0 : own])};
}
