//===- MessagePlan.h - What ranks send each other ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines where in memory the elements of messages and collectives lie, between ranks that do not see each other's.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGEPLAN_H
#define DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGEPLAN_H

#include "dovetail/runtime/Communicator.h"
#include "dovetail/runtime/Transport.h"

#include "absl/functional/function_ref.h"

namespace dovetail::runtime {

/// Whether `box` lies in `memory` as in a message.
bool isMessage(const MemoryView &memory, const layout::Box &box, const MemoryFormat &format);

/// What a rank sends and receives in an exchange, and where that is: in its place, or in memory for messages. What goes
/// between two ranks in several moves is one message; of a single move each box is.
class StagedMessages {
public:
  /// A box in a message, and where it is in the memory for messages; negative: it is where it belongs.
  struct Part {
    const ChannelMove *move;
    int peer;
    layout::Box box;
    MemoryView view = {}; ///< Without its address, until that is known.
    int64_t offset = -1;
  };

  /// Needs no addresses. The channel's moves have to stay where they are. Nothing is sent to ranks that read this one's
  /// memory, and received from those whose memory it reads.
  explicit StagedMessages(
      const ChannelDescription &channel, absl::FunctionRef<bool(int peer)> readsOwn = [](int) { return false; },
      absl::FunctionRef<bool(int peer)> isRead = [](int) { return false; });

  /// Gives parts their addresses, with memory for messages of `bytes` bytes.
  void bind(std::byte *memory);
  /// The messages that consist of `parts`, `sends` or `receives`, which have addresses.
  std::vector<Message> listMessages(const std::vector<Part> &parts) const;

private:
  bool joins; ///< All that goes between two ranks is one message.

public:
  /// In the order of messages. For each pair of ranks both have the same boxes in the same order.
  std::vector<Part> sends, receives;
  int64_t bytes = 0; ///< Of the memory for messages.

private:
  std::vector<Part> list(const std::vector<ChannelMove> &moves, bool areSent,
                         absl::FunctionRef<bool(int peer)> isNear) const;
  void place(std::vector<Part> &parts, bool areSent);
  /// Behind the last of the parts that are one message with part `first`.
  size_t endOfMessage(const std::vector<Part> &parts, size_t first) const;
};

/// The parts of a packed gather. Each member of the group has a block of memory with its parts of all moves, one after
/// another; all blocks are as large as the largest, in the order of members.
class PackedBlocks {
public:
  /// A part, and where it is in the memory for all blocks.
  struct Part {
    const ChannelMove *move;
    int member;
    layout::Box box;
    MemoryView view; ///< Without its address, until that is known.
    int64_t offset;
  };

  /// Needs no addresses. The channel's moves have to stay where they are.
  explicit PackedBlocks(const ChannelDescription &channel);

  int64_t bytes() const { return blockBytes * numMembers; }
  /// Gives parts their addresses, with memory of `bytes()` bytes.
  void bind(std::byte *memory);
  /// What gathers the blocks, that of this rank among them, which is the member of number `own`.
  Collective describeCollective(std::byte *memory, int own) const;

  /// But for empty ones.
  std::vector<Part> parts;
  int64_t blockBytes = 0;

private:
  int64_t numMembers;
};

/// The collective of a channel's kind on this rank, whose group has something to do; not of a packed gather.
Collective describeCollective(const ChannelDescription &channel, int rank);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_MESSAGEPLAN_H
