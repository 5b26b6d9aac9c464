//===- ProgramRunner.cpp - All ranks in one process -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/ProgramRunner.h"

#include "dovetail/Layout/Exchange.h"
#include "dovetail/runtime/LocalGroup.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <system_error>
#include <thread>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

enum Task : unsigned { Scatter = 1, Run = 2, Gather = 4, Stop = 8 };

MemoryView viewOf(const HostTensor &tensor) {
  MemoryView view = MemoryView::rowMajor(tensor.type, layout::Box::ofShape(tensor.shape), tensor.data);
  if (!tensor.strides.empty())
    view.strides = tensor.strides;
  return view;
}

/// What `body` returns; a lack of memory or of threads is an error, too.
template <typename Body> absl::Status guard(int rank, Body body) {
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return absl::ResourceExhaustedError(absl::StrCat("rank ", rank, ": there is not enough memory"));
  } catch (const std::system_error &error) {
    return absl::ResourceExhaustedError(absl::StrCat("rank ", rank, ": cannot start a thread: ", error.what(),
                                                     "; use fewer ranks or fewer threads (--threads)"));
  }
}

std::string shapeStr(const std::vector<int64_t> &shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

} // namespace

/// Shared by the ranks' threads and the runner, and kept alive by a rank that hangs.
struct ProgramRunner::State {
  State(std::shared_ptr<const Program> program, RunnerOptions options)
      : program(std::move(program)), options(options), group(this->program->numRanks(), options.timeout),
        ranks(this->program->numRanks()) {}

  struct Rank {
    std::unique_ptr<Session> session;
    std::vector<std::vector<layout::Box>> owned; ///< For each output, what this rank delivers.
    SessionStatistics statistics;
    std::vector<StepTime> times;
    std::chrono::steady_clock::time_point begin, end;
    std::thread thread;
    bool stopped = false;
  };

  int threadsOf(int rank) const {
    int count = ranks.size();
    return std::max(1, options.threads / count + (rank < options.threads % count));
  }
  /// The body of a rank's thread.
  void work(int rank);
  /// Starts the threads of all ranks.
  void startAll(const std::shared_ptr<State> &self);
  absl::Status perform(Rank &rank, unsigned tasks);
  /// Gives all ranks the tasks and waits for them.
  absl::Status dispatch(unsigned tasks);
  absl::Status waitForAll();
  absl::Status check(const char *kind, const std::vector<PortInfo> &ports, absl::Span<const HostTensor> tensors) const;

  /// Held during a run: calls from several threads happen one after another.
  std::mutex callMutex;
  std::shared_ptr<const Program> program;
  RunnerOptions options;
  LocalGroup group;
  std::vector<Rank> ranks;

  std::mutex mutex;
  std::condition_variable start, done;
  uint64_t generation = 0;
  unsigned tasks = 0;
  int pending = 0;
  absl::Span<const HostTensor> inputs, outputs;
  absl::Status failure;

  /// Held while the caller's tensors are used, so that a rank that was given up never touches them later.
  std::shared_mutex tensorMutex;
  bool abandoned = false;
};

void ProgramRunner::State::work(int index) {
  Rank &rank = ranks[index];
  std::unique_ptr<Communicator> communicator = group.communicator(index);
  auto guarded = [&](auto body) {
    absl::Status status = guard(index, body);
    if (!status.ok())
      communicator->abort(status);
    return status;
  };
  uint64_t seen = 0;
  absl::Status status = guarded([&] {
    SessionOptions chosen{threadsOf(index), options.trace};
    chosen.autotune = options.autotune;
    auto session = Session::create(program, *communicator, chosen);
    if (!session.ok())
      return session.status();
    rank.session = *std::move(session);
    rank.statistics = rank.session->statistics();
    return absl::OkStatus();
  });
  for (;;) {
    group.setBusy(index, false);
    std::unique_lock lock(mutex);
    if (!status.ok() && failure.ok())
      failure = status;
    if (--pending == 0)
      done.notify_all();
    start.wait(lock, [&] { return generation != seen; });
    seen = generation;
    unsigned now = tasks;
    lock.unlock();
    if (now & Stop)
      break;
    group.setBusy(index, true);
    if (status.ok())
      status = guarded([&] { return perform(rank, now); });
  }
  // The session belongs to this thread.
  rank.session.reset();
  communicator.reset();
  std::lock_guard lock(mutex);
  rank.stopped = true;
  done.notify_all();
}

void ProgramRunner::State::startAll(const std::shared_ptr<State> &self) {
  pending = ranks.size();
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    group.setBusy(rank, true);
    absl::Status status = guard(rank, [&] {
      ranks[rank].thread = std::thread([self, rank] { self->work(rank); });
      return absl::OkStatus();
    });
    if (status.ok())
      continue;
    // The ranks before are waiting for this one and for those after it.
    group.abort(status);
    std::lock_guard lock(mutex);
    failure = status;
    for (; rank < ranks.size(); ++rank) {
      group.setBusy(rank, false);
      ranks[rank].stopped = true;
      --pending;
    }
  }
}

absl::Status ProgramRunner::State::perform(Rank &rank, unsigned now) {
  if (now & Scatter) {
    std::shared_lock lock(tensorMutex);
    for (size_t i = 0; i < inputs.size() && !abandoned; ++i) {
      if (absl::Status status = rank.session->writeInput(i, viewOf(inputs[i])); !status.ok())
        return status;
    }
  }
  if (now & Run) {
    rank.begin = std::chrono::steady_clock::now();
    absl::Status status = rank.session->run();
    rank.end = std::chrono::steady_clock::now();
    if (options.trace)
      rank.times = rank.session->times();
    if (!status.ok())
      return status;
  }
  if (now & Gather) {
    std::shared_lock lock(tensorMutex);
    for (size_t i = 0; i < outputs.size() && !abandoned; ++i) {
      if (absl::Status status = rank.session->readOutput(i, viewOf(outputs[i]), rank.owned[i]); !status.ok())
        return status;
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramRunner::State::waitForAll() {
  std::unique_lock lock(mutex);
  while (pending > 0) {
    if (done.wait_for(lock, options.timeout / 8) == std::cv_status::no_timeout)
      continue;
    lock.unlock();
    absl::Status status = group.watch();
    lock.lock();
    if (!status.ok()) {
      // Ranks that wait for others return at once; the one at fault may never.
      done.wait_for(lock, std::chrono::milliseconds(200), [&] { return pending == 0; });
      if (failure.ok())
        failure = status;
      break;
    }
  }
  if (failure.ok())
    return absl::OkStatus();
  absl::Status result = failure;
  lock.unlock();
  std::unique_lock tensors(tensorMutex);
  abandoned = true;
  return result;
}

absl::Status ProgramRunner::State::dispatch(unsigned now) {
  {
    std::lock_guard lock(mutex);
    if (!failure.ok())
      return failure;
    tasks = now;
    pending = ranks.size();
    ++generation;
  }
  start.notify_all();
  return waitForAll();
}

absl::Status ProgramRunner::State::check(const char *kind, const std::vector<PortInfo> &ports,
                                         absl::Span<const HostTensor> tensors) const {
  if (ports.size() != tensors.size())
    return absl::InvalidArgumentError(
        absl::StrCat("the program has ", ports.size(), " ", kind, "s, but ", tensors.size(), " were given"));
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string where = absl::StrCat(kind, " '", ports[i].name, "'");
    if (tensors[i].type != ports[i].type)
      return absl::InvalidArgumentError(absl::StrCat(where, " has element type ", elementTypeName(ports[i].type),
                                                     ", but a tensor of ", elementTypeName(tensors[i].type),
                                                     " was given; convert it"));
    if (tensors[i].shape != ports[i].shape)
      return absl::InvalidArgumentError(absl::StrCat(
          where, " has shape ", shapeStr(ports[i].shape), ", but a tensor of shape ", shapeStr(tensors[i].shape),
          " was given; compile the model for that shape or change the tensor"));
    if (!tensors[i].strides.empty() && tensors[i].strides.size() != tensors[i].shape.size())
      return absl::InvalidArgumentError(absl::StrCat(where, " was given with ", tensors[i].strides.size(),
                                                     " strides for ", tensors[i].shape.size(), " dimensions"));
    if (!tensors[i].data && layout::Box::ofShape(tensors[i].shape).volume() > 0)
      return absl::InvalidArgumentError(absl::StrCat(where, " was given without data"));
  }
  return absl::OkStatus();
}

ProgramRunner::ProgramRunner(std::shared_ptr<State> state) : state(std::move(state)) {}

absl::StatusOr<std::unique_ptr<ProgramRunner>> ProgramRunner::create(std::shared_ptr<const Program> program,
                                                                     RunnerOptions options) {
  if (options.threads < 1)
    return absl::InvalidArgumentError(absl::StrCat("at least 1 thread is needed, not ", options.threads));
  auto state = std::make_shared<State>(std::move(program), options);
  const Plan &plan = state->program->getPlan();
  for (const PortInfo &output : plan.outputs) {
    // Collecting the output on rank 0 would fetch each element exactly once: from its owner.
    layout::ExchangePlanner planner(plan.mesh, output.shape, plan.tensors[output.tensor].sharding,
                                    layout::Sharding::replicated(output.shape.size()));
    for (State::Rank &rank : state->ranks)
      rank.owned.emplace_back();
    state->ranks[0].owned.back() = planner.local(0);
    for (const layout::Transfer &transfer : planner.receives(0))
      state->ranks[transfer.source].owned.back().push_back(transfer.box);
  }

  std::unique_ptr<ProgramRunner> runner(new ProgramRunner(state));
  state->startAll(state);
  if (absl::Status status = state->waitForAll(); !status.ok())
    return status;
  return runner;
}

ProgramRunner::~ProgramRunner() {
  std::unique_lock lock(state->mutex);
  state->tasks = Stop;
  ++state->generation;
  state->pending = state->ranks.size();
  state->start.notify_all();
  auto allStopped = [&] {
    return std::all_of(state->ranks.begin(), state->ranks.end(), [](const State::Rank &rank) { return rank.stopped; });
  };
  // Without a failure every rank is idle and stops at once.
  if (state->failure.ok())
    state->done.wait(lock, allStopped);
  else
    state->done.wait_for(lock, std::chrono::seconds(1), allStopped);
  for (State::Rank &rank : state->ranks) {
    bool stopped = rank.stopped;
    lock.unlock();
    if (!rank.thread.joinable())
      ; // It was never started.
    else if (stopped)
      rank.thread.join();
    else
      rank.thread.detach();
    lock.lock();
  }
}

absl::Status ProgramRunner::run(absl::Span<const HostTensor> inputs, absl::Span<const HostTensor> outputs) {
  const Plan &plan = state->program->getPlan();
  if (absl::Status status = state->check("input", plan.inputs, inputs); !status.ok())
    return status;
  if (absl::Status status = state->check("output", plan.outputs, outputs); !status.ok())
    return status;
  std::lock_guard call(state->callMutex);
  state->inputs = inputs;
  state->outputs = outputs;
  return state->dispatch(Scatter | Run | Gather);
}

absl::StatusOr<std::chrono::nanoseconds> ProgramRunner::measure(absl::Span<const HostTensor> inputs,
                                                                absl::Span<const HostTensor> outputs) {
  const Plan &plan = state->program->getPlan();
  if (absl::Status status = state->check("input", plan.inputs, inputs); !status.ok())
    return status;
  if (absl::Status status = state->check("output", plan.outputs, outputs); !status.ok())
    return status;
  std::lock_guard call(state->callMutex);
  state->inputs = inputs;
  state->outputs = outputs;
  for (unsigned task : {Scatter, Run, Gather})
    if (absl::Status status = state->dispatch(task); !status.ok())
      return status;
  auto begin = state->ranks[0].begin, end = state->ranks[0].end;
  for (const State::Rank &rank : state->ranks) {
    begin = std::min(begin, rank.begin);
    end = std::max(end, rank.end);
  }
  return end - begin;
}

const Program &ProgramRunner::getProgram() const { return *state->program; }

const SessionStatistics &ProgramRunner::statistics(int rank) const { return state->ranks[rank].statistics; }

const std::vector<StepTime> &ProgramRunner::times(int rank) const { return state->ranks[rank].times; }

int ProgramRunner::threadsOf(int rank) const { return state->threadsOf(rank); }
