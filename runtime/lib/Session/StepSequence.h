//===- StepSequence.h - The order of a run's steps --------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which step of a run comes next, where conditions decide about it, and what of a run is recorded: the steps
// between boundaries, each time as a whole.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_STEPSEQUENCE_H
#define DOVETAIL_RUNTIME_SESSION_STEPSEQUENCE_H

#include "Backend.h"
#include "WaitCheck.h"

#include "dovetail/runtime/RankMemory.h"

#include "absl/functional/function_ref.h"

#include <memory>
#include <vector>

namespace dovetail::runtime {

/// The steps of a run, on one rank.
class StepSequence {
public:
  explicit StepSequence(Communicator &communicator) : communicator(communicator) {}

  /// `memory` has its addresses; it, `backend` and `steps` outlive this. `records`: from the second time on, steps
  /// between boundaries are recorded and replayed, where the backend can.
  absl::Status prepare(const RankMemory &memory, Backend &backend, const std::vector<PreparedStep> &steps,
                       bool records);
  /// Issues a run with `issue`, which does the step at a position in the list. It is not called for what is replayed.
  absl::Status run(absl::FunctionRef<absl::Status(size_t)> issue);

private:
  /// What a repeat or choice depends on, where that is decided.
  struct Condition {
    const std::byte *value = nullptr;       ///< Where kernels write it, or of what is held.
    std::unique_ptr<PortTransfer> download; ///< Null where the host has the memory of kernels.
    std::unique_ptr<std::byte> held;
    MemoryView view;
    std::vector<layout::Box> boxes;
  };
  /// Steps that run equally often.
  struct Segment {
    size_t begin, end;
    int64_t runs = 0;
    std::unique_ptr<Move> recording;
  };
  /// Which step comes after one that says how often others run.
  absl::StatusOr<size_t> pass(size_t position);
  absl::Status runSegment(Segment &segment, absl::FunctionRef<absl::Status(size_t)> issue);

  Communicator &communicator;
  Backend *backend = nullptr;
  const std::vector<PreparedStep> *steps = nullptr;
  bool records = false;
  std::vector<Segment> segments;
  std::vector<size_t> segmentOf;     ///< Of each step that begins one.
  std::vector<Condition> conditions; ///< Of each step; of rank 0 only.
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_STEPSEQUENCE_H
