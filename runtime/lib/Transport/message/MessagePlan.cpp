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

bool dovetail::runtime::isMessage(const MemoryView &memory, const Box &box, const MemoryFormat &format) {
  return memory.isLike(MemoryView::packed(memory.type, box, format), box);
}

/// What messages in memory for them are aligned to, and boxes in messages, which all ranks place alike.
static constexpr int64_t messageAlignment = 256;
static constexpr int64_t boxAlignment = 16;

StagedMessages::StagedMessages(const ChannelDescription &channel, absl::FunctionRef<bool(int peer)> readsOwn,
                               absl::FunctionRef<bool(int peer)> isRead)
    : joins(channel.moves.size() > 1), sends(list(channel.moves, /*areSent=*/true, readsOwn)),
      receives(list(channel.moves, /*areSent=*/false, isRead)) {
  place(sends, /*areSent=*/true);
  place(receives, /*areSent=*/false);
}

std::vector<StagedMessages::Part> StagedMessages::list(const std::vector<ChannelMove> &moves, bool areSent,
                                                       absl::FunctionRef<bool(int peer)> isNear) const {
  std::vector<Part> parts;
  for (const ChannelMove &move : moves)
    for (const layout::Transfer &transfer : areSent ? move.sends : move.receives)
      if (int peer = areSent ? transfer.dest : transfer.source; !isNear(peer))
        parts.push_back({&move, peer, transfer.box});
  // One move is as it comes.
  if (joins)
    std::stable_sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) { return a.peer < b.peer; });
  return parts;
}

size_t StagedMessages::endOfMessage(const std::vector<Part> &parts, size_t first) const {
  size_t end = first + 1;
  while (joins && end < parts.size() && parts[end].peer == parts[first].peer)
    ++end;
  return end;
}

void StagedMessages::place(std::vector<Part> &parts, bool areSent) {
  auto alignTo = [&](int64_t alignment) { bytes = (bytes + alignment - 1) / alignment * alignment; };
  for (size_t first = 0, end; first < parts.size(); first = end) {
    end = endOfMessage(parts, first);
    for (size_t i = first; i < end; ++i) {
      Part &part = parts[i];
      const MemoryView &memory = areSent ? part.move->source : part.move->target;
      part.view = MemoryView::packed(memory.type, part.box, part.move->format);
      bool mayStay = end == first + 1 && (areSent || part.move->reduction == layout::ReductionKind::None);
      if (mayStay && isMessage(memory, part.box, part.move->format))
        continue;
      alignTo(boxAlignment);
      part.offset = bytes;
      bytes += part.view.bytes();
    }
    alignTo(messageAlignment);
  }
}

void StagedMessages::bind(std::byte *memory) {
  for (std::vector<Part> *parts : {&sends, &receives})
    for (Part &part : *parts) {
      const MemoryView &own = parts == &sends ? part.move->source : part.move->target;
      part.view.data = part.offset >= 0 ? memory + part.offset : own.address(part.box);
    }
}

std::vector<Message> StagedMessages::listMessages(const std::vector<Part> &parts) const {
  std::vector<Message> messages;
  for (size_t first = 0, end; first < parts.size(); first = end) {
    end = endOfMessage(parts, first);
    const MemoryView &begin = parts[first].view, &last = parts[end - 1].view;
    messages.push_back({parts[first].peer, begin.data, last.data + last.bytes() - begin.data});
  }
  return messages;
}

int64_t dovetail::runtime::messageBytes(const ChannelDescription &channel) {
  // All transports gather.
  if (channel.kind == layout::ExchangeKind::PackedGather)
    return PackedBlocks(channel).bytes();
  return channel.kind == layout::ExchangeKind::AllGather ? 0 : StagedMessages(channel).bytes;
}

PackedBlocks::PackedBlocks(const ChannelDescription &channel)
    : numMembers(static_cast<int64_t>(channel.group.members.size())) {
  for (int member = 0; member < numMembers; ++member) {
    int64_t end = 0;
    for (const ChannelMove &move : channel.moves) {
      const Box &box = move.parts[member];
      if (box.empty())
        continue;
      MemoryView view = MemoryView::packed(move.source.type, box, move.format);
      parts.push_back({&move, member, box, view, end});
      end += (view.bytes() + boxAlignment - 1) / boxAlignment * boxAlignment;
    }
    blockBytes = std::max(blockBytes, end);
  }
  for (Part &part : parts)
    part.offset += part.member * blockBytes;
}

void PackedBlocks::bind(std::byte *memory) {
  for (Part &part : parts)
    part.view.data = memory + part.offset;
}

Collective PackedBlocks::describeCollective(std::byte *memory, int own) const {
  // As bytes, which nobody looks into.
  return {layout::ExchangeKind::AllGather,
          layout::ReductionKind::None,
          ElementType::U8,
          blockBytes,
          memory + own * blockBytes,
          memory};
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
          group.parts[own].volume(),
          move.source.address(group.parts[gathers ? own : 0]),
          move.target.address(group.parts[gathers ? 0 : own])};
}
