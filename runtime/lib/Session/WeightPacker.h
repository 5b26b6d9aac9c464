//===- WeightPacker.h - Weights that ranks of a process pack ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which rank of a process packs the weights of a step, what the others do meanwhile, and where they lie.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_WEIGHTPACKER_H
#define DOVETAIL_RUNTIME_SESSION_WEIGHTPACKER_H

#include "../Program/PackedWeights.h"
#include "Backend.h"
#include "PackingPlan.h"
#include "WaitCheck.h"

#include "absl/functional/function_ref.h"

#include <memory>
#include <vector>

namespace dovetail::runtime {

/// Has the steps of one rank pack their weights, but for those that other ranks of the process pack for all. Used on
/// the rank's thread. All that it is made of outlives it.
class WeightPacker {
public:
  WeightPacker(const Program &program, const RankMemory &memory, Communicator &communicator, Backend &backend,
               const std::vector<PreparedStep> &steps)
      : program(program), memory(memory), communicator(communicator), backend(backend), steps(steps),
        shared(steps.size()), claimed(steps.size(), false) {}
  WeightPacker(const WeightPacker &) = delete;
  WeightPacker &operator=(const WeightPacker &) = delete;
  ~WeightPacker() { giveUp(); }

  /// Gives each step its memory for packed weights. The result is that of weights which this rank packs for itself, and
  /// must outlive the steps. Called once, before all else. Errors: RESOURCE_EXHAUSTED.
  absl::StatusOr<std::shared_ptr<std::byte>> allocate();

  /// Whether this rank is to pack the weights of `step`: they are its own, or nobody else has begun to, which nobody
  /// does then until `pack` or `giveUp`. `again`: its own are packed already.
  bool packs(size_t step, bool again);
  /// Packs what this rank is to pack in a pause of the prologue, asks `check` for what a step reads before that, and
  /// has `release` give back buffers that nothing reads any more. Errors: those of steps and of `check`.
  absl::Status pack(const PackingPlan::Pause &pause, absl::FunctionRef<absl::Status(const StepInfo &)> check,
                    absl::FunctionRef<void(uint32_t buffer)> release, bool again);
  /// Lets others do what this rank is to pack and has not packed.
  void giveUp();
  /// Waits for what others pack. False if one of them gave up. Errors: those of the communicator.
  absl::StatusOr<bool> waitForOthers();

private:
  const Program &program;
  const RankMemory &memory;
  Communicator &communicator;
  Backend &backend;
  const std::vector<PreparedStep> &steps;
  /// Of steps that pack weights as other ranks of the process may, too; null for others.
  std::vector<std::shared_ptr<PackedWeights::Entry>> shared;
  std::vector<bool> claimed; ///< For each step, whether this rank is about to pack.
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_WEIGHTPACKER_H
