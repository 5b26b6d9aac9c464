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

#include "../rendezvous/Rendezvous.h"
#include "MessagePlan.h"
#include "Neighbours.h"

#include "dovetail/runtime/Transport.h"

namespace dovetail::runtime {

class MessageChannel;

/// What a communicator knows of its channels.
struct OpenChannels {
  size_t count = 0;
  std::vector<MessageChannel *> underWay; ///< Those that wait for others.
  int64_t stagingBytes = 0;               ///< Of the memory that they allocated.
  /// Memory of channels that were given up: it may still be read or written.
  std::vector<std::shared_ptr<void>> memory;
  bool areNear = false; ///< Some are with neighbours, who may wait for what is under way here.

  /// Goes on with all that is under way.
  void progress();
};

/// What a peer gets in several moves is one message; each box of a single move is one of its own. Boxes that are
/// messages and contiguous are sent from where they are and received where they belong; all else of all peers goes
/// through memory of the channel, packed by one launch and unpacked by another. What neighbours have is no message: it
/// is read where it is, when they have said that it is complete.
class MessageChannel : public Channel {
public:
  MessageChannel(Rendezvous &rendezvous, OpenChannels &open, int rank, ChannelDescription description)
      : rendezvous(rendezvous), open(open), rank(rank), description(std::move(description)) {
    ++open.count;
  }
  ~MessageChannel() override;

  const ChannelDescription &getDescription() const { return description; }
  /// Who knows the channel by this number.
  void setNeighbours(std::shared_ptr<Neighbours> found, size_t number) {
    neighbours = std::move(found);
    this->number = number;
  }
  /// Whether all that a collective would bring can be read from neighbours; the same on all members of the group.
  bool isNear() const;
  /// Prepares messages between all of `ranks` ranks.
  absl::Status prepareMessages(int ranks, Transport &transport);
  /// Prepares the collective of the transport's group, which is the channel's.
  absl::Status prepareCollective(Transport &transport);

  /// Goes on with what is under way, if that need not be waited for. Errors come with `join`.
  void progress();

  absl::Status start() override;
  absl::Status finish() override;
  absl::Status join() override;
  /// The messages are sent when the target is complete.
  absl::Status fence() override;

private:
  /// A packed gather, by way of memory for the blocks of all.
  absl::Status preparePacked(Transport &transport);
  absl::Status allocate(int64_t bytes);
  /// Whether rank `peer` of this machine reads sources of rank `source`, or the other way round.
  bool isShared(int peer, int source) const {
    return neighbours && neighbours->has(peer) && neighbours->shares(source, number);
  }
  /// Adds what is read from neighbours to what has come in messages.
  void addNear(std::vector<StagedMessages::Part> &received);
  /// Add what becomes of the boxes that a move has received, and of this rank's own.
  static void addCopies(const ChannelMove &move, const std::vector<StagedMessages::Part> &received,
                        std::vector<StridedBox> &copies);
  void addCombinations(const ChannelMove &move, const std::vector<StagedMessages::Part> &received, int ranks,
                       std::vector<StridedBox> &copies, std::vector<CombinationDescription> &combinations) const;
  absl::Status add(absl::StatusOr<std::unique_ptr<Move>> move) {
    if (move.ok())
      parts.push_back({*std::move(move), nullptr});
    return move.status();
  }
  /// What a transport has prepared.
  absl::Status add(absl::StatusOr<std::unique_ptr<DeviceWork>> work) {
    if (work.ok())
      parts.push_back({nullptr, *std::move(work)});
    return work.status();
  }
  absl::Status createEvents();
  /// Does what is left, as far as nobody has to be waited for unless `waits`.
  absl::Status proceed(bool waits);
  /// Whether the ranks whose memory it reads have started this run.
  bool haveStarted() const;
  /// Returns when `isDone` holds, which depends on others. Meanwhile whatever is under way goes on.
  absl::Status waitUntil(absl::FunctionRef<bool()> isDone) const;

  Rendezvous &rendezvous;
  OpenChannels &open;
  int rank;
  ChannelDescription description;
  std::shared_ptr<std::byte> staging;
  int64_t stagingBytes = 0;
  /// A move of this rank, or messages of a transport.
  struct Part {
    std::unique_ptr<Move> move;
    std::unique_ptr<DeviceWork> work;
  };
  std::vector<Part> parts; ///< One after another.
  size_t next = 0;         ///< The part that is done next, or is under way.
  bool isUnderWay = false;
  absl::Status problem; ///< What `progress` has found.

  std::shared_ptr<Neighbours> neighbours;              ///< Null: all others get messages.
  size_t number = 0;                                   ///< As they know it.
  std::vector<const ChannelCounts *> sources, readers; ///< Of those whose memory this rank reads, and that read its.
  size_t firstNear = 0;                                ///< The part with what is read.
  uint64_t runs = 0;
  std::unique_ptr<DeviceEvent> ready, complete;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGECHANNEL_H
