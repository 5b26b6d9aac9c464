//===- MessageChannel.h - Exchanges between processes ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines an exchange of one rank as messages to and from others, or as a collective that takes their place.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGECHANNEL_H
#define DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGECHANNEL_H

#include "../Rendezvous.h"
#include "MessagePlan.h"

#include "dovetail/runtime/Transport.h"

namespace dovetail::runtime {

/// What is contiguous is sent from where it is and received where it belongs; all else of all peers goes through memory
/// of the channel, packed by one launch and unpacked by another.
class MessageChannel : public Channel {
public:
  MessageChannel(Rendezvous &rendezvous, int rank, ChannelDescription description)
      : rendezvous(rendezvous), rank(rank), description(std::move(description)) {}

  const ChannelDescription &getDescription() const { return description; }
  /// Prepares messages between all of `ranks` ranks.
  absl::Status prepareMessages(int ranks, Transport &transport);
  /// Prepares the collective of the transport's group, which is the channel's.
  absl::Status prepareCollective(Transport &transport);

  absl::Status start() override { return ready->record(description.mover->getStream(StreamKind::Steps)); }
  absl::Status finish() override;
  absl::Status join() override { return description.mover->getStream(StreamKind::Steps).wait(*complete); }
  /// The messages are sent when the target is complete.
  absl::Status fence() override { return join(); }

private:
  /// A message, and where it is in the channel's memory; negative: it is where it belongs.
  struct Staged {
    MemoryView view;
    int64_t offset = -1;
  };
  /// Sets what becomes of received boxes.
  absl::Status addCopies(const std::vector<Staged> &received);
  absl::Status addCombinations(const std::vector<Staged> &received, int ranks);
  absl::Status add(absl::StatusOr<std::unique_ptr<Move>> move) {
    if (move.ok())
      moves.push_back(*std::move(move));
    return move.status();
  }
  /// What a transport has prepared.
  absl::Status add(absl::StatusOr<std::unique_ptr<DeviceWork>> work);
  absl::Status createEvents();

  Rendezvous &rendezvous;
  int rank;
  ChannelDescription description;
  std::shared_ptr<std::byte> staging;
  std::vector<std::unique_ptr<Move>> moves; ///< One after another.
  std::unique_ptr<DeviceEvent> ready, complete;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGECHANNEL_H
