//===- Mover.h - Copies between memories of ranks ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how channels move elements and keep these moves in order with a rank's steps, wherever its memory lies.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_MOVER_H
#define DOVETAIL_RUNTIME_MOVER_H

#include "dovetail/runtime/BoxCopy.h"
#include "dovetail/runtime/Stream.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <memory>
#include <vector>

namespace dovetail::runtime {

/// What a rank does comes in two streams: its steps, and the moves of its exchanges. Where work is done at once, as on
/// CPUs, events mean nothing.
enum class StreamKind { Steps, Moves };

/// Copies, combinations or a whole recording, to be done any number of times.
class Move {
public:
  virtual ~Move() = default;
  virtual absl::Status run() = 0;
};

/// Belongs to one rank, and is used on its thread. What it returns may be destroyed on any thread, and after it.
class Mover {
public:
  virtual ~Mover() = default;

  virtual DeviceStream &getStream(StreamKind kind) = 0;
  /// Whether work is done when the call that issues it returns.
  virtual bool doesAtOnce() const { return false; }
  /// An event for these streams; streams of other ranks may wait for it, too.
  virtual absl::StatusOr<std::unique_ptr<DeviceEvent>> createEvent() = 0;
  /// Memory of the rank, null for no bytes. Errors: RESOURCE_EXHAUSTED.
  virtual absl::StatusOr<std::shared_ptr<std::byte>> allocate(int64_t bytes) = 0;

  /// Prepares what `run` issues to the stream of moves: the copies in any order, then the combinations one after
  /// another. Sources may be memory of other ranks.
  virtual absl::StatusOr<std::unique_ptr<Move>> prepare(std::vector<StridedBox> copies,
                                                        std::vector<CombinationDescription> combinations) = 0;

  /// Whether what is issued to streams can be recorded, to be done later as a whole.
  virtual bool canRecord() const { return false; }
  /// Until `endRecording`, what is issued to the stream of steps is recorded and not done. So is what is issued to any
  /// other stream, also of other ranks, after an event of a recorded one; the stream of steps must have waited for all
  /// of that at the end. Whoever takes part must do so one at a time. Errors: FAILED_PRECONDITION where nothing can be
  /// recorded.
  virtual absl::Status beginRecording() {
    return absl::FailedPreconditionError("work that is done immediately cannot be recorded");
  }
  /// What was recorded, to be issued to the stream of steps. When `beginRecording` succeeded, this must be called.
  virtual absl::StatusOr<std::unique_ptr<Move>> endRecording() {
    return absl::FailedPreconditionError("work that is done immediately cannot be recorded");
  }
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_MOVER_H
