//===- RunnerState.cpp - What threads of ranks share with their runner ----===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements what ranks do, each on its thread, and how the runner tells them and waits for them.
//
//===----------------------------------------------------------------------===//

#include "RunnerState.h"

#include "PortChecks.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

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
      ranks[source].times.push_back({rank.begin + std::chrono::nanoseconds(numbers[i]),
                                     rank.begin + std::chrono::nanoseconds(numbers[i + 1]), 1});
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

absl::Status ProgramRunner::State::giveUp() {
  absl::Status status = absl::AbortedError("interrupted");
  // Communicators say why steps do nothing from now on.
  for (int rank : own)
    (void)ranks[rank].communicator->abort(status);
  isGivenUp = true;
  return status;
}

absl::Status ProgramRunner::State::waitForAll() {
  auto isDone = [&] { return pending.load() == 0; };
  // The caller's thread may spin where that takes no core from the ranks.
  bool over = spinUntil(isDone, /*more=*/1);
  Waiter::Clock::time_point nextWatch = Waiter::Clock::now() + options.timeout / 8;
  while (!over) {
    over =
        done.sleep(isDone, isInterruptible() ? std::min(nextWatch, Waiter::Clock::now() + interruptPeriod) : nextWatch);
    if (over)
      break;
    absl::Status status;
    if (isInterrupted()) {
      status = giveUp();
    } else if (Waiter::Clock::now() >= nextWatch) {
      nextWatch = Waiter::Clock::now() + options.timeout / 8;
      status = watch();
    }
    if (status.ok())
      continue;
    // Ranks that wait for others return at once, from a device a little later; the one at fault may never.
    done.sleep(isDone, Waiter::Clock::now() + std::chrono::milliseconds(group->isWhole() ? 200 : 5000));
    fail(status);
    break;
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
