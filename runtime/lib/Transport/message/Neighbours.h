//===- Neighbours.h - Ranks that read each other's memory ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how ranks that are processes of one machine agree on reading the sources of exchanges where they are, as
// threads of one process do, and tell each other when that is.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_NEIGHBOURS_H
#define DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_NEIGHBOURS_H

#include "../rendezvous/Rendezvous.h"
#include "SharedSegment.h"

#include "dovetail/runtime/Communicator.h"

#include <atomic>
#include <map>
#include <memory>
#include <vector>

namespace dovetail::runtime {

/// How often a rank has done something in a channel, which others wait for: each on a cache line of its own.
struct ChannelCounts {
  alignas(64) std::atomic<uint64_t> started;  ///< The sources were complete.
  alignas(64) std::atomic<uint64_t> finished; ///< Nothing of others is read any more.
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "other processes look at it");

/// The ranks of this machine, this one included, if all of them can read each other's memory, for channels that are
/// known when they agree on that.
class Neighbours {
public:
  /// Null where there are none, or one cannot share its memory. All ranks call it. `owned` is memory in which sources
  /// of `channels` may be, whose pages then are shared: `mostBytes` of them at most. Errors: those that ended the run.
  static absl::StatusOr<std::unique_ptr<Neighbours>> find(Rendezvous &rendezvous, int rank,
                                                          const std::vector<ByteRange> &owned,
                                                          const std::vector<const ChannelDescription *> &channels,
                                                          int64_t mostBytes);

  bool has(int rank) const { return views.contains(rank) || rank == own; }
  int count() const { return static_cast<int>(views.size()) + 1; }
  int64_t bytes() const { return segment->bytes(); } ///< That this rank shares.
  /// Whether `source` has the sources of channel `channel`, by its number, where others read them.
  bool shares(int source, size_t channel) const;
  bool allShare(size_t channel) const;
  /// The source of a move of another rank that shares the channel; its elements are of type `type`.
  MemoryView sourceOf(int rank, size_t channel, size_t move, ElementType type) const;

  ChannelCounts &counts(size_t channel) const;
  const ChannelCounts &countsOf(int rank, size_t channel) const;

private:
  Neighbours(int rank) : own(rank) {}
  absl::Status share(const std::vector<ByteRange> &owned, const std::vector<const ChannelDescription *> &channels,
                     const std::map<int, std::string> &sharers, int64_t mostBytes);
  const std::byte *notesOf(int rank) const { return rank == own ? segment->notes() : views.at(rank)->data(); }

  int own;
  std::unique_ptr<SharedSegment> segment;
  std::map<int, std::unique_ptr<SharedView>> views;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_TRANSPORT_MESSAGE_NEIGHBOURS_H
