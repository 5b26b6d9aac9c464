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

#include "dovetail/runtime/CallReport.h"
#include "dovetail/runtime/Communicator.h"
#include "dovetail/runtime/RankMemory.h"
#include "dovetail/runtime/Schedule.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <memory>
#include <vector>

namespace dovetail::runtime {

class StepExecutor {
public:
  virtual ~StepExecutor() = default;
  /// Bytes of memory that the step needs while it runs.
  virtual int64_t scratchBytes() const { return 0; }
  /// How many of them it takes, as the library turns out to need; the rest is never touched.
  virtual int64_t scratchUse() const { return scratchBytes(); }
  /// Bytes of memory for what `pack` makes, which is kept.
  virtual int64_t packedBytes() const { return 0; }
  /// How many of them it takes.
  virtual int64_t packedUse() const { return packedBytes(); }
  /// How many bytes of both come on top of the plan's bounds, as the library has nothing that keeps to them.
  virtual int64_t excessBytes() const { return 0; }
  /// What `pack` makes on the CPU: executors of a program whose keys are equal make the same bytes, on all ranks. Empty
  /// where `pack` makes nothing, or what only this executor may use.
  virtual std::string packedKey() const { return {}; }
  /// Called once, when all memory has been allocated, before `bind`: that for what is packed.
  virtual void setPackedMemory(std::byte *) {}
  /// Called once, when all memory has been allocated.
  virtual absl::Status bind(std::byte *scratch) = 0;
  /// Called once, after the prologue has made what it reads, unless another executor of the same key has done it:
  /// everything that depends on constants alone.
  virtual absl::Status pack() { return absl::OkStatus(); }
  virtual absl::Status run() = 0;
  /// How much of the rank's iterations the last run went through: 1 is all.
  virtual double share() const { return 1; }
  /// What does a library call, once it is created: the library's name of its implementation, or that of the runtime's
  /// own kernels. Empty for all other steps.
  virtual std::string implementation() const { return {}; }
  /// How a device's library does it. To be called after `pack`.
  virtual LibraryCallReport report() const { return {}; }
  /// Whether the library has nothing but its reference implementation for it, which is slower by factors.
  virtual bool isReference() const { return false; }
};

/// Exchanges may still be under way when `run` returns, and are also told when their source must not be read any more.
class ExchangeExecutor : public StepExecutor {
public:
  /// Lets steps that come from now on find the target complete, and the source not needed by this rank any more.
  virtual absl::Status join() = 0;
  /// The same for what other ranks do with this rank's memory: steps that come from now on may write to it.
  virtual absl::Status fence() = 0;
  /// The buffers that other ranks read; none if they read nothing of this rank. Known when it is bound.
  virtual std::vector<uint32_t> readByOthers() const = 0;
};

using StepExecutorOr = absl::StatusOr<std::unique_ptr<StepExecutor>>;

/// `error` as one of a step on `rank`. What a device reports later on says already where it happened.
inline absl::Status ofStep(int rank, const StepInfo &step, const absl::Status &error) {
  if (absl::StartsWith(error.message(), absl::StrCat("rank ", rank, ", ")))
    return error;
  return absl::Status(error.code(),
                      absl::StrCat("rank ", rank, ", ", step.kind(), " '", step.title(), "': ", error.message()));
}

std::unique_ptr<ExchangeExecutor> createExchangeStep(const RankMemory &memory, const StepInfo &step,
                                                     Communicator &communicator, Mover &mover);

/// Waits for exchanges to be complete on this rank, and for other ranks to have read the sources of others.
std::unique_ptr<StepExecutor> createWaitStep(std::vector<ExchangeExecutor *> complete,
                                             std::vector<ExchangeExecutor *> read);

/// An exchange of one move that happens once: all ranks call it at the same time, between runs.
absl::Status exchangeOnce(Communicator &communicator, Mover &mover, const std::string &name, ChannelMove move);
/// Bytes of memory into which the messages of an exchange are packed where ranks are processes. `memory` needs no
/// addresses; `schedulers` are the call's (`createSchedulers`).
int64_t messageBytes(const RankMemory &memory, const ExchangeCall &call, const std::vector<MoveScheduler> &schedulers);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_STEPEXECUTOR_H
