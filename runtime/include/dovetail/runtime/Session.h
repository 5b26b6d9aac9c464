//===- Session.h - A program on one rank ------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines a session: a program made ready to run on one rank.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_SESSION_H
#define DOVETAIL_RUNTIME_SESSION_H

#include "dovetail/runtime/Communicator.h"
#include "dovetail/runtime/MemoryView.h"
#include "dovetail/runtime/Program.h"

#include "dovetail/runtime/CallReport.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dovetail::runtime {

/// How a rank is to run.
struct SessionOptions {
  int threads = 1;    ///< Threads of this rank, used by kernels and library calls on the CPU.
  bool trace = false; ///< Whether to record when each step begins and ends. On devices steps then wait for each other.
  int device = -1; ///< The device to use, of those that the program's plug-in has; negative: ranks share them evenly.
  bool autotune = false; ///< Whether to measure the algorithms of a device's libraries when the session starts.
  bool explain = false;  ///< Whether to collect what `CallReport` says of devices, which takes time at the start.
  /// Set by another thread that gives up the run, if there is one: steps that are left do nothing.
  const std::atomic<bool> *isGivenUp = nullptr;
  std::vector<int> processors = {}; ///< One for each thread to stay on, the first for that of the session; or none.
};

/// What a session uses of the machine. Buffers of a device's inputs and outputs in memory of the host come on top.
struct SessionStatistics {
  int64_t arenaBytes = 0;      ///< Values and scratch memory, shared by liveness.
  int64_t scratchBytes = 0;    ///< Scratch memory of the step that needs most; a part of the arena.
  int64_t persistentBytes = 0; ///< Results of the prologue that runs read.
  int64_t startBytes = 0;      ///< Those that are only packed, while the prologue runs; the arena is not in use then.
  int64_t weightBytes = 0;     ///< Constants that runs read where the artifact is mapped.
  int64_t copiedBytes = 0;     ///< Constants copied into another memory format, or to a device.
  int64_t packedBytes = 0;     ///< Weights packed for library calls, at most. On CPUs ranks of a process share them.
  int64_t excessBytes = 0;     ///< Of all these, what library calls take beyond the plan's bounds.
  int64_t messageBytes = 0;    ///< Messages between processes that do not lie in memory as they are sent.

  int64_t totalBytes() const {
    return std::max(arenaBytes, startBytes) + persistentBytes + weightBytes + copiedBytes + packedBytes + messageBytes;
  }
  friend bool operator==(const SessionStatistics &, const SessionStatistics &) = default;
};

/// What a session on `rank` with so many threads uses, as the plan says, as a process of its own. Of memory for
/// messages it takes less where the transport has collectives that reduce, and none where ranks are threads. Errors:
/// DATA_LOSS, and UNIMPLEMENTED for calls that no machine has.
absl::StatusOr<SessionStatistics> estimateStatistics(const Plan &plan, int rank, int threads);

/// What a session uses of the machine, and when.
struct MemoryUse {
  SessionStatistics statistics; ///< But for messages between processes.
  /// Bytes of the arena's values and scratch memory that are in use while inputs are written, in each step, and while
  /// outputs are read. The arena is as large as the largest of these, or larger by gaps between them.
  std::vector<int64_t> aliveBytes;
};

/// The same as `estimateStatistics`, in the course of a run, for many ranks of a plan: those that have as much of all
/// that is in the arena share its layout. Not thread-safe.
class MemoryEstimator {
public:
  /// `plan` must outlive this.
  MemoryEstimator(const Plan &plan, int threads);
  MemoryEstimator(MemoryEstimator &&) noexcept;
  ~MemoryEstimator();

  absl::StatusOr<MemoryUse> estimate(int rank);
  /// With messages between processes.
  absl::StatusOr<SessionStatistics> estimateStatistics(int rank);

private:
  struct State;
  std::unique_ptr<State> state;
};

/// When a step of the last run began and ended.
struct StepTime {
  std::chrono::steady_clock::time_point begin, end;
  /// How much of the rank's iterations it went through: 1 is all. Of other processes it is not known.
  double share = 1;
};

/// A program made ready to run on one rank: its memory, kernels, library calls and exchanges. All of a session's
/// methods, creation included, must be called on one thread; `create` and `run` are collective.
class Session {
public:
  /// Allocates memory, prepares all steps and runs the prologue. `communicator` must outlive the session. Errors:
  /// RESOURCE_EXHAUSTED, UNIMPLEMENTED for library calls that this machine's library does not have, DATA_LOSS for plans
  /// whose steps need more than the rank holds or do not wait for exchanges, INVALID_ARGUMENT for constants with an
  /// index that is out of range, or what ended the run on another rank.
  static absl::StatusOr<std::unique_ptr<Session>> create(std::shared_ptr<const Program> program,
                                                         Communicator &communicator, SessionOptions options);
  virtual ~Session() = default;

  /// Runs all steps once. Inputs must have been written since the last run. Outputs are valid until an input is written
  /// or the next run. Errors end the run on all ranks.
  virtual absl::Status run() = 0;
  /// What this rank found wrong with the inputs of the last run, which was carried out: INVALID_ARGUMENT for an index
  /// that is out of range. It is then forgotten.
  virtual absl::Status takeReport() = 0;

  /// Copies boxes of an input from memory of the caller, which holds them: of the host or, with `onDevice`, of a device
  /// that `dlpackDevice` says. They lie in this rank's part, `inputBox`.
  virtual absl::Status writeInput(size_t index, const MemoryView &memory, absl::Span<const layout::Box> boxes,
                                  bool onDevice = false) = 0;
  /// Copies boxes of an output, or of a count (see `Plan::getResults`), to memory of the caller. They lie in this
  /// rank's part, `outputBox`, and in what that memory holds.
  virtual absl::Status readOutput(size_t index, const MemoryView &memory, absl::Span<const layout::Box> boxes,
                                  bool onDevice = false) = 0;
  /// Whether `exchangeOutput` can be called, on all ranks or none: outputs are in memory of the host.
  virtual bool canExchangeOutputs() const = 0;
  /// Carries boxes of an output between ranks, which all call it at once. Of each pair of ranks the lists have the same
  /// boxes in the same order. What this rank receives, and what it has of `local`, comes to `target`.
  virtual absl::Status exchangeOutput(size_t index, std::vector<layout::Transfer> sends,
                                      std::vector<layout::Transfer> receives, std::vector<layout::Box> local,
                                      const MemoryView &target) = 0;
  /// Gives the inputs that are fed back what they are to be after the last run, in place of `writeInput`. It comes
  /// before that of all others, and after it outputs are valid no more.
  virtual absl::Status feedBack() = 0;
  /// DLPack's number of the kind of devices whose memory it reads and writes directly; 0: none.
  virtual int dlpackDevice() const = 0;
  /// This rank's part of an input or output.
  virtual layout::Box inputBox(size_t index) const = 0;
  virtual layout::Box outputBox(size_t index) const = 0;

  virtual const SessionStatistics &statistics() const = 0;
  /// When the last run had issued all of its work, and from then on waited for the device. On the CPU work is issued by
  /// doing it.
  virtual std::chrono::steady_clock::time_point issued() const = 0;
  /// One for each step of the plan, prologue not included.
  virtual const std::vector<CallReport> &calls() const = 0;
  /// One for each step of the plan, prologue not included, if `trace` was asked for.
  virtual const std::vector<StepTime> &times() const = 0;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_SESSION_H
