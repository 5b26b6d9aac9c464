//===- Communicator.h - Exchanges between ranks -----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what a session needs from whatever connects the ranks of a program: `LocalGroup` if they are threads of one
// process, `ProcessCommunicator` if each is a process.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_COMMUNICATOR_H
#define DOVETAIL_RUNTIME_COMMUNICATOR_H

#include "dovetail/Layout/ExchangeKind.h"
#include "dovetail/runtime/MemoryView.h"
#include "dovetail/runtime/Mover.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <memory>
#include <string>
#include <vector>

namespace dovetail::runtime {

/// `error` as one of `rank`, unless its message says already whose it is.
inline absl::Status ofRank(int rank, const absl::Status &error) {
  if (absl::StartsWith(error.message(), "rank "))
    return error;
  return absl::Status(error.code(), absl::StrCat("rank ", rank, ": ", error.message()));
}

/// What one rank has to do with a move of an exchange. The memories stay where they are as long as the channel lives.
struct ChannelMove {
  MemoryView source, target;
  /// What this rank sends and receives. For each pair of ranks both list the same boxes in the same order.
  std::vector<layout::Transfer> receives, sends;
  /// What this rank takes from its own source. Nothing to do when source and target are the same memory.
  std::vector<layout::Box> local;
  /// Not `None`: received and own boxes that are equal are contributions to be combined, in ascending order of their
  /// source.
  layout::ReductionKind reduction = layout::ReductionKind::None;
  /// How elements lie in messages.
  MemoryFormat format;
  /// Of each member of the group, where a collective does the exchange: the part that is its own.
  std::vector<layout::Box> parts;

  bool inPlace() const { return source.data == target.data; }
};

/// One exchange as one rank sees it.
struct ChannelDescription {
  std::string name; ///< As in messages.
  /// The same on all ranks. None writes what another reads or writes.
  std::vector<ChannelMove> moves;
  /// A collective that may take the place of messages, and this rank's group in it, with the parts of the first move.
  /// All but `PackedGather` are of one move.
  layout::ExchangeKind kind = layout::ExchangeKind::Messages;
  layout::CollectiveGroup group;
  /// Moves the elements that this rank gets. Outlives the channel.
  Mover *mover = nullptr;
};

/// Bytes of memory into which messages of `channel` are packed where ranks are processes. Those that transports with
/// collectives that reduce do not need are counted. Needs no addresses.
int64_t messageBytes(const ChannelDescription &channel);

/// A prepared exchange. Calls must come in the order start, finish, join, fence for each run, on the rank's thread;
/// they allocate nothing. They order work in the mover's streams; where that is done at once, what they say holds when
/// they return. Errors: those that ended the run, here or on another rank.
class Channel {
public:
  virtual ~Channel() = default;
  /// With the steps up to now, this rank's source is complete, and its target may be written.
  virtual absl::Status start() = 0;
  /// Moves what belongs into the target.
  virtual absl::Status finish() = 0;
  /// Steps from now on find the target complete.
  virtual absl::Status join() = 0;
  /// Steps from now on come when no other rank reads the source any more.
  virtual absl::Status fence() = 0;
};

/// Connects one rank with the others, for one session. Used by the rank's thread only, except for `abort`.
class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Prepares an exchange. Every rank opens the same channels in the same order.
  virtual absl::StatusOr<std::unique_ptr<Channel>> open(ChannelDescription description) = 0;
  /// Keeps memory that others may read until no rank can any more, even if this one fails and gives it up.
  virtual void keep(std::shared_ptr<void> memory) = 0;
  /// Says that sources of moves are in this memory of the host, whose whole pages belong to the caller, and are not
  /// used until `connect` has returned: they stay at their addresses and keep their contents, but may become pages that
  /// other processes read, too.
  virtual void offer(std::byte * /*memory*/, int64_t /*bytes*/) {}
  /// Called when this rank has opened its channels, which may be used from then on. Where ranks are processes, all of
  /// them may do so again later, with more channels.
  virtual absl::Status connect() = 0;
  /// Bytes of memory for messages that `connect` has allocated.
  virtual int64_t messageBytes() const { return 0; }
  /// Records what `issue` issues to the streams of `mover`: steps and exchanges that follow each other in a run. All
  /// ranks call it for the same ones, and all run the results in the same order, as each may be one for all of them. It
  /// is destroyed when none of its runs is under way any more. Null if the mover cannot record; then `issue` was not
  /// called.
  virtual absl::StatusOr<std::unique_ptr<Move>> record(Mover &mover, absl::FunctionRef<absl::Status()> issue) = 0;
  /// What rank 0 gives for `decision`, on all ranks, which all call it. Errors: those that ended the run.
  virtual absl::StatusOr<bool> decide(bool decision) = 0;
  /// Says what this rank is about to do, as messages about a rank that hangs name it. `name` must outlive the
  /// communicator.
  virtual void enterStep(const char *name) = 0;
  /// Says whether this rank has something to do, so that others expect progress of it. Thread-safe.
  virtual void setBusy(bool busy) = 0;
  /// Whether the run has ended with an error. Thread-safe.
  virtual absl::Status state() const = 0;
  /// Ends the run on all ranks with an error of this one. Returns the error that ended it, which is another rank's if
  /// that came first. Thread-safe.
  virtual absl::Status abort(const absl::Status &status) = 0;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_COMMUNICATOR_H
