//===- HostBackend.cpp - Sessions on the CPU ------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../Memory/BoxTasks.h"
#include "../../Session/Arena.h"
#include "../../Session/Backend.h"
#include "../../Threads/Cores.h"
#include "../../Threads/ThreadPool.h"
#include "KernelStep.h"
#include "LibraryInstructions.h"
#include "LibrarySteps.h"
#include "LibraryThreads.h"

#include <atomic>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

class HostMove : public Move {
public:
  HostMove(const std::vector<StridedBox> &copies, const std::vector<CombinationDescription> &combinations)
      : copies(copies), combinations(combinations.begin(), combinations.end()) {}

  absl::Status run() override {
    absl::Status status = copies.perform();
    for (CombinationTask &combination : combinations)
      if (status.ok())
        status = combination.perform();
    return status;
  }

private:
  CopyTask copies;
  std::vector<CombinationTask> combinations;
};

/// Everything is done when the call returns.
class HostStream : public DeviceStream {
public:
  absl::Status wait(const DeviceEvent &) override { return absl::OkStatus(); }
  absl::Status synchronize() override { return absl::OkStatus(); }
  absl::Status call(HostTask &task) override { return task.perform(); }
};

class HostEvent : public DeviceEvent {
public:
  absl::Status record(DeviceStream &) override { return absl::OkStatus(); }
};

class HostMover : public Mover {
public:
  DeviceStream &getStream(StreamKind) override { return stream; }
  bool doesAtOnce() const override { return true; }
  absl::StatusOr<std::unique_ptr<DeviceEvent>> createEvent() override { return std::make_unique<HostEvent>(); }
  absl::StatusOr<std::shared_ptr<std::byte>> allocate(int64_t bytes) override {
    absl::StatusOr<Allocation> allocation = Allocation::create(bytes);
    if (!allocation.ok())
      return allocation.status();
    auto owner = std::make_shared<Allocation>(*std::move(allocation));
    return std::shared_ptr<std::byte>(owner, owner->data());
  }
  absl::StatusOr<std::unique_ptr<Move>> prepare(std::vector<StridedBox> copies,
                                                std::vector<CombinationDescription> combinations) override {
    return std::make_unique<HostMove>(copies, combinations);
  }

private:
  HostStream stream;
};

class HostTransfer : public PortTransfer {
public:
  HostTransfer(const MemoryView &memory, bool isInput) : memory(memory), isInput(isInput) {}

  absl::Status run(const MemoryView &host, absl::Span<const layout::Box> boxes, bool) override {
    for (const layout::Box &box : boxes)
      if (isInput)
        copyBox(memory, host, box);
      else
        copyBox(host, memory, box);
    return absl::OkStatus();
  }

private:
  const MemoryView &memory;
  bool isInput;
};

class HostBackend : public Backend {
public:
  HostBackend(const Program &program, const SessionOptions &options)
      : program(program), threads(options.threads, [processors = options.processors](int worker) {
          setLibraryThreads(1);
          if (!processors.empty())
            stayOn(processors[worker]);
        }) {
    setLibraryThreads(1);
  }

  int numThreads() const { return threads.size(); }

  bool usesHostMemory() const override { return true; }

  absl::StatusOr<std::shared_ptr<std::byte>> allocate(int64_t bytes) override { return hostMover.allocate(bytes); }

  absl::StatusOr<std::shared_ptr<std::byte>> allocateShared(int64_t bytes) override { return allocate(bytes); }

  absl::Status fill(const MemoryView &target, const MemoryView &host, const layout::Box &box) override {
    copyBox(target, host, box);
    return absl::OkStatus();
  }

  std::vector<StepExecutorOr> createSteps(const RankMemory &memory, absl::Span<const StepInfo *const> steps,
                                          bool inPrologue) override;

  Mover &mover() override { return hostMover; }

  absl::StatusOr<std::unique_ptr<PortTransfer>> createUpload(const MemoryView &memory, const layout::Box &) override {
    return std::make_unique<HostTransfer>(memory, /*isInput=*/true);
  }
  absl::StatusOr<std::unique_ptr<PortTransfer>> createDownload(const MemoryView &memory, const layout::Box &) override {
    return std::make_unique<HostTransfer>(memory, /*isInput=*/false);
  }

  absl::Status finish() override { return absl::OkStatus(); }

private:
  StepExecutorOr createStep(const RankMemory &memory, const StepInfo &step, bool inPrologue) {
    if (const auto *call = std::get_if<KernelCall>(&step.action))
      return createKernelStep(memory, *call, program.getKernel(call->symbol), threads);
    return createLibraryStep(memory, step, inPrologue, threads);
  }

  const Program &program;
  ThreadPool threads;
  HostMover hostMover;
};

} // namespace

std::vector<StepExecutorOr> HostBackend::createSteps(const RankMemory &memory, absl::Span<const StepInfo *const> steps,
                                                     bool inPrologue) {
  // Libraries generate code for each of their calls, which takes a large part of the time to start.
  std::vector<StepExecutorOr> executors(steps.size());
  std::atomic<size_t> next = 0;
  auto createNext = [&](int) {
    for (size_t i; (i = next.fetch_add(1)) < steps.size();)
      executors[i] = createStep(memory, *steps[i], inPrologue);
  };
  threads.run(
      threads.size(), [](void *context, int part) { (*static_cast<decltype(createNext) *>(context))(part); },
      &createNext);
  return executors;
}

absl::StatusOr<std::unique_ptr<Backend>> dovetail::runtime::createHostBackend(const Program &program, int rank,
                                                                              SessionOptions options) {
  if (options.autotune)
    return absl::InvalidArgumentError(absl::StrCat("autotune is for devices, but the program is for target '",
                                                   hostTarget, "', for which `dovetail compile --autotune` measures"));
  if (absl::Status status = limitLibrary(); !status.ok())
    return status;
  auto backend = std::make_unique<HostBackend>(program, options);
  if (backend->numThreads() < options.threads)
    return absl::ResourceExhaustedError(absl::StrCat("rank ", rank, " cannot start ", options.threads,
                                                     " threads, but only ", backend->numThreads(), "; give it fewer"));
  return backend;
}
