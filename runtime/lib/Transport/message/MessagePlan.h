//===- MessagePlan.h - What ranks send each other ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the order of elements in messages between ranks that do not see each other's memory, and when a collective
// takes their place.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGEPLAN_H
#define DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGEPLAN_H

#include "dovetail/runtime/Communicator.h"
#include "dovetail/runtime/Transport.h"

namespace dovetail::runtime {

/// The order of dimensions, outermost first, in which `box` lies in `memory`: messages have it, so that what is
/// contiguous there is sent as it is.
std::vector<int> messageOrder(const MemoryView &memory, const layout::Box &box);

/// A message with `box` in an order; without data.
MemoryView messageView(ElementType type, const layout::Box &box, const std::vector<int> &order);

/// Whether `box` lies in `memory` as in a message.
bool isMessage(const MemoryView &memory, const layout::Box &box, const std::vector<int> &order);

/// What a rank tells the others about a channel, before messages are prepared.
struct ChannelOffer {
  /// The collective that would do for all of the channel, if all of its group agree; its memory on this rank.
  Collective collective;
  std::vector<int> members;         ///< Of the group, ascending.
  std::vector<int> collectiveOrder; ///< In which elements lie in each part.
  /// Of each message that it sends: the receiver, and the order of its elements.
  struct Send {
    int dest;
    std::vector<int> order;
  };
  std::vector<Send> sends;

  /// Whether both mean the same collective.
  bool agrees(const ChannelOffer &other) const;
};

ChannelOffer makeOffer(const ChannelDescription &channel, int rank);

/// The offers of a rank, one for each channel, as bytes for the others.
std::string packOffers(const std::vector<ChannelOffer> &offers);
/// Errors: INTERNAL.
absl::StatusOr<std::vector<ChannelOffer>> unpackOffers(const std::string &packed);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGEPLAN_H
