//===- Feedback.h - Outputs that are inputs of the next run -----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how a rank gives inputs what the last run has left for them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_FEEDBACK_H
#define DOVETAIL_RUNTIME_SESSION_FEEDBACK_H

#include "Backend.h"

#include "dovetail/runtime/RankMemory.h"

namespace dovetail::runtime {

/// One input that is fed back, and needs a copy: what it is to be may also lie where the input does.
struct FeedbackCopy {
  uint32_t input; ///< Its number in the plan.
  /// Whether it goes by memory of its own, as inputs take each other's places: these are copied there first of all.
  bool isStaged;
};
/// In an order in which none writes what a later one reads.
std::vector<FeedbackCopy> orderFeedback(const Plan &plan);
/// Bytes of such memory on a rank. `memory` needs no addresses.
int64_t stagedBytes(const RankMemory &memory);

/// These copies, on one rank.
class Feedback {
public:
  /// `memory` has its addresses, and `uploads` are those of the plan's inputs; both outlive this.
  absl::Status prepare(const RankMemory &memory, Backend &backend,
                       absl::Span<const std::unique_ptr<PortTransfer>> uploads);
  absl::Status run();

private:
  struct Copy {
    PortTransfer *toInput;
    const MemoryView *source; ///< What the last run has left.
    layout::Box box;
    std::unique_ptr<PortTransfer> toStage; ///< Null if it is not staged.
    MemoryView stage;
    std::shared_ptr<std::byte> owner;
  };
  std::vector<Copy> copies;
  bool onDevice = false;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_FEEDBACK_H
