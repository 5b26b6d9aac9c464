//===- Session.cpp - A program on one rank --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramSession.h"

using namespace dovetail;
using namespace dovetail::runtime;

absl::StatusOr<std::byte *> ProgramSession::allocate(int64_t bytes, std::shared_ptr<std::byte> &owner) {
  absl::StatusOr<std::shared_ptr<std::byte>> allocated = backend->allocate(bytes);
  if (!allocated.ok())
    return ofRank(memory.rank, allocated.status());
  owner = *std::move(allocated);
  return owner.get();
}

absl::Status ProgramSession::prepareConstants() {
  int64_t copied = 0;
  auto isCopied = [&](const BufferInfo &buffer) {
    return buffer.kind == BufferKind::Constant && !plan.isMapped(buffer);
  };
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferInfo &buffer = plan.buffers[i];
    memory.buffers.push_back(MemoryView::ofBuffer(plan, i, memory.rank));
    if (isCopied(buffer))
      copied += alignedSize(memory.buffers[i].bytes());
  }
  absl::StatusOr<std::byte *> copies = allocate(copied, allocations->constants);
  if (!copies.ok())
    return copies.status();
  stats.copiedBytes = copied;

  int64_t used = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferInfo &buffer = plan.buffers[i];
    MemoryView &view = memory.buffers[i];
    if (buffer.kind != BufferKind::Constant || view.box.empty())
      continue;
    // The map is read only; nobody writes to constants.
    void *data = const_cast<std::byte *>(program->getWeights().data()) + buffer.dataOffset;
    MemoryView whole = MemoryView::rowMajor(buffer.type, layout::Box::ofShape(buffer.shape), data);
    if (!isCopied(buffer)) {
      // Read where it is: a part of it has the strides of the whole.
      view = whole.part(view.box);
      continue;
    }
    if (absl::Status status = program->checkWeights(buffer, view.box); !status.ok())
      return ofRank(memory.rank, status);
    view.data = *copies + used;
    used += alignedSize(view.bytes());
    if (absl::Status status = backend->fill(view, whole, view.box); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status ProgramSession::checkConstant(uint32_t tensor, const layout::Box &box) const {
  const BufferInfo &buffer = plan.bufferOf(tensor);
  if (!plan.isMapped(buffer))
    return absl::OkStatus();
  absl::Status status = program->checkWeights(buffer, box);
  return status.ok() ? status : ofRank(memory.rank, status);
}

absl::Status ProgramSession::checkConstants(const StepInfo &step, bool inRuns) const {
  // Of a call's weights a rank may need less than it can reach.
  auto needOf = [&](uint32_t tensor, const auto &call, const Access &access) {
    std::vector<layout::Interval> ranges;
    for (const LoopInfo &loop : call.loops)
      ranges.push_back(memory.range(loop));
    return layout::needOf(access, ranges).intersect(memory.box(tensor));
  };
  for (uint32_t tensor : step.reads()) {
    if (inRuns && !packing.readInRuns[plan.tensors[tensor].buffer])
      continue;
    layout::Box box = memory.box(tensor);
    if (const auto *convolution = std::get_if<ConvolutionCall>(&step.action);
        convolution && convolution->weights == tensor && convolution->input != tensor)
      box = needOf(tensor, *convolution, convolution->weightsAccess);
    else if (const auto *product = std::get_if<MatMulCall>(&step.action);
             product && product->b == tensor && product->a != tensor)
      box = needOf(tensor, *product, product->bAccess);
    if (absl::Status status = checkConstant(tensor, box); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status ProgramSession::prepareSteps(const std::vector<StepInfo> &infos, bool inPrologue,
                                          std::vector<PreparedStep> &result) {
  std::vector<const StepInfo *> work;
  for (const StepInfo &info : infos)
    if (!std::holds_alternative<ExchangeCall>(info.action) && !std::holds_alternative<WaitCall>(info.action) &&
        !info.isBoundary())
      work.push_back(&info);
  std::vector<StepExecutorOr> executors = backend->createSteps(memory, work, inPrologue);
  auto nextExecutor = executors.begin();
  for (const StepInfo &info : infos) {
    PreparedStep step(info);
    communicator.enterStep(info.title().c_str());
    if (std::holds_alternative<ExchangeCall>(info.action)) {
      std::unique_ptr<ExchangeExecutor> exchange = createExchangeStep(memory, info, communicator, backend->mover());
      step.exchange = exchange.get();
      step.executor = std::move(exchange);
    } else if (const auto *wait = std::get_if<WaitCall>(&info.action)) {
      auto executorsOf = [&](const std::vector<uint32_t> &positions) {
        std::vector<ExchangeExecutor *> exchanges;
        for (uint32_t position : positions)
          exchanges.push_back(result[position].exchange);
        return exchanges;
      };
      step.executor = createWaitStep(executorsOf(wait->complete), executorsOf(wait->read));
    } else if (!info.isBoundary()) {
      StepExecutorOr &executor = *nextExecutor++;
      if (!executor.ok())
        return annotate(info, executor.status());
      step.executor = *std::move(executor);
    }
    result.push_back(std::move(step));
  }
  return absl::OkStatus();
}

absl::Status ProgramSession::allocate() {
  auto scratchOf = [&](std::vector<PreparedStep> &list, int64_t firstItem) {
    std::vector<int64_t> scratch;
    for (PreparedStep &step : list) {
      step.scratchItem = firstItem++;
      scratch.push_back(step.executor ? step.executor->scratchBytes() : 0);
      stats.scratchBytes = std::max(stats.scratchBytes, scratch.back());
      stats.excessBytes += step.executor ? step.executor->excessBytes() : 0;
    }
    return scratch;
  };
  int64_t numBuffers = plan.buffers.size(), numPrologue = prologue.size();
  ArenaPlan planned = planArena(memory, scratchOf(prologue, numBuffers), scratchOf(steps, numBuffers + numPrologue));
  items = std::move(planned.items);
  packing = std::move(planned.packing);
  int64_t persistentBytes = 0;
  stats.persistentBytes = stagedBytes(memory);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind == BufferKind::Persistent && !packing.transient[i])
      persistentBytes += alignedSize(memory.buffers[i].bytes());
    if (plan.isMapped(plan.buffers[i]) && packing.readInRuns[i])
      stats.weightBytes += memory.buffers[i].box.volume() * elementSize(plan.buffers[i].type);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepExecutor *executor = steps[i].executor.get();
    stats.packedBytes += executor ? executor->packedBytes() : 0;
    if (executor)
      callReports.push_back({executor->implementation(), executor->isReference(), executor->scratchUse(),
                             executor->scratchBytes(), executor->packedUse(), executor->packedBytes(),
                             executor->excessBytes()});
    else
      callReports.emplace_back();
  }

  stats.arenaBytes = planned.bytes;
  stats.startBytes = planned.startBytes;
  stats.persistentBytes += persistentBytes;
  absl::StatusOr<std::byte *> arena = allocate(stats.arenaBytes, allocations->arena);
  if (!arena.ok())
    return arena.status();
  absl::StatusOr<std::byte *> start = allocate(stats.startBytes, startMemory);
  if (!start.ok())
    return start.status();
  absl::StatusOr<std::byte *> persistent = allocate(persistentBytes, allocations->persistent);
  if (!persistent.ok())
    return persistent.status();
  packer.emplace(*program, memory, communicator, *backend, steps);
  absl::StatusOr<std::shared_ptr<std::byte>> packed = packer->allocate();
  if (!packed.ok())
    return ofRank(memory.rank, packed.status());
  allocations->packed = *std::move(packed);
  if (plan.numChecks > 0) {
    absl::StatusOr<std::shared_ptr<std::byte>> allocated = backend->allocateShared(plan.numChecks * sizeof(int64_t));
    if (!allocated.ok())
      return ofRank(memory.rank, allocated.status());
    records = *std::move(allocated);
    memory.records = reinterpret_cast<int64_t *>(records.get());
    std::fill_n(memory.records, plan.numChecks, 0);
  }
  if (backend->usesHostMemory()) {
    lengths.assign(plan.counts.size(), 0);
    memory.lengths = lengths.data();
  }
  int64_t used = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    MemoryView &view = memory.buffers[i];
    if (view.box.empty())
      continue;
    if (packing.transient[i]) {
      view.data = *start + items[i].offset;
    } else if (plan.buffers[i].kind == BufferKind::Arena && items[i].bytes > 0) {
      view.data = *arena + items[i].offset;
    } else if (plan.buffers[i].kind == BufferKind::Persistent) {
      view.data = *persistent + used;
      used += alignedSize(view.bytes());
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramSession::bind() {
  for (std::vector<PreparedStep> *list : {&prologue, &steps})
    for (PreparedStep &step : *list)
      if (step.executor)
        if (absl::Status status = step.executor->bind(allocations->arena.get() + items[step.scratchItem].offset);
            !status.ok())
          return annotate(*step.info, status);
  for (const PortInfo &port : arguments) {
    auto transfer = backend->createUpload(memory.memory(port.tensor), memory.box(port.tensor));
    if (!transfer.ok())
      return transfer.status();
    uploads.push_back(*std::move(transfer));
  }
  for (const PortInfo &port : results) {
    auto transfer = backend->createDownload(memory.memory(port.tensor), memory.box(port.tensor));
    if (!transfer.ok())
      return transfer.status();
    downloads.push_back(*std::move(transfer));
  }
  if (absl::Status status = sequence.prepare(memory, *backend, steps, /*records=*/!options.trace); !status.ok())
    return status;
  return feedback.prepare(memory, *backend, uploads);
}

absl::Status ProgramSession::prepare() {
  if (!program->isExecutable())
    return absl::FailedPreconditionError("the program was loaded for inspection; load it again to run it");
  if (communicator.size() != program->numRanks())
    return absl::InvalidArgumentError(
        absl::StrCat("the program is for ", program->numRanks(), " ranks, not ", communicator.size()));
  auto created = plan.isForDevice() ? createDeviceBackend(*program, memory.rank, options)
                                    : createHostBackend(*program, memory.rank, options);
  if (!created.ok())
    return created.status();
  backend = *std::move(created);
  communicator.keep(allocations);
  // Weights that ranks exchange are read where the artifact is mapped.
  communicator.keep(std::const_pointer_cast<Program>(program));
  if (absl::Status status = prepareConstants(); !status.ok())
    return status;
  if (absl::Status status = prepareSteps(plan.prologue, /*inPrologue=*/true, prologue); !status.ok())
    return status;
  if (absl::Status status = prepareSteps(plan.steps, /*inPrologue=*/false, steps); !status.ok())
    return status;
  if (absl::Status status = allocate(); !status.ok())
    return status;
  if (absl::Status status = bind(); !status.ok())
    return status;
  if (absl::Status status = checkWaits(plan, memory.rank, items, "prologue step", prologue); !status.ok())
    return status;
  if (absl::Status status = checkWaits(plan, memory.rank, items, "step", steps); !status.ok())
    return status;
  // What is only packed is checked then, unless somebody else packs it.
  for (const StepInfo &step : plan.steps)
    if (absl::Status status = checkConstants(step, /*inRuns=*/true); !status.ok())
      return status;
  for (const PortInfo &port : results)
    if (absl::Status status = checkConstant(port.tensor, memory.box(port.tensor)); !status.ok())
      return status;
  for (const PortInfo &port : plan.inputs)
    if (port.fedBy >= 0)
      if (absl::Status status = checkConstant(port.next, memory.box(port.next)); !status.ok())
        return status;
  stepTimes.resize(options.trace ? steps.size() : 0);
  communicator.enterStep("start-up");
  // But for the memory of the prologue, which is given back.
  if (backend->usesHostMemory()) {
    communicator.offer(allocations->arena.get(), stats.arenaBytes);
    communicator.offer(allocations->persistent.get(), stats.persistentBytes - stagedBytes(memory));
    communicator.offer(allocations->constants.get(), stats.copiedBytes);
  }
  if (absl::Status status = communicator.connect(); !status.ok())
    return status;
  stats.messageBytes = communicator.messageBytes();
  if (absl::Status status = runPrologue(); !status.ok())
    return status;
  for (size_t i = 0; options.explain && i < steps.size(); ++i)
    if (steps[i].executor)
      callReports[i].library = steps[i].executor->report();
  return absl::OkStatus();
}

void ProgramSession::noteNodes(size_t position, GraphNodes &before) {
  // A report may lack nodes: an error here does not end the run.
  absl::StatusOr<std::optional<GraphNodes>> nodes = backend->recordedNodes();
  if (!nodes.ok() || !*nodes)
    return;
  callReports[position].nodes = **nodes - before;
  before = **nodes;
}

absl::Status ProgramSession::prepareOnce(bool again) {
  auto release = [&](uint32_t buffer) {
    const BufferInfo &info = plan.buffers[buffer];
    if (packing.transient[buffer]) {
      // What is as large as others together is not worth new pages for these.
      if (int64_t bytes = memory.buffers[buffer].bytes(); bytes > 2 * stats.arenaBytes)
        releasePages(memory.buffers[buffer].data, bytes);
      return;
    }
    program->releaseWeights(info.dataOffset, layout::Box::ofShape(info.shape).volume() * elementSize(info.type));
  };
  auto check = [&](const StepInfo &step) { return checkConstants(step); };
  // When the artifact was checked, all of it was read. Where that and what the prologue makes are more than what the
  // session takes later, weights are in memory from when they are needed.
  std::vector<uint32_t> mapped;
  int64_t mappedBytes = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    if (plan.isMapped(plan.buffers[i]) && !packing.readInRuns[i]) {
      mapped.push_back(i);
      mappedBytes += memory.buffers[i].box.volume() * elementSize(plan.buffers[i].type);
    }
  if (!again && mappedBytes + stats.startBytes > stats.arenaBytes + stats.packedBytes)
    for (uint32_t buffer : mapped)
      release(buffer);
  for (size_t position = 0; position < packing.pauses.size(); ++position) {
    // It is needed again if somebody gives up, so only its pages are free.
    if (position > prologue.size() && startMemory)
      releasePages(startMemory.get(), stats.startBytes);
    if (absl::Status status = packer->pack(packing.pauses[position], check, release, again); !status.ok())
      return status;
    if (position >= prologue.size())
      continue;
    const PackingPlan::Purpose &purpose = packing.purposes[position];
    bool isNeeded = purpose.always && !again;
    for (size_t step : purpose.packs)
      isNeeded |= packer->packs(step, again);
    if (!isNeeded)
      continue;
    absl::Status status = check(*prologue[position].info);
    if (status.ok())
      status = runStep(prologue[position]);
    // What an exchange brings may be packed next.
    if (status.ok() && prologue[position].exchange)
      status = prologue[position].exchange->join();
    if (status.ok())
      status = backend->finish();
    if (!status.ok())
      return communicator.state().ok() ? annotate(*prologue[position].info, status) : communicator.state();
  }
  return backend->finish();
}

absl::Status ProgramSession::runPrologue() {
  absl::StatusOr<bool> complete = false;
  for (bool again = false; complete.ok() && !*complete; again = true) {
    absl::Status status = prepareOnce(again);
    packer->giveUp();
    if (!status.ok())
      return status;
    complete = packer->waitForOthers();
  }
  startMemory.reset();
  return complete.ok() ? takeReport() : complete.status();
}

absl::Status ProgramSession::takeReport() {
  if (std::all_of(memory.records, memory.records + plan.numChecks, [](int64_t index) { return index == 0; }))
    return absl::OkStatus();
  absl::Status report;
  for (const std::vector<PreparedStep> *list : {&prologue, &steps})
    for (const PreparedStep &step : *list)
      if (const auto *call = std::get_if<KernelCall>(&step.info->action))
        for (size_t i = 0; i < call->checks.size(); ++i) {
          int64_t index = std::exchange(memory.records[call->firstCheck + i], 0);
          if (index != 0 && report.ok())
            report = absl::InvalidArgumentError(absl::StrCat(
                "rank ", memory.rank, ", ", call->checks[i].describe(index, *step.info, !plan.counts.empty())));
        }
  return report;
}

absl::StatusOr<std::unique_ptr<Session>> Session::create(std::shared_ptr<const Program> program,
                                                         Communicator &communicator, SessionOptions options) {
  auto session = std::make_unique<ProgramSession>(std::move(program), communicator, options);
  if (absl::Status status = session->prepare(); !status.ok()) {
    session->keepStartMemory();
    return communicator.abort(status);
  }
  return std::unique_ptr<Session>(std::move(session));
}
