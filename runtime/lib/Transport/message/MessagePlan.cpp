//===- MessagePlan.cpp - What ranks send each other -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MessagePlan.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;

std::vector<int> dovetail::runtime::messageOrder(const MemoryView &memory, const Box &box) {
  std::vector<int> order(box.rank());
  std::iota(order.begin(), order.end(), 0);
  // Where the box has one coordinate only, the stride says nothing.
  if (memory.blockDim < 0)
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      bool oneA = box[a].size() == 1, oneB = box[b].size() == 1;
      if (oneA || oneB)
        return oneA && oneB ? a < b : oneA;
      return memory.strides[a] != memory.strides[b] ? memory.strides[a] > memory.strides[b] : a < b;
    });
  return order;
}

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

bool ChannelOffer::agrees(const ChannelOffer &other) const {
  const Collective &a = collective, &b = other.collective;
  return a.kind == b.kind && a.reduction == b.reduction && a.type == b.type && a.elements == b.elements &&
         members == other.members && collectiveOrder == other.collectiveOrder;
}

namespace {

/// Parts of the ranks of a group, in their order.
struct Parts {
  std::vector<int> members;
  std::vector<Box> boxes;

  /// Errors are an empty result: a rank that comes twice, or not.
  static Parts of(const std::vector<layout::Transfer> &transfers, bool received, int rank, const Box &own) {
    std::vector<std::pair<int, Box>> parts{{rank, own}};
    for (const layout::Transfer &transfer : transfers)
      parts.emplace_back(received ? transfer.source : transfer.dest, transfer.box);
    std::sort(parts.begin(), parts.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    Parts result;
    for (const auto &[member, box] : parts) {
      if (!result.members.empty() && result.members.back() == member)
        return {};
      result.members.push_back(member);
      result.boxes.push_back(box);
    }
    return result;
  }
  bool allAre(const Box &box) const {
    return std::all_of(boxes.begin(), boxes.end(), [&](const Box &other) { return other == box; });
  }
};

/// Whether the boxes lie in `memory` one after the other, as messages of the same size.
bool followEachOther(const MemoryView &memory, const std::vector<Box> &boxes, const std::vector<int> &order) {
  int64_t bytes = boxes[0].volume() * elementSize(memory.type);
  const std::byte *begin = memory.address(boxes[0]);
  for (size_t i = 0; i < boxes.size(); ++i)
    if (boxes[i].volume() != boxes[0].volume() || !isMessage(memory, boxes[i], order) ||
        memory.address(boxes[i]) != begin + static_cast<int64_t>(i) * bytes)
      return false;
  return true;
}

/// Sets the collective of `offer`, if the channel is one on this rank.
void findCollective(const ChannelDescription &channel, int rank, ChannelOffer &offer) {
  const MemoryView &source = channel.source, &target = channel.target;
  bool reduces = channel.reduction != layout::ReductionKind::None, inPlace = source.data == target.data;
  if (channel.sends.empty() || channel.receives.empty() || source.blockDim >= 0 || target.blockDim >= 0)
    return;
  // What this rank has of the result, or gives to the others.
  Box own = channel.local.size() == 1 ? channel.local[0] : channel.sends[0].box;
  if (own.empty() || channel.local.size() > 1 || (channel.local.empty() && (reduces || !inPlace)))
    return;
  Parts sent = Parts::of(channel.sends, /*received=*/false, rank, own),
        got = Parts::of(channel.receives, /*received=*/true, rank, own);
  if (sent.members.empty() || sent.members != got.members)
    return;
  std::vector<int> order = messageOrder(source, own);
  Collective collective{CollectiveKind::None,          channel.reduction,           source.type, own.volume(),
                        source.address(sent.boxes[0]), target.address(got.boxes[0])};
  if (reduces && got.allAre(own)) {
    // Everybody gets everything, or each a part of what all have.
    if (sent.allAre(own) && isMessage(source, own, order) && isMessage(target, own, order))
      collective.kind = CollectiveKind::AllReduce;
    else if (followEachOther(source, sent.boxes, order) && isMessage(target, own, order))
      collective.kind = CollectiveKind::ReduceScatter;
  } else if (!reduces && sent.allAre(own)) {
    if (isMessage(source, own, order) && followEachOther(target, got.boxes, order))
      collective.kind = CollectiveKind::AllGather;
  }
  if (collective.kind == CollectiveKind::None)
    return;
  offer.collective = collective;
  offer.members = sent.members;
  offer.collectiveOrder = std::move(order);
}

/// Numbers as bytes.
class Packer {
public:
  void add(int64_t number) { text.append(reinterpret_cast<const char *>(&number), sizeof(number)); }
  void add(const std::vector<int> &numbers) {
    add(static_cast<int64_t>(numbers.size()));
    for (int number : numbers)
      add(int64_t(number));
  }
  std::string text;
};

class Unpacker {
public:
  explicit Unpacker(const std::string &text) : text(text) {}
  int64_t next() {
    int64_t value = 0;
    if (text.size() - at < sizeof(value)) {
      isDamaged = true;
      return 0;
    }
    std::memcpy(&value, text.data() + at, sizeof(value));
    at += sizeof(value);
    return value;
  }
  /// A number of things that follow, at least one number for each.
  int64_t nextCount() {
    int64_t count = next();
    isDamaged |= count < 0 || count > static_cast<int64_t>((text.size() - at) / sizeof(int64_t));
    return isDamaged ? 0 : count;
  }
  std::vector<int> nextList() {
    std::vector<int> list(nextCount());
    for (int &number : list)
      number = static_cast<int>(next());
    return list;
  }
  /// An order of dimensions.
  std::vector<int> nextOrder() {
    std::vector<int> order = nextList(), sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t dim = 0; dim < sorted.size(); ++dim)
      isDamaged |= sorted[dim] != static_cast<int>(dim);
    return order;
  }

  bool isDamaged = false;
  bool isAtEnd() const { return at == text.size(); }

private:
  const std::string &text;
  size_t at = 0;
};

} // namespace

ChannelOffer dovetail::runtime::makeOffer(const ChannelDescription &channel, int rank) {
  ChannelOffer offer;
  for (const layout::Transfer &transfer : channel.sends)
    offer.sends.push_back({transfer.dest, messageOrder(channel.source, transfer.box)});
  findCollective(channel, rank, offer);
  return offer;
}

std::string dovetail::runtime::packOffers(const std::vector<ChannelOffer> &offers) {
  Packer packer;
  packer.add(static_cast<int64_t>(offers.size()));
  for (const ChannelOffer &offer : offers) {
    packer.add(static_cast<int64_t>(offer.collective.kind));
    packer.add(static_cast<int64_t>(offer.collective.reduction));
    packer.add(static_cast<int64_t>(offer.collective.type));
    packer.add(offer.collective.elements);
    packer.add(offer.members);
    packer.add(offer.collectiveOrder);
    packer.add(static_cast<int64_t>(offer.sends.size()));
    for (const ChannelOffer::Send &send : offer.sends) {
      packer.add(int64_t(send.dest));
      packer.add(send.order);
    }
  }
  return std::move(packer.text);
}

absl::StatusOr<std::vector<ChannelOffer>> dovetail::runtime::unpackOffers(const std::string &packed) {
  Unpacker unpacker(packed);
  std::vector<ChannelOffer> offers(unpacker.nextCount());
  for (ChannelOffer &offer : offers) {
    offer.collective.kind = static_cast<CollectiveKind>(unpacker.next());
    offer.collective.reduction = static_cast<layout::ReductionKind>(unpacker.next());
    offer.collective.type = static_cast<ElementType>(unpacker.next());
    offer.collective.elements = unpacker.next();
    offer.members = unpacker.nextList();
    offer.collectiveOrder = unpacker.nextOrder();
    offer.sends.resize(unpacker.nextCount());
    for (ChannelOffer::Send &send : offer.sends) {
      send.dest = static_cast<int>(unpacker.next());
      send.order = unpacker.nextOrder();
    }
  }
  if (unpacker.isDamaged || !unpacker.isAtEnd())
    return absl::InternalError("a rank describes its messages in another way; run the same version on all ranks");
  return offers;
}
