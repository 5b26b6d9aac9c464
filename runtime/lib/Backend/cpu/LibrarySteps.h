//===- LibrarySteps.h - Steps done by oneDNN --------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the steps that oneDNN does, and how they keep to the memory that the plan allows them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYSTEPS_H
#define DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYSTEPS_H

#include "../../Session/StepExecutor.h"
#include "../../Threads/ThreadPool.h"
#include "CallBudget.h"

namespace dovetail::runtime {

/// A library call on one rank: first planned, by arithmetic on boxes alone, then created.
class LibraryStep : public StepExecutor {
public:
  /// Finds out what is copied around the call, and to where. Errors: DATA_LOSS, UNIMPLEMENTED.
  virtual absl::Status plan() = 0;
  /// Scratch memory for these copies, once that is planned.
  virtual int64_t stagingBytes() const = 0;
  /// Chooses the library's implementation, of those that keep to `budget`. Errors: RESOURCE_EXHAUSTED, UNIMPLEMENTED.
  virtual absl::Status create(CallBudget &budget) = 0;

  /// `plan`, then `create` with what `memory` allows `rank`.
  absl::Status prepare(const CallMemory &memory, int rank, int threads);
  int64_t scratchBytes() const final { return scratch; }
  int64_t packedBytes() const final { return packed; }

private:
  int64_t scratch = 0, packed = 0;
};

/// A library step of any kind, on a rank with these threads, which outlive it. Null when the rank has nothing to do.
/// `inPrologue`: the step runs once, so nothing is packed for it.
StepExecutorOr createLibraryStep(const RankMemory &context, const StepInfo &step, bool inPrologue, ThreadPool &threads);

/// Null when the rank has nothing to do. Neither planned nor created. `threads` is null where it will not run.
std::unique_ptr<LibraryStep> makeConvolution(const RankMemory &context, const ConvolutionCall &call, bool inPrologue,
                                             ThreadPool *threads);
std::unique_ptr<LibraryStep> makeMatMul(const RankMemory &context, const MatMulCall &call, bool inPrologue);
std::unique_ptr<LibraryStep> makePool(const RankMemory &context, const PoolCall &call);
StepExecutorOr createReorder(const RankMemory &context, const ReorderCall &call);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYSTEPS_H
