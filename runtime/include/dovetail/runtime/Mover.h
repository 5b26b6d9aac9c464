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

#include "dovetail/runtime/MemoryView.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <memory>
#include <vector>

namespace dovetail::runtime {

class Combination;
class Device;
class DeviceStream;

/// What a rank does comes in two lanes: its steps, and the moves of its exchanges. Within a lane, everything is done in
/// order; marks put lanes in order with one another. Where work is done at once, as on CPUs, marks mean nothing.
enum class Lane { Steps, Moves };

/// A point in a lane. May be destroyed on any thread, after whatever made it.
class Mark {
public:
  virtual ~Mark() = default;
};

/// Copies, combinations or a whole recording, to be done any number of times.
class Move {
public:
  virtual ~Move() = default;
  virtual absl::Status run() = 0;
};

/// Belongs to one rank, and is used on its thread. Nothing but `createMark` and `prepare` allocates.
class Mover {
public:
  virtual ~Mover() = default;

  /// The device whose memory it moves, and the stream that is a lane there; null on CPUs.
  virtual Device *getDevice() { return nullptr; }
  virtual DeviceStream *getStream(Lane) { return nullptr; }

  virtual absl::StatusOr<std::unique_ptr<Mark>> createMark() = 0;
  /// Puts a mark of this mover after all that is in `lane` so far.
  virtual absl::Status mark(Mark &mark, Lane lane) = 0;
  /// Lets what comes into `lane` from now on begin after the mark, which may be another rank's.
  virtual absl::Status wait(const Mark &mark, Lane lane) = 0;

  /// Prepares moves in the lane of that name: the copies in any order, then the combinations one after another.
  /// `target` and `source` are the data of the views that these were made for; the source may be another rank's.
  virtual absl::StatusOr<std::unique_ptr<Move>> prepare(std::byte *target, const std::byte *source,
                                                        std::vector<BoxPair> copies,
                                                        std::vector<Combination> combinations) = 0;

  /// Whether what comes into lanes can be recorded, to be done later as a whole.
  virtual bool canRecord() const { return false; }
  /// Until `endRecording`, what comes into the lane of steps is recorded and not done. So is what comes into any other
  /// lane, also of other ranks, after a mark of a recorded one; the lane of steps must have waited for all of that at
  /// the end. Whoever takes part must do so one at a time. Errors: FAILED_PRECONDITION where nothing can be recorded.
  virtual absl::Status beginRecording() {
    return absl::FailedPreconditionError("what is done at once cannot be recorded");
  }
  /// What was recorded, to be done in the lane of steps. When `beginRecording` succeeded, this must be called.
  virtual absl::StatusOr<std::unique_ptr<Move>> endRecording() {
    return absl::FailedPreconditionError("what is done at once cannot be recorded");
  }
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_MOVER_H
