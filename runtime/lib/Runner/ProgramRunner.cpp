//===- ProgramRunner.cpp - Runs a program ---------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements ProgramRunner.
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/ProgramRunner.h"

#include "../Program/PackedWeights.h"
#include "PortChecks.h"
#include "RunnerState.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace dovetail;
using namespace dovetail::runtime;

absl::StatusOr<std::unique_ptr<ProgramRunner>> ProgramRunner::create(std::shared_ptr<const Program> program,
                                                                     RunnerOptions options) {
  if (options.threads < 1)
    return absl::InvalidArgumentError(absl::StrCat("at least 1 thread is needed, not ", options.threads));
  if (options.device >= 0 && !program->getPlan().isForDevice())
    return absl::InvalidArgumentError(absl::StrCat("device ", options.device, " is asked for, but the program is for ",
                                                   "target '", hostTarget, "'; leave out the device"));
  auto state = std::make_shared<State>(std::move(program), options);
  const Plan &plan = state->program->getPlan();
  state->results = plan.getResults();
  for (const PortInfo &result : state->results)
    state->pieces.emplace_back(plan, result);
  if (absl::Status status = state->connect(); !status.ok())
    return status;

  std::unique_ptr<ProgramRunner> runner(new ProgramRunner(state));
  state->startAll(state);
  if (absl::Status status = state->waitForAll(); !status.ok())
    return status;
  return runner;
}

ProgramRunner::~ProgramRunner() {
  if (state->isForked()) {
    // Threads that are not there cannot be waited for: all that they used stays until this process ends.
    new std::shared_ptr<State>(std::move(state));
    return;
  }
  // Without a failure every rank is idle and stops at once; with one, some may still be at a task.
  bool failed = !state->getFailure().ok();
  state->begin(Stop);
  auto allStopped = [&] {
    return std::all_of(state->own.begin(), state->own.end(),
                       [&](int rank) { return state->ranks[rank].stopped.load(); });
  };
  state->done.sleep(allStopped,
                    failed ? Waiter::Clock::now() + std::chrono::seconds(1) : Waiter::Clock::time_point::max());
  for (int index : state->own) {
    State::Rank &rank = state->ranks[index];
    if (!rank.thread.joinable())
      continue; // It was never started.
    if (rank.stopped.load())
      rank.thread.join();
    else
      rank.thread.detach();
  }
}

absl::Status ProgramRunner::run(absl::Span<const FullTensor> inputs, absl::Span<const FullTensor> outputs,
                                int64_t steps) {
  if (absl::Status status = state->check(inputs, outputs); !status.ok())
    return status;
  if (steps < 1)
    return absl::InvalidArgumentError(absl::StrCat("a program runs for 1 step at least, not ", steps));
  if (steps > 1 && !state->program->getPlan().hasFeedback())
    return absl::InvalidArgumentError(absl::StrCat("all of ", steps, " steps would be the same, as no output is fed ",
                                                   "back to an input; compile the model with --feedback OUT:IN"));
  absl::StatusOr<State::Call> call = state->enter();
  if (!call.ok())
    return call.status();
  state->take(inputs, outputs);
  absl::Status status;
  // All processes are to know the lengths of the next run.
  unsigned always = Scatter | Run | (state->counts.areFed() ? Count : 0);
  for (int64_t step = 0; step < steps && status.ok(); ++step) {
    if (step > 0) {
      if (status = state->counts.checkFed(); !status.ok())
        return status;
      state->counts.feed();
    }
    status = state->runOnce(always | (step > 0 ? FeedBack : 0) | (step + 1 == steps ? Gather : 0));
    if (step + 1 == steps || state->group->isWhole() || !state->getFailure().ok())
      continue;
    // What is wrong with inputs, rank 0 alone may have been told; all processes stop at one step.
    absl::StatusOr<std::vector<std::string>> all = state->group->share(std::string(status.message()));
    if (!all.ok())
      return all.status();
    for (const std::string &message : *all)
      if (status.ok() && !message.empty())
        status = absl::InvalidArgumentError(message);
  }
  return status;
}

absl::Status ProgramRunner::run(PortParts &parts) {
  absl::StatusOr<State::Call> call = state->enter();
  if (!call.ok())
    return call.status();
  if (absl::Status status = state->take(parts); !status.ok())
    return status;
  return state->runOnce(Scatter | Run | Gather);
}

absl::Status ProgramRunner::proceed(PortParts &parts) {
  absl::StatusOr<State::Call> call = state->enter();
  if (!call.ok())
    return call.status();
  if (!state->hasRun)
    return absl::InvalidArgumentError(
        "the program has not run yet, so no output can be fed back; give the first run all inputs");
  if (absl::Status status = state->take(parts, /*isFed=*/true); !status.ok())
    return status;
  return state->runOnce(FeedBack | Scatter | Run | Gather);
}

absl::Status ProgramRunner::runLocal(absl::Span<const FullTensor> inputs, absl::Span<const FullTensor> outputs) {
  const Plan &plan = state->program->getPlan();
  if (absl::Status status = checkNoCounts(plan); !status.ok())
    return status;
  int device = state->ranks[state->own.front()].session->dlpackDevice();
  if (absl::Status status = checkLocalTensors("input", plan, plan.inputs, inputs, state->own, device); !status.ok())
    return status;
  if (absl::Status status = checkLocalTensors("output", plan, plan.outputs, outputs, state->own, device); !status.ok())
    return status;
  absl::StatusOr<State::Call> call = state->enter();
  if (!call.ok())
    return call.status();
  state->take(inputs, outputs, nullptr);
  state->areLocal = true;
  return state->runOnce(Scatter | Run | Gather);
}

absl::StatusOr<std::chrono::nanoseconds> ProgramRunner::measure(absl::Span<const FullTensor> inputs,
                                                                absl::Span<const FullTensor> outputs) {
  if (absl::Status status = state->check(inputs, outputs); !status.ok())
    return status;
  absl::StatusOr<State::Call> call = state->enter();
  if (!call.ok())
    return call.status();
  state->take(inputs, outputs);
  return state->measure();
}

absl::StatusOr<std::chrono::nanoseconds> ProgramRunner::measure(PortParts &parts) {
  absl::StatusOr<State::Call> call = state->enter();
  if (!call.ok())
    return call.status();
  if (absl::Status status = state->take(parts); !status.ok())
    return status;
  return state->measure();
}

absl::Status ProgramRunner::finish() {
  absl::StatusOr<State::Call> call = state->enter();
  if (!call.ok())
    return call.status();
  absl::Status status = state->getFailure();
  return status.ok() ? state->group->meet() : status;
}

absl::StatusOr<std::vector<std::string>> ProgramRunner::share(std::string own) {
  absl::StatusOr<State::Call> call = state->enter();
  if (!call.ok())
    return call.status();
  if (absl::Status status = state->getFailure(); !status.ok())
    return status;
  return state->group->share(std::move(own));
}

std::vector<int64_t> ProgramRunner::getOutputShape(size_t index) const {
  return state->counts.portOfRun(state->program->getPlan().outputs[index]).shape;
}

const Program &ProgramRunner::getProgram() const { return *state->program; }

const std::vector<int> &ProgramRunner::ranks() const { return state->own; }

bool ProgramRunner::isFirst() const { return state->isFirst(); }

/// Says which steps the library has nothing fast for, so that nothing is slow without a word.
static std::string describeReferences(const Plan &plan, const std::set<size_t> &steps) {
  if (steps.empty())
    return {};
  const StepInfo &first = plan.steps[*steps.begin()];
  return absl::StrCat("oneDNN has only its slow reference implementation for ", steps.size(),
                      steps.size() == 1 ? " call" : " calls", " on this machine, such as ", first.kind(), " '",
                      first.name, "'; compile the model with --cpu native on this machine, or with --no-libraries");
}

/// Says that a rank takes memory beyond the plan's bounds. `call` is the first that does; it may be one of the
/// prologue.
static std::string describeExcess(int rank, int64_t bytes, const StepInfo *call) {
  if (bytes == 0)
    return {};
  std::string name = call ? absl::StrCat(", such as ", call->kind(), " '", call->name, "'") : "";
  return absl::StrCat("rank ", rank, " takes ", bytes, " bytes of memory more than planned: on this machine ",
                      "oneDNN exceeds the bounds of some calls", name,
                      "; compile the model with --cpu native on this machine, or with --no-libraries");
}

std::string ProgramRunner::remark() const {
  const Plan &plan = state->program->getPlan();
  std::set<size_t> references;
  int64_t excess = 0;
  int excessRank = 0;
  const StepInfo *excessCall = nullptr;
  for (int rank : state->own) {
    const std::vector<CallReport> &calls = state->ranks[rank].calls;
    for (size_t step = 0; step < calls.size(); ++step) {
      if (calls[step].isReference)
        references.insert(step);
      if (calls[step].excessBytes > 0 && !excessCall)
        excessCall = &plan.steps[step];
    }
    if (int64_t bytes = state->ranks[rank].statistics.excessBytes; bytes > excess)
      std::tie(excess, excessRank) = std::pair(bytes, rank);
  }
  std::string text = describeReferences(plan, references), more = describeExcess(excessRank, excess, excessCall);
  absl::StrAppend(&text, text.empty() || more.empty() ? "" : "; ", more);
  auto cores = static_cast<int>(state->processors.size());
  if (!state->group->isWhole() && state->options.threads > cores)
    absl::StrAppend(&text, text.empty() ? "" : "; ", "this process has ", state->options.threads,
                    " threads, but may use ", cores, cores == 1 ? " processor" : " processors",
                    " only; let the launcher bind it to more (mpirun --map-by slot:PE=", state->options.threads,
                    ", srun --cpus-per-task), or give fewer threads");
  PackedWeights &packed = state->program->getPackedWeights();
  const PackedImage &image = packed.getImage();
  int64_t missing = packed.numMissing();
  if (missing == 0)
    return text;
  return absl::StrCat(text, text.empty() ? "" : "; ", "weights of ", missing,
                      " calls are packed when ranks start; the artifact has them for ", image.machine, " and ",
                      image.threads, image.threads == 1 ? " thread" : " threads", " a rank, but this process has ",
                      hostPacker(), " and ", threadsOf(state->own.front()), "; compile the model again with --prepack");
}

std::vector<std::byte> ProgramRunner::packedImage() const {
  return PackedImage{hostPacker(), threadsOf(state->own.front()), state->program->getPackedWeights().contents()}
      .serialize();
}

const SessionStatistics &ProgramRunner::statistics(int rank) const { return state->ranks[rank].statistics; }

const std::vector<CallReport> &ProgramRunner::calls(int rank) const { return state->ranks[rank].calls; }

std::chrono::nanoseconds ProgramRunner::issueTime() const {
  std::chrono::nanoseconds longest{0};
  for (int rank : state->own)
    longest = std::max<std::chrono::nanoseconds>(longest, state->ranks[rank].issued - state->ranks[rank].begin);
  return longest;
}

const std::vector<StepTime> &ProgramRunner::times(int rank) const { return state->ranks[rank].times; }

int ProgramRunner::threadsOf(int rank) const { return state->threadsOf(rank); }
