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

/// A library call on one rank, or the part of it that one thread does: first planned, by arithmetic on boxes alone,
/// then created. To be run by one thread at a time, any one.
class LibraryStep : public StepExecutor {
public:
  /// Finds out what is copied around the call, and to where. Errors: DATA_LOSS, UNIMPLEMENTED.
  virtual absl::Status plan() = 0;
  /// Scratch memory for these copies, once that is planned.
  virtual int64_t stagingBytes() const = 0;
  /// Chooses the library's implementation, of those that keep to `budget`. Errors: RESOURCE_EXHAUSTED, UNIMPLEMENTED.
  virtual absl::Status create(CallBudget &budget) = 0;

  /// Whether nothing but an implementation that the library is slow with was found.
  virtual bool isSlow() const { return false; }
  /// To be called between `plan` and `create`: whether `first`, another part of the same call, which is created before,
  /// packs all weights that this one needs. Then these are used.
  virtual bool sharesWeights(LibraryStep & /*first*/) { return false; }

  /// `create` with so many bytes.
  absl::Status prepare(int64_t packedBytes, int64_t scratchBytes);
  int64_t scratchBytes() const final { return scratch; }
  int64_t scratchUse() const final { return used; }
  int64_t packedBytes() const final { return packed; }

private:
  int64_t scratch = 0, used = 0, packed = 0;
};

/// A library step of any kind, which the threads of `pool` divide as the plan says; it outlives them. Null when the
/// rank has nothing to do. `inPrologue`: the step runs once, so nothing is packed for it. Where the library has nothing
/// that keeps to the plan's bounds, the step takes more memory, as its `excessBytes` say.
StepExecutorOr createLibraryStep(const RankMemory &context, const StepInfo &step, bool inPrologue, ThreadPool &pool);

/// The part of a call that is `loops`, iterations of the rank's with some of the output. Neither planned nor created.
/// `threads` divide what kernels of the runtime's own do; null where it will not run.
std::unique_ptr<LibraryStep> makeConvolution(const RankMemory &context, const ConvolutionCall &call,
                                             const layout::Box &loops, WeightUse use, ThreadPool *threads);
std::unique_ptr<LibraryStep> makeMatMul(const RankMemory &context, const MatMulCall &call, const layout::Box &loops,
                                        WeightUse use);
std::unique_ptr<LibraryStep> makePool(const RankMemory &context, const PoolCall &call, const layout::Box &loops);
std::unique_ptr<LibraryStep> makeAttention(const RankMemory &context, const AttentionCall &call,
                                           const layout::Box &loops, ThreadPool *threads);
StepExecutorOr createReorder(const RankMemory &context, const ReorderCall &call, ThreadPool &pool);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_CPU_LIBRARYSTEPS_H
