//===- Session.cpp - A program on one rank --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/Session.h"

#include "../Backend/cpu/LibraryThreads.h"
#include "Arena.h"
#include "MemoryPlan.h"
#include "RaceDetection.h"
#include "StepExecutor.h"

#include <algorithm>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

class CpuSession : public Session {
public:
  CpuSession(std::shared_ptr<const Program> program, Communicator &communicator, SessionOptions options)
      : program(std::move(program)), plan(this->program->getPlan()), threads(options.threads),
        numThreads(options.threads), context(*this->program, communicator, threads), trace(options.trace) {}

  absl::Status prepare();

  absl::Status run() override;
  PortView input(size_t index) const override { return port(plan.inputs[index]); }
  PortView output(size_t index) const override { return port(plan.outputs[index]); }
  const SessionStatistics &statistics() const override { return stats; }
  const std::vector<StepTime> &times() const override { return stepTimes; }

private:
  struct PreparedStep {
    const StepInfo *info;
    std::unique_ptr<StepExecutor> executor; ///< Null when there is nothing to do.
    ExchangeExecutor *exchange = nullptr;   ///< The executor, if it is one.
    /// Exchanges that must have released their sources before this step writes over them.
    std::vector<ExchangeExecutor *> releases;
    size_t scratchItem = 0;
  };
  struct Range {
    int64_t begin, end;
    bool overlaps(const Range &other) const { return begin < other.end && other.begin < end; }
  };

  absl::Status prepareConstants();
  absl::Status prepareSteps(const std::vector<StepInfo> &infos, bool inPrologue, std::vector<PreparedStep> &result);
  absl::Status allocate();
  void planReleases();
  absl::Status runSteps(std::vector<PreparedStep> &list, bool record);
  void noteWrites(const PreparedStep &step) const;
  absl::Status annotate(const StepInfo &step, const absl::Status &status) const;
  PortView port(const PortInfo &info) const { return {context.memory(info.tensor), context.box(info.tensor)}; }

  std::shared_ptr<const Program> program;
  const Plan &plan;
  ThreadPool threads;
  int numThreads; ///< As many as were asked for.
  SessionContext context;
  bool trace;
  std::vector<PreparedStep> prologue, steps;
  std::vector<ExchangeExecutor *> lastReleases; ///< Those that wait until the end of the run.
  std::vector<ArenaItem> items;                 ///< One for each buffer, then those of scratch memory.
  /// Other ranks read it: kept by the communicator, too.
  struct Memory {
    Allocation arena, persistent, constants;
  };
  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
  SessionStatistics stats;
  std::vector<StepTime> stepTimes;
};

} // namespace

std::string RankMemory::name(uint32_t tensor) const {
  const std::string &name = plan.tensors[tensor].name;
  return name.empty() ? absl::StrCat("tensor ", tensor) : absl::StrCat("tensor '", name, "'");
}

absl::Status CpuSession::annotate(const StepInfo &step, const absl::Status &status) const {
  return absl::Status(status.code(),
                      absl::StrCat("rank ", context.rank, ", ", step.kind(), " '", step.name, "': ", status.message()));
}

absl::Status CpuSession::prepareConstants() {
  int64_t copied = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferInfo &buffer = plan.buffers[i];
    context.buffers.push_back(MemoryView::packed(buffer.type, plan.bufferBox(i, context.rank), buffer.format));
    if (buffer.kind == BufferKind::Constant && !buffer.format.isRowMajor())
      copied += alignedSize(context.buffers[i].bytes());
  }
  absl::StatusOr<Allocation> allocation = Allocation::create(copied);
  if (!allocation.ok())
    return allocation.status();
  memory->constants = *std::move(allocation);
  stats.copiedBytes = copied;

  int64_t used = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferInfo &buffer = plan.buffers[i];
    MemoryView &view = context.buffers[i];
    if (buffer.kind != BufferKind::Constant || view.box.empty())
      continue;
    // The map is read only; nobody writes to constants.
    void *data = const_cast<std::byte *>(program->getWeights().data()) + buffer.dataOffset;
    MemoryView whole = MemoryView::rowMajor(buffer.type, layout::Box::ofShape(buffer.shape), data);
    if (buffer.format.isRowMajor()) {
      // Read where it is: a part of it has the strides of the whole.
      view = whole.part(view.box);
      stats.weightBytes += view.box.volume() * elementSize(buffer.type);
      continue;
    }
    view.data = memory->constants.data() + used;
    used += alignedSize(view.bytes());
    copyBox(view, whole, view.box);
  }
  return absl::OkStatus();
}

absl::Status CpuSession::prepareSteps(const std::vector<StepInfo> &infos, bool inPrologue,
                                      std::vector<PreparedStep> &result) {
  for (const StepInfo &info : infos) {
    PreparedStep step{&info, nullptr, nullptr, {}, 0};
    context.communicator.enterStep(info.name.c_str());
    if (std::holds_alternative<ExchangeCall>(info.action)) {
      absl::StatusOr<std::unique_ptr<ExchangeExecutor>> exchange = createExchangeStep(context, info);
      if (!exchange.ok())
        return annotate(info, exchange.status());
      step.exchange = exchange->get();
      step.executor = *std::move(exchange);
    } else {
      StepExecutorOr executor = std::holds_alternative<KernelCall>(info.action)
                                    ? createKernelStep(context, info)
                                    : createLibraryStep(context, info, inPrologue);
      if (!executor.ok())
        return annotate(info, executor.status());
      step.executor = *std::move(executor);
    }
    result.push_back(std::move(step));
  }
  return absl::OkStatus();
}

absl::Status CpuSession::allocate() {
  items = bufferLives(plan, context.rank);
  int64_t persistentBytes = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    if (plan.buffers[i].kind == BufferKind::Persistent)
      persistentBytes += alignedSize(context.buffers[i].bytes());
  auto addScratch = [&](std::vector<PreparedStep> &list, int64_t position) {
    for (PreparedStep &step : list) {
      step.scratchItem = items.size();
      items.push_back({step.executor ? step.executor->scratchBytes() : 0, position, position, 0});
      ++position;
    }
  };
  addScratch(prologue, 0);
  addScratch(steps, Positions(plan).firstStep);

  stats.arenaBytes = planArena(items);
  stats.persistentBytes = persistentBytes;
  for (auto [target, bytes] :
       {std::pair(&memory->arena, stats.arenaBytes), std::pair(&memory->persistent, persistentBytes)}) {
    absl::StatusOr<Allocation> allocation = Allocation::create(bytes);
    if (!allocation.ok())
      return absl::Status(allocation.status().code(),
                          absl::StrCat("rank ", context.rank, ": ", allocation.status().message()));
    *target = *std::move(allocation);
  }
  int64_t used = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    MemoryView &view = context.buffers[i];
    if (view.box.empty())
      continue;
    if (plan.buffers[i].kind == BufferKind::Arena && items[i].bytes > 0) {
      view.data = memory->arena.data() + items[i].offset;
    } else if (plan.buffers[i].kind == BufferKind::Persistent) {
      view.data = memory->persistent.data() + used;
      used += alignedSize(view.bytes());
    }
  }
  return absl::OkStatus();
}

void CpuSession::planReleases() {
  auto rangeOf = [&](size_t item) { return Range{items[item].offset, items[item].offset + items[item].bytes}; };
  struct Open {
    ExchangeExecutor *exchange;
    std::vector<Range> ranges;
  };
  std::vector<Open> open;
  for (PreparedStep &step : steps) {
    std::vector<Range> written = {rangeOf(step.scratchItem)};
    for (uint32_t tensor : step.info->writes())
      written.push_back(rangeOf(plan.tensors[tensor].buffer));
    for (auto it = open.begin(); it != open.end();) {
      bool overlap = std::any_of(written.begin(), written.end(), [&](const Range &a) {
        return std::any_of(it->ranges.begin(), it->ranges.end(), [&](const Range &b) { return a.overlaps(b); });
      });
      if (overlap)
        step.releases.push_back(it->exchange);
      it = overlap ? open.erase(it) : it + 1;
    }
    if (!step.exchange)
      continue;
    Open entry{step.exchange, {}};
    for (uint32_t buffer : step.exchange->readByOthers())
      entry.ranges.push_back(rangeOf(buffer));
    if (!entry.ranges.empty())
      open.push_back(std::move(entry));
  }
  // Whoever calls `run` may write inputs afterwards.
  for (const Open &entry : open)
    lastReleases.push_back(entry.exchange);
}

absl::Status CpuSession::prepare() {
  if (!program->isExecutable())
    return absl::FailedPreconditionError("the program was loaded to be looked at only");
  if (plan.isForDevice())
    return absl::UnavailableError(absl::StrCat("there is no plug-in for target '", plan.target, "'"));
  if (context.communicator.size() != program->numRanks())
    return absl::InvalidArgumentError(
        absl::StrCat("the program is for ", program->numRanks(), " ranks, not ", context.communicator.size()));
  if (threads.size() < numThreads)
    return absl::ResourceExhaustedError(absl::StrCat("rank ", context.rank, " cannot start ", numThreads,
                                                     " threads, but only ", threads.size(), "; give it fewer"));
  context.communicator.keep(memory);
  setLibraryThreads(threads.size());
  if (absl::Status status = prepareConstants(); !status.ok())
    return status;
  if (absl::Status status = prepareSteps(plan.prologue, /*inPrologue=*/true, prologue); !status.ok())
    return status;
  if (absl::Status status = prepareSteps(plan.steps, /*inPrologue=*/false, steps); !status.ok())
    return status;
  if (absl::Status status = allocate(); !status.ok())
    return status;
  for (std::vector<PreparedStep> *list : {&prologue, &steps})
    for (PreparedStep &step : *list)
      if (step.executor)
        if (absl::Status status = step.executor->bind(memory->arena.data() + items[step.scratchItem].offset);
            !status.ok())
          return annotate(*step.info, status);
  planReleases();
  stepTimes.resize(trace ? steps.size() : 0);
  context.communicator.enterStep("start-up");
  if (absl::Status status = context.communicator.connect(); !status.ok())
    return status;

  if (absl::Status status = runSteps(prologue, /*record=*/false); !status.ok())
    return status;
  for (PreparedStep &step : steps) {
    if (!step.executor)
      continue;
    if (absl::Status status = step.executor->pack(); !status.ok())
      return annotate(*step.info, status);
    stats.packedBytes += step.executor->packedBytes();
  }
  return absl::OkStatus();
}

void CpuSession::noteWrites(const PreparedStep &step) const {
  // Exchanges are our own code.
  if (!step.executor || step.exchange)
    return;
  for (uint32_t tensor : step.info->writes())
    noteWrite(context.memory(tensor), context.box(tensor));
  const ArenaItem &scratch = items[step.scratchItem];
  noteWrite(memory->arena.data() + scratch.offset, scratch.bytes);
}

absl::Status CpuSession::runSteps(std::vector<PreparedStep> &list, bool record) {
  for (size_t i = 0; i < list.size(); ++i) {
    PreparedStep &step = list[i];
    context.communicator.enterStep(step.info->name.c_str());
    if (record)
      stepTimes[i].begin = std::chrono::steady_clock::now();
    absl::Status status;
    for (size_t k = 0; k < step.releases.size() && status.ok(); ++k)
      status = step.releases[k]->release();
    if (detectRaces && status.ok())
      noteWrites(step);
    if (status.ok() && step.executor)
      status = step.executor->run();
    // The prologue runs once: it is not worth while to look for the step that must wait.
    if (status.ok() && &list == &prologue && step.exchange)
      status = step.exchange->release();
    if (record)
      stepTimes[i].end = std::chrono::steady_clock::now();
    if (!status.ok())
      return context.communicator.state().ok() ? annotate(*step.info, status) : context.communicator.state();
  }
  return absl::OkStatus();
}

absl::Status CpuSession::run() {
  if (absl::Status status = context.communicator.state(); !status.ok())
    return status;
  absl::Status status = runSteps(steps, trace);
  context.communicator.enterStep("the end of the run");
  for (size_t i = 0; i < lastReleases.size() && status.ok(); ++i)
    status = lastReleases[i]->release();
  if (!status.ok())
    context.communicator.abort(status);
  return status;
}

absl::StatusOr<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Program> program,
                                                         Communicator &communicator, SessionOptions options) {
  auto session = std::make_unique<CpuSession>(std::move(program), communicator, options);
  if (absl::Status status = session->prepare(); !status.ok()) {
    communicator.abort(status);
    return status;
  }
  return std::unique_ptr<Session>(std::move(session));
}
