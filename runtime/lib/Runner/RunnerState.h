//===- RunnerState.h - What threads of ranks share with their runner -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines ProgramRunner::State.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_RUNNER_RUNNERSTATE_H
#define DOVETAIL_RUNTIME_LIB_RUNNER_RUNNERSTATE_H

#include "dovetail/runtime/ProgramRunner.h"

#include "../Session/Backend.h"
#include "../Threads/Cores.h"
#include "../Threads/Waiter.h"
#include "OutputPieces.h"
#include "PartTransfer.h"
#include "RunCounts.h"

#include "dovetail/runtime/Device.h"
#include "dovetail/runtime/Interruption.h"
#include "dovetail/runtime/RankGroup.h"

#include <atomic>
#include <latch>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <unistd.h>

namespace dovetail::runtime {

/// What a rank is told to do.
enum Task : unsigned { Scatter = 1, Run = 2, Gather = 4, Stop = 8, FeedBack = 16, Count = 32 };

/// Shared by the ranks' threads and the runner, and kept alive by a rank that hangs.
struct ProgramRunner::State {
  State(std::shared_ptr<const Program> program, RunnerOptions options)
      : program(std::move(program)), options(std::move(options)), ranks(this->program->numRanks()),
        counts(this->program->getPlan()) {}

  struct Rank {
    std::unique_ptr<Communicator> communicator;
    std::unique_ptr<Session> session;
    SessionStatistics statistics;
    std::vector<CallReport> calls;
    int runs = 0; ///< Counted while the calls' reports grow.
    std::vector<StepTime> times;
    std::chrono::steady_clock::time_point begin, issued, end;
    absl::Status report; ///< What was wrong with the inputs of the last run, on rank 0 also that of other processes.
    std::thread thread;
    Waiter waiter; ///< For tasks.
    std::atomic<bool> stopped{false};
  };

  int threadsOf(int rank) const {
    int count = static_cast<int>(own.size());
    return std::max(1, options.threads / count + (rank - own.front() < options.threads % count));
  }
  /// The number of the first of these threads, of all processes of this machine, which have as many each.
  int firstThreadOf(int rank) const {
    int first = group->numberHere() * std::max(options.threads, static_cast<int>(own.size()));
    for (int other = own.front(); other < rank; ++other)
      first += threadsOf(other);
    return first;
  }
  bool isFirst() const { return own.front() == 0; }
  /// Whether this process was forked from the one that has the ranks' threads.
  bool isForked() const { return ::getpid() != process; }
  using Call = std::unique_lock<std::mutex>;
  /// Begins a call. Errors: INVALID_ARGUMENT in a forked process, where other threads may have held any lock.
  absl::StatusOr<Call> enter();
  /// Makes the communicators of this process's ranks.
  absl::Status connect();
  /// The body of a rank's thread.
  void work(int rank);
  /// Starts the threads of all ranks.
  void startAll(const std::shared_ptr<State> &self);
  absl::Status perform(int rank, unsigned tasks);
  /// `isFed`: but for those that are fed back.
  absl::Status readInputs(int rank, bool isFed);
  absl::Status takeReport(Rank &rank);
  absl::Status deliver(int rank);
  /// Where the tensors of a rank of this process begin among as many of each.
  size_t firstLocal(int rank, size_t numPorts) const {
    return (std::find(own.begin(), own.end(), rank) - own.begin()) * numPorts;
  }
  absl::Status gatherTimes(Rank &rank);
  /// The error that ended the run, also if it has just come to light that a rank hangs.
  absl::Status watch() { return group->watch(); }
  /// Has the ranks of this process stop before their next step.
  absl::Status giveUp();
  /// Lets all ranks begin.
  void begin(unsigned tasks);
  /// Gives all ranks the tasks and waits for them.
  absl::Status dispatch(unsigned tasks);
  /// What the next run is of, with all inputs as they were checked. With `callMutex`.
  void take(absl::Span<const FullTensor> in, absl::Span<const FullTensor> out) {
    take(in, out, nullptr);
    std::vector<std::vector<int64_t>> shapes;
    for (size_t i = 0; i < in.size() && !counts.empty(); ++i)
      shapes.push_back(in[i].shape);
    counts.setLengths(shapes);
  }
  /// The same of parts, which say what the lengths are. `isFed`: but for inputs that are fed back.
  absl::Status take(PortParts &both, bool isFed = false);
  void take(absl::Span<const FullTensor> in, absl::Span<const FullTensor> out, PortParts *both) {
    inputs = in;
    counts.reset();
    outputs.assign(out.begin(), out.end());
    // Counts that are computed, which only the first process gets, come after its outputs.
    const std::vector<CountInfo> &infos = program->getPlan().counts;
    for (size_t i = 0; isFirst() && i < infos.size(); ++i)
      if (!infos[i].isGiven)
        outputs.push_back({&counts[i], ElementType::I64, {}});
    parts = both;
    areLocal = false;
  }
  /// These tasks of a run. Who takes parts of outputs is told before how much there is.
  absl::Status carryOut(unsigned tasks);
  /// One run, with these tasks.
  absl::Status runOnce(unsigned tasks);
  absl::StatusOr<std::chrono::nanoseconds> measure();
  absl::Status getFailure();
  /// Sets the error that ended the run, unless there is one.
  void fail(const absl::Status &status);
  absl::Status waitForAll();
  absl::Status check(absl::Span<const FullTensor> inputs, absl::Span<const FullTensor> outputs) const;
  /// The report of the first rank that has one. Unlike errors, it does not end the program.
  absl::Status report() const;

  /// Held during a run: calls from several threads happen one after another.
  std::mutex callMutex;
  std::shared_ptr<const Program> program;
  RunnerOptions options;
  const pid_t process = ::getpid(); ///< That has the ranks.
  std::unique_ptr<RankGroup> group;
  std::vector<int> own;        ///< The ranks of this process.
  std::vector<int> processors; ///< Those that the caller may run on.
  std::vector<Rank> ranks;
  std::vector<PortInfo> results;    ///< Outputs and counts that are computed.
  std::vector<OutputPieces> pieces; ///< For each of these, what ranks deliver.
  RunCounts counts;                 ///< Of the last run.

  /// What ranks are to do, and the tensors for it: set before `generation` grows, and not while ranks are at it.
  std::atomic<unsigned> tasks{0};
  absl::Span<const FullTensor> inputs;
  std::vector<FullTensor> outputs; ///< And counts.
  PortParts *parts = nullptr;      ///< In their place.
  bool areLocal = false;           ///< Whether they are what ranks hold.
  bool hasRun = false;             ///< Whether the last run left what inputs are fed. With `callMutex`.
  std::atomic<uint64_t> generation{0};
  std::latch allStarted{1};    ///< Before ranks do anything.
  std::atomic<int> pending{0}; ///< Ranks that are still at it.
  Waiter done;                 ///< For these, or for all of them to stop.

  std::atomic<bool> isGivenUp = false; ///< The user has interrupted the call.
  std::mutex failureMutex;
  absl::Status failure; ///< With `failureMutex`.

  /// Held while the caller's tensors are used, so that a rank that was given up never touches them later.
  std::shared_mutex tensorMutex;
  bool abandoned = false;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_LIB_RUNNER_RUNNERSTATE_H
