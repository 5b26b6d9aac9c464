//===- StepExecutor.h - Steps ready to run ----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what a session keeps for each step: everything worked out beforehand, so that running it allocates nothing.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_STEPEXECUTOR_H
#define DOVETAIL_RUNTIME_SESSION_STEPEXECUTOR_H

#include "../Backend/cpu/ThreadPool.h"

#include "dovetail/runtime/Communicator.h"
#include "dovetail/runtime/Program.h"
#include "dovetail/runtime/RankMemory.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include <memory>

namespace dovetail::runtime {

/// What steps see of their session.
struct SessionContext : RankMemory {
  SessionContext(const Program &program, Communicator &communicator, ThreadPool &threads)
      : RankMemory{program.getPlan(), communicator.rank()}, program(program), communicator(communicator),
        threads(threads) {}

  const Program &program;
  Communicator &communicator;
  ThreadPool &threads;
};

class StepExecutor {
public:
  virtual ~StepExecutor() = default;
  /// Bytes of memory that the step needs while it runs.
  virtual int64_t scratchBytes() const { return 0; }
  /// Called once, when all memory has been allocated.
  virtual absl::Status bind(std::byte *scratch) = 0;
  /// Called once after the prologue: everything that depends on constants alone.
  virtual absl::Status pack() { return absl::OkStatus(); }
  /// Bytes kept by `pack`.
  virtual int64_t packedBytes() const { return 0; }
  virtual absl::Status run() = 0;
};

/// Exchanges are also told when their source must not be read any more.
class ExchangeExecutor : public StepExecutor {
public:
  /// The buffers that other ranks read; none if they read nothing of this rank.
  virtual std::vector<uint32_t> readByOthers() const = 0;
  /// Returns when other ranks are done with this rank's memory.
  virtual absl::Status release() = 0;
};

using StepExecutorOr = absl::StatusOr<std::unique_ptr<StepExecutor>>;

/// The factories return null when the rank has nothing to do. `inPrologue`: the step runs once, so nothing is packed
/// for it.
StepExecutorOr createKernelStep(SessionContext &context, const StepInfo &step);
StepExecutorOr createLibraryStep(SessionContext &context, const StepInfo &step, bool inPrologue);
absl::StatusOr<std::unique_ptr<ExchangeExecutor>> createExchangeStep(SessionContext &context, const StepInfo &step);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_STEPEXECUTOR_H
