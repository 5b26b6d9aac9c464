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

MemoryView dovetail::runtime::messageView(ElementType type, const Box &box, const std::vector<int> &order) {
  MemoryFormat format;
  format.order = order;
  return MemoryView::packed(type, box, format);
}

bool dovetail::runtime::isMessage(const MemoryView &memory, const Box &box, const std::vector<int> &order) {
  if (memory.blockDim >= 0)
    return false;
  MemoryView message = messageView(memory.type, box, order);
  for (int dim = 0; dim < box.rank(); ++dim)
    if (box[dim].size() > 1 && message.strides[dim] != memory.strides[dim])
      return false;
  return true;
}

Collective dovetail::runtime::describeCollective(const ChannelDescription &channel, int rank) {
  const layout::CollectiveGroup &group = channel.group;
  size_t own = std::find(group.members.begin(), group.members.end(), rank) - group.members.begin();
  // The memory that has the parts of all begins with the first one's.
  bool gathers = channel.kind == layout::ExchangeKind::AllGather;
  return {channel.kind,
          channel.reduction,
          channel.source.type,
          group.parts[own].volume(),
          channel.source.address(group.parts[gathers ? own : 0]),
          channel.target.address(group.parts[gathers ? 0 : own])};
}
