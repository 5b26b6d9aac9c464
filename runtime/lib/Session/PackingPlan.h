//===- PackingPlan.h - When weights are packed ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the order in which the prologue makes weights and library calls pack them, so that of what is packed no more
// than a few pieces are in memory as they were.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_PACKINGPLAN_H
#define DOVETAIL_RUNTIME_SESSION_PACKINGPLAN_H

#include "dovetail/runtime/RankMemory.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dovetail::runtime {

struct PackingPlan {
  /// A step of the plan that packs its weights.
  struct Pack {
    size_t step;
    std::optional<uint32_t> released; ///< A buffer, mapped or transient, that nothing reads any more then.
  };
  /// What happens between two steps of the prologue, in this order.
  struct Pause {
    std::vector<uint32_t> released; ///< Mapped constants that nothing reads any more.
    std::vector<Pack> packs;
  };
  /// Before the first step of the prologue, after the first, and so on; then another one after the last, in which
  /// nothing is read of transient buffers any more.
  std::vector<Pause> pauses;
  /// For each step of the prologue: whether it is needed whoever packs, or else for which packing steps of the plan.
  struct Purpose {
    bool always = false;
    std::vector<size_t> packs; ///< Ascending.
  };
  std::vector<Purpose> purposes;
  /// For each buffer: whether its memory is needed in the prologue only, from the step that writes it to `lastUses`.
  std::vector<bool> transient;
  /// For each buffer: the last step of the prologue after which it is read, packing included; -1 if none does.
  std::vector<int64_t> lastUses;
  /// For each buffer: whether steps of a run read it, other than to pack it when the session starts.
  std::vector<bool> readInRuns;

  /// Of what the prologue makes and steps pack, at most `batchBytes` are in memory at once, unless one piece is larger.
  /// `memory` needs no addresses.
  static PackingPlan create(const RankMemory &memory, int64_t batchBytes);
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_PACKINGPLAN_H
