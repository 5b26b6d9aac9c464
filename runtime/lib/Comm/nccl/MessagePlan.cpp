//===- MessagePlan.cpp - What ranks send each other -------------------------- ===//
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
using namespace dovetail::runtime::cuda;
using layout::Box;

std::vector<int> dovetail::runtime::cuda::messageOrder(const MemoryView &memory, const Box &box) {
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

MemoryView dovetail::runtime::cuda::messageView(ElementType type, const Box &box, const std::vector<int> &order) {
  MemoryFormat format;
  format.order = order;
  return MemoryView::packed(type, box, format);
}

bool dovetail::runtime::cuda::isMessage(const MemoryView &memory, const Box &box, const std::vector<int> &order) {
  if (memory.blockDim >= 0)
    return false;
  MemoryView message = messageView(memory.type, box, order);
  for (int dim = 0; dim < box.rank(); ++dim)
    if (box[dim].size() > 1 && message.strides[dim] != memory.strides[dim])
      return false;
  return true;
}

std::string dovetail::runtime::cuda::packOrders(const std::vector<const ChannelDescription *> &channels) {
  std::vector<int32_t> numbers{static_cast<int32_t>(channels.size())};
  for (const ChannelDescription *channel : channels) {
    numbers.push_back(static_cast<int32_t>(channel->sends.size()));
    for (const layout::Transfer &transfer : channel->sends) {
      std::vector<int> order = messageOrder(channel->source, transfer.box);
      numbers.push_back(transfer.dest);
      numbers.push_back(static_cast<int32_t>(order.size()));
      numbers.insert(numbers.end(), order.begin(), order.end());
    }
  }
  return std::string(reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(int32_t));
}

absl::StatusOr<std::vector<std::vector<std::vector<int>>>>
dovetail::runtime::cuda::unpackOrders(const std::string &packed, int rank) {
  size_t at = 0;
  bool damaged = false;
  auto next = [&]() -> int32_t {
    int32_t value = 0;
    if (at + sizeof(value) > packed.size()) {
      damaged = true;
      return 0;
    }
    std::memcpy(&value, packed.data() + at, sizeof(value));
    at += sizeof(value);
    return value;
  };
  std::vector<std::vector<std::vector<int>>> result;
  for (int32_t channels = next(); channels > 0 && !damaged; --channels) {
    std::vector<std::vector<int>> orders;
    for (int32_t sends = next(); sends > 0 && !damaged; --sends) {
      int32_t dest = next();
      std::vector<int> order;
      for (int32_t dims = next(); dims > 0 && !damaged; --dims)
        order.push_back(next());
      std::vector<int> sorted = order;
      std::sort(sorted.begin(), sorted.end());
      for (size_t dim = 0; dim < sorted.size(); ++dim)
        damaged |= sorted[dim] != static_cast<int>(dim);
      if (dest == rank)
        orders.push_back(std::move(order));
    }
    result.push_back(std::move(orders));
  }
  if (damaged || at != packed.size())
    return absl::InternalError("a rank describes its messages in another way");
  return result;
}
