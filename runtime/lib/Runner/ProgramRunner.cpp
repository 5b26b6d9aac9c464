//===- ProgramRunner.cpp - Runs a program ---------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/ProgramRunner.h"

#include "../Program/PackedWeights.h"
#include "../Session/Backend.h"
#include "../Threads/Cores.h"
#include "../Threads/Waiter.h"
#include "OutputPieces.h"
#include "PartTransfer.h"
#include "PortChecks.h"
#include "RunCounts.h"

#include "dovetail/runtime/Device.h"
#include "dovetail/runtime/Interruption.h"
#include "dovetail/runtime/RankGroup.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <latch>
#include <mutex>
#include <new>
#include <set>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <tuple>
#include <unistd.h>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

enum Task : unsigned { Scatter = 1, Run = 2, Gather = 4, Stop = 8, FeedBack = 16, Count = 32 };

/// A tensor that holds `box`, or all.
MemoryView viewOf(const FullTensor &tensor, const layout::Box &box) {
  MemoryView view = MemoryView::rowMajor(tensor.type, box, tensor.data);
  if (!tensor.strides.empty())
    view.strides = tensor.strides;
  return view;
}
MemoryView viewOf(const FullTensor &tensor) { return viewOf(tensor, layout::Box::ofShape(tensor.shape)); }

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

} // namespace

/// How often a caller that waits for ranks asks whether the user has interrupted it.
static constexpr std::chrono::milliseconds interruptPeriod(50);

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
  void giveUp();
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

void ProgramRunner::State::work(int index) {
  Rank &rank = ranks[index];
  Communicator &communicator = *rank.communicator;
  auto guarded = [&](auto body) {
    absl::Status status = guard(index, body);
    return status.ok() ? status : communicator.abort(status);
  };
  // Where the stacks of later threads take all memory, a rank that began before would run out of it.
  allStarted.wait();
  communicator.setBusy(true);
  std::optional<Cores::Use> use(threadsOf(index));
  uint64_t seen = 0;
  absl::Status status = getFailure();
  auto createSession = [&] {
    SessionOptions chosen{threadsOf(index), options.trace};
    chosen.device = group->device();
    chosen.autotune = options.autotune;
    chosen.explain = options.explain;
    chosen.isGivenUp = &isGivenUp;
    if (options.pin) {
      chosen.processors = takeTurns(processors, firstThreadOf(index), threadsOf(index));
      stayOn(chosen.processors.front());
    }
    auto session = Session::create(program, communicator, chosen);
    if (!session.ok())
      return session.status();
    rank.session = *std::move(session);
    rank.statistics = rank.session->statistics();
    rank.calls = rank.session->calls();
    return absl::OkStatus();
  };
  if (status.ok())
    status = guarded(createSession);
  for (;;) {
    communicator.setBusy(false);
    if (!status.ok())
      fail(status);
    if (pending.fetch_sub(1) == 1)
      done.notify();
    auto isGiven = [&] { return generation.load() != seen; };
    // Another run may follow at once: until then the cores are this rank's.
    if (!spinUntil(isGiven)) {
      use.reset();
      rank.waiter.sleep(isGiven);
      use.emplace(threadsOf(index));
    }
    seen = generation.load();
    unsigned now = tasks;
    if (now & Stop)
      break;
    communicator.setBusy(true);
    if (status.ok())
      status = guarded([&] { return perform(index, now); });
  }
  // The session belongs to this thread, and uses the communicator.
  rank.session.reset();
  rank.communicator.reset();
  rank.stopped = true;
  done.notify();
}

void ProgramRunner::State::startAll(const std::shared_ptr<State> &self) {
  pending = own.size();
  for (size_t i = 0; i < own.size(); ++i) {
    int rank = own[i];
    absl::Status status = guard(rank, [&] {
      ranks[rank].thread = std::thread([self, rank] { self->work(rank); });
      return absl::OkStatus();
    });
    if (status.ok())
      continue;
    // The ranks before are waiting for this one and for those after it.
    (void)ranks[rank].communicator->abort(status);
    fail(status);
    for (; i < own.size(); ++i) {
      ranks[own[i]].stopped = true;
      --pending;
    }
  }
  allStarted.count_down();
}

absl::Status ProgramRunner::State::perform(int index, unsigned now) {
  Rank &rank = ranks[index];
  if (now & FeedBack)
    if (absl::Status status = rank.session->feedBack(); !status.ok())
      return status;
  if (now & Scatter)
    if (absl::Status status = readInputs(index, now & FeedBack); !status.ok())
      return status;
  if (now & Run) {
    // Others may still read their inputs, which takes as long as it takes.
    rank.communicator->setBusy(false);
    if (absl::Status status = group->meet(); !status.ok())
      return status;
    rank.communicator->setBusy(true);
    rank.begin = std::chrono::steady_clock::now();
    absl::Status status = rank.session->run();
    rank.end = std::chrono::steady_clock::now();
    rank.issued = rank.session->issued();
    if (options.trace)
      rank.times = rank.session->times();
    // Devices record steps in the second run.
    if (options.explain && rank.runs < 2 && ++rank.runs == 2)
      rank.calls = rank.session->calls();
    if (status.ok() && program->getPlan().numChecks > 0)
      status = takeReport(rank);
    if (!status.ok())
      return status;
  }
  if (now & Count)
    if (absl::Status status = counts.learn(index, *rank.session, pieces, *group); !status.ok())
      return status;
  return now & Gather ? deliver(index) : absl::OkStatus();
}

absl::Status ProgramRunner::State::readInputs(int index, bool isFed) {
  Rank &rank = ranks[index];
  std::shared_lock lock(tensorMutex);
  const Plan &plan = program->getPlan();
  size_t first = areLocal ? firstLocal(index, plan.inputs.size()) : 0;
  for (size_t i = 0; i < plan.inputs.size() && !abandoned; ++i) {
    if (isFed && plan.inputs[i].fedBy >= 0)
      continue;
    absl::Status status;
    if (parts) {
      status = readParts(counts.portOfRun(plan.inputs[i]), i, *rank.session, *rank.communicator, *parts);
    } else {
      const FullTensor &tensor = inputs[first + i];
      layout::Box box = rank.session->inputBox(i);
      MemoryView view = areLocal ? viewOf(tensor, box) : viewOf(tensor);
      // Of a dimension whose length varies there may be less.
      box = box.intersect(view.box);
      status = rank.session->writeInput(i, view, {box}, tensor.device != 0);
    }
    if (!status.ok())
      return status;
  }
  size_t number = plan.inputs.size();
  for (size_t i = 0; i < plan.counts.size() && !abandoned; ++i) {
    if (!plan.counts[i].isGiven)
      continue;
    MemoryView view = viewOf(FullTensor{&counts[i], ElementType::I64, {}});
    if (absl::Status status = rank.session->writeInput(number++, view, {view.box}); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status ProgramRunner::State::takeReport(Rank &rank) {
  rank.report = rank.session->takeReport();
  if (group->isWhole())
    return absl::OkStatus();
  absl::StatusOr<std::vector<std::string>> all = group->gather(std::string(rank.report.message()));
  if (!all.ok())
    return all.status();
  for (const std::string &message : *all)
    if (rank.report.ok() && !message.empty())
      rank.report = absl::InvalidArgumentError(message);
  return absl::OkStatus();
}

absl::Status ProgramRunner::State::report() const {
  for (int rank : own)
    if (!ranks[rank].report.ok())
      return ranks[rank].report;
  return absl::OkStatus();
}

absl::Status ProgramRunner::State::deliver(int index) {
  Rank &rank = ranks[index];
  std::shared_lock lock(tensorMutex);
  for (size_t i = 0; areLocal && i < pieces.size() && !abandoned; ++i) {
    const FullTensor &tensor = outputs[firstLocal(index, pieces.size()) + i];
    layout::Box box = rank.session->outputBox(i);
    if (absl::Status status = rank.session->readOutput(i, viewOf(tensor, box), {box}, tensor.device != 0); !status.ok())
      return status;
  }
  for (size_t i = 0; parts && i < program->getPlan().outputs.size() && !abandoned; ++i) {
    const PortInfo port = counts.portOfRun(results[i]);
    bool isBounded = port.shape != results[i].shape;
    absl::Status status =
        writeParts(port, i, isBounded ? pieces[i].within(layout::Box::ofShape(port.shape)) : pieces[i],
                   !group->isWhole(), *rank.session, *rank.communicator, *parts);
    if (!status.ok())
      return status;
  }
  for (size_t i = 0; !areLocal && !parts && i < pieces.size() && !abandoned; ++i) {
    absl::Status status;
    if (isFirst())
      status = rank.session->readOutput(i, viewOf(outputs[i]), pieces[i].of(index), outputs[i].device != 0);
    if (status.ok() && !group->isWhole())
      status = gatherOutput(results[i], i, pieces[i], index, *rank.session, *group,
                            isFirst() ? viewOf(outputs[i]) : MemoryView());
    if (!status.ok())
      return status;
  }
  return !group->isWhole() && options.trace ? gatherTimes(rank) : absl::OkStatus();
}

absl::Status ProgramRunner::State::take(PortParts &both, bool isFed) {
  // All processes know the counts of the last run, and find the same.
  if (isFed)
    if (absl::Status status = counts.checkFed(); !status.ok())
      return status;
  take({}, {}, &both);
  if (isFed)
    counts.feed();
  absl::Status status = getFailure();
  return status.ok() ? counts.setLengths(both, isFed, *group) : status;
}

absl::Status ProgramRunner::State::carryOut(unsigned now) {
  if (!parts || !(now & Gather))
    return dispatch(now);
  if (counts.areComputed()) {
    if (absl::Status status = dispatch((now & ~Gather) | Count); !status.ok())
      return status;
    if (absl::Status status = counts.check(); !status.ok())
      return status;
    now = Gather;
  }
  absl::Status status = parts->begin(counts.outputShapes());
  if (status.ok())
    return dispatch(now);
  // Other processes go on, and are told.
  fail(ranks[own.front()].communicator->abort(ofRank(own.front(), status)));
  return getFailure();
}

absl::Status ProgramRunner::State::gatherTimes(Rank &rank) {
  using Clock = std::chrono::steady_clock;
  std::vector<int64_t> numbers;
  for (const StepTime &time : rank.times)
    for (Clock::time_point point : {time.begin, time.end})
      numbers.push_back(std::chrono::nanoseconds(point - rank.begin).count());
  absl::StatusOr<std::vector<std::string>> all =
      group->gather(std::string(reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(int64_t)));
  if (!all.ok())
    return all.status();
  for (size_t source = 1; source < all->size(); ++source) {
    numbers.assign((*all)[source].size() / sizeof(int64_t), 0);
    std::memcpy(numbers.data(), (*all)[source].data(), numbers.size() * sizeof(int64_t));
    ranks[source].times.clear();
    for (size_t i = 0; i + 1 < numbers.size(); i += 2)
      ranks[source].times.push_back(
          {rank.begin + std::chrono::nanoseconds(numbers[i]), rank.begin + std::chrono::nanoseconds(numbers[i + 1])});
  }
  return absl::OkStatus();
}

absl::StatusOr<ProgramRunner::State::Call> ProgramRunner::State::enter() {
  if (isForked())
    return absl::InvalidArgumentError(absl::StrCat(
        "this process was forked from process ", process, ", which started the program, and has no threads ",
        "of its ranks; start workers by 'spawn' or 'forkserver', or load the program after the fork"));
  return Call(callMutex);
}

absl::Status ProgramRunner::State::getFailure() {
  std::lock_guard lock(failureMutex);
  return failure;
}

void ProgramRunner::State::fail(const absl::Status &status) {
  std::lock_guard lock(failureMutex);
  if (failure.ok())
    failure = status;
}

void ProgramRunner::State::giveUp() {
  // Communicators say why steps do nothing from now on.
  for (int rank : own)
    (void)ranks[rank].communicator->abort(absl::AbortedError("interrupted"));
  isGivenUp = true;
}

absl::Status ProgramRunner::State::waitForAll() {
  auto isDone = [&] { return pending.load() == 0; };
  // The caller's thread may spin where that takes no core from the ranks.
  bool over = spinUntil(isDone, /*more=*/1);
  Waiter::Clock::time_point nextWatch = Waiter::Clock::now() + options.timeout / 8;
  while (!over) {
    over = done.sleep(isDone, std::min(nextWatch, Waiter::Clock::now() + interruptPeriod));
    if (over)
      break;
    if (isInterrupted())
      giveUp();
    if (Waiter::Clock::now() < nextWatch && !isGivenUp)
      continue;
    nextWatch = Waiter::Clock::now() + options.timeout / 8;
    if (absl::Status status = isGivenUp ? absl::AbortedError("interrupted") : watch(); !status.ok()) {
      // Ranks that wait for others return at once, from a device a little later; the one at fault may never.
      done.sleep(isDone, Waiter::Clock::now() + std::chrono::milliseconds(group->isWhole() ? 200 : 5000));
      fail(status);
      break;
    }
  }
  absl::Status result = getFailure();
  if (result.ok())
    return result;
  std::unique_lock tensors(tensorMutex);
  abandoned = true;
  return result;
}

void ProgramRunner::State::begin(unsigned now) {
  tasks = now;
  pending = static_cast<int>(own.size());
  ++generation;
  for (int rank : own)
    ranks[rank].waiter.notify();
}

absl::Status ProgramRunner::State::dispatch(unsigned now) {
  if (absl::Status status = getFailure(); !status.ok())
    return status;
  begin(now);
  return waitForAll();
}

absl::Status ProgramRunner::State::connect() {
  ConnectionRequest request;
  request.ranks = program->numRanks();
  request.target = program->getPlan().target;
  request.program = program->getChecksum();
  request.device = options.device;
  request.process = options.process;
  request.processes = options.processes;
  request.timeout = options.timeout;
  if (program->getPlan().isForDevice()) {
    absl::StatusOr<const DevicePlugin *> plugin = openDevicePlugin(request.target);
    if (!plugin.ok())
      return plugin.status();
    request.plugin = *plugin;
  }
  absl::StatusOr<std::unique_ptr<RankGroup>> connected = connectRanks(options.communicator, request);
  if (!connected.ok())
    return connected.status();
  group = *std::move(connected);
  own = group->ranks();
  Cores::count(group->processesHere());
  processors = allowedProcessors();
  for (int rank : own)
    ranks[rank].communicator = group->communicator(rank);
  return absl::OkStatus();
}

absl::Status ProgramRunner::State::check(absl::Span<const FullTensor> inputs,
                                         absl::Span<const FullTensor> outputs) const {
  const Plan &plan = program->getPlan();
  int device = ranks[own.front()].session->dlpackDevice();
  if (absl::Status status = checkInputs(plan, inputs, device); !status.ok())
    return status;
  if (!isFirst() && outputs.empty())
    return absl::OkStatus();
  if (absl::Status status = checkOutputs(plan, outputs, device); !status.ok())
    return status;
  for (size_t i = 0; i < outputs.size() && !group->isWhole(); ++i)
    if (outputs[i].device != 0)
      return absl::InvalidArgumentError(absl::StrCat("output '", plan.outputs[i].name, "' was given a tensor on a ",
                                                     "device, but outputs of several processes are collected on the ",
                                                     "host; give one there"));
  return absl::OkStatus();
}

ProgramRunner::ProgramRunner(std::shared_ptr<State> state) : state(std::move(state)) {}

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

absl::Status ProgramRunner::State::runOnce(unsigned now) {
  hasRun = false;
  absl::Status status = carryOut(now);
  if (status.ok())
    status = counts.check();
  if (status.ok())
    status = report();
  hasRun = status.ok();
  if (hasRun)
    counts.keep();
  return status;
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

absl::StatusOr<std::chrono::nanoseconds> ProgramRunner::State::measure() {
  hasRun = false;
  for (unsigned task : {Scatter, Run, Gather})
    if (absl::Status status = carryOut(task); !status.ok())
      return status;
  if (absl::Status status = counts.check(); !status.ok())
    return status;
  if (absl::Status status = report(); !status.ok())
    return status;
  auto begin = ranks[own.front()].begin, end = ranks[own.front()].end;
  for (int rank : own) {
    begin = std::min(begin, ranks[rank].begin);
    end = std::max(end, ranks[rank].end);
  }
  return end - begin;
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
