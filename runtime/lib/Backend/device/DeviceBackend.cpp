//===- DeviceBackend.cpp - Sessions on devices ----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../../Session/Backend.h"
#include "../../Session/KernelArguments.h"
#include "../common/DeviceStaging.h"
#include "DeviceMover.h"
#include "DeviceTransfer.h"

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

class DeviceKernelStep : public StepExecutor {
public:
  DeviceKernelStep(const RankMemory &memory, const StepInfo &step, const DeviceInfo &info, DeviceCode &code,
                   DeviceStream &stream)
      : memory(memory), step(step), info(info), code(code), stream(stream) {}

  absl::Status bind(std::byte *) override {
    const auto &call = std::get<KernelCall>(step.action);
    KernelArguments arguments = kernelArguments(memory, call);
    LaunchDescription launch;
    launch.name = absl::StrCat("rank ", memory.rank, ", kernel '", step.title(), "'");
    launch.blocks = call.blocks->blockCount(arguments.ranges, info.maxBlocks);
    launch.threads = call.blocks->threads;
    launch.sharedBytes = call.blocks->sharedBytes;
    launch.pointers = std::move(arguments.pointers);
    launch.numbers = std::move(arguments.numbers);
    addRegions(call.reads, /*written=*/false, launch.regions);
    addRegions(call.writes, /*written=*/true, launch.regions);
    if (!call.checks.empty())
      launch.regions.push_back({"the records of checks",
                                reinterpret_cast<const std::byte *>(memory.records + call.firstCheck),
                                static_cast<int64_t>(call.checks.size() * sizeof(int64_t)), /*written=*/true});
    absl::StatusOr<std::unique_ptr<DeviceWork>> prepared = code.prepareLaunch(call.symbol, std::move(launch));
    if (prepared.ok())
      work = *std::move(prepared);
    return prepared.status();
  }

  absl::Status run() override { return work->issue(stream); }

private:
  void addRegions(const std::vector<uint32_t> &tensors, bool written, std::vector<DeviceRegion> &regions) const {
    for (uint32_t tensor : tensors)
      if (const MemoryView &view = memory.memory(tensor); view.bytes() > 0)
        regions.push_back({memory.name(tensor), view.data, view.bytes(), written});
  }

  const RankMemory &memory;
  const StepInfo &step;
  const DeviceInfo &info;
  DeviceCode &code;
  DeviceStream &stream;
  std::unique_ptr<DeviceWork> work;
};

class DeviceReorderStep : public StepExecutor {
public:
  DeviceReorderStep(const RankMemory &memory, const ReorderCall &call, Device &device, DeviceStream &stream)
      : memory(memory), call(call), device(device), stream(stream) {}

  absl::Status bind(std::byte *) override {
    const MemoryView &target = memory.memory(call.target), &source = memory.memory(call.source);
    std::vector<BoxPair> pairs;
    BoxPair::append(target, source, memory.box(call.target), pairs);
    absl::StatusOr<std::unique_ptr<DeviceWork>> prepared =
        device.prepareCopies(stridedBoxes(pairs, target.data, source.data));
    if (prepared.ok())
      work = *std::move(prepared);
    return prepared.status();
  }

  absl::Status run() override { return work->issue(stream); }

private:
  const RankMemory &memory;
  const ReorderCall &call;
  Device &device;
  DeviceStream &stream;
  std::unique_ptr<DeviceWork> work;
};

class DeviceLibraryStep : public StepExecutor {
public:
  DeviceLibraryStep(std::unique_ptr<DeviceLibraryCall> call, CallBytes bytes, DeviceStream &stream)
      : call(std::move(call)), bytes(bytes), stream(stream) {}

  int64_t scratchBytes() const override { return bytes.scratch; }
  int64_t packedBytes() const override { return bytes.packed; }
  void setPackedMemory(std::byte *memory) override { packed = memory; }
  absl::Status bind(std::byte *scratch) override { return call->bind(scratch, packed); }
  absl::Status pack() override { return call->pack(stream); }
  absl::Status run() override { return call->issue(stream); }
  LibraryCallReport report() const override { return call->report(); }

private:
  std::unique_ptr<DeviceLibraryCall> call;
  CallBytes bytes;
  std::byte *packed = nullptr;
  DeviceStream &stream;
};

class DeviceBackend : public Backend {
public:
  DeviceBackend(std::unique_ptr<Device> device, const SessionOptions &options)
      : device(std::move(device)), autotune(options.autotune), explain(options.explain) {}

  absl::Status prepare(const Program &program);

  bool usesHostMemory() const override { return false; }
  int dlpackDevice() const override { return device->info().dlpackDevice; }
  absl::StatusOr<std::shared_ptr<std::byte>> allocate(int64_t bytes) override { return deviceMover->allocate(bytes); }
  absl::StatusOr<std::shared_ptr<std::byte>> allocateShared(int64_t bytes) override {
    absl::StatusOr<std::unique_ptr<DeviceMemory>> pinned = device->allocatePinned(bytes);
    if (!pinned.ok())
      return pinned.status();
    std::shared_ptr<DeviceMemory> owner = *std::move(pinned);
    return std::shared_ptr<std::byte>(owner, owner->data());
  }
  absl::Status fill(const MemoryView &target, const MemoryView &host, const layout::Box &box) override;
  std::vector<StepExecutorOr> createSteps(const RankMemory &memory, absl::Span<const StepInfo *const> steps,
                                          bool inPrologue) override;
  Mover &mover() override { return *deviceMover; }
  absl::StatusOr<std::optional<GraphNodes>> recordedNodes() override { return device->recordedNodes(*steps); }
  absl::StatusOr<std::unique_ptr<PortTransfer>> createUpload(const MemoryView &memory,
                                                             const layout::Box &box) override {
    return createDeviceTransfer(*device, *steps, memory, box, /*isInput=*/true);
  }
  absl::StatusOr<std::unique_ptr<PortTransfer>> createDownload(const MemoryView &memory,
                                                               const layout::Box &box) override {
    return createDeviceTransfer(*device, *steps, memory, box, /*isInput=*/false);
  }
  absl::Status finish() override;

private:
  StepExecutorOr createStep(const RankMemory &memory, const StepInfo &step, bool inPrologue);
  std::unique_ptr<Device> device;
  bool autotune, explain;
  std::unique_ptr<DeviceStream> steps, moves;
  std::unique_ptr<DeviceCode> code; ///< Null when the program has no kernels.
  std::unique_ptr<DeviceMover> deviceMover;
};

} // namespace

absl::Status DeviceBackend::prepare(const Program &program) {
  for (std::unique_ptr<DeviceStream> *stream : {&steps, &moves}) {
    absl::StatusOr<std::unique_ptr<DeviceStream>> created = device->createStream();
    if (!created.ok())
      return created.status();
    *stream = *std::move(created);
  }
  deviceMover = std::make_unique<DeviceMover>(*device, *steps, *moves);
  if (program.getCode().empty())
    return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<DeviceCode>> loaded = device->loadCode(program.getCode());
  if (loaded.ok())
    code = *std::move(loaded);
  return loaded.status();
}

absl::Status DeviceBackend::fill(const MemoryView &target, const MemoryView &host, const layout::Box &box) {
  // Packed first, unless it lies in memory as it should.
  MemoryView part = host.part(box), packed = packedLike(target, box);
  if (part.strides == packed.strides)
    return device->copyToDevice(target.data, part.data, packed.bytes());
  std::vector<std::byte> copy(packed.bytes());
  packed.data = copy.data();
  copyBox(packed, host, box);
  return device->copyToDevice(target.data, packed.data, packed.bytes());
}

std::vector<StepExecutorOr> DeviceBackend::createSteps(const RankMemory &memory,
                                                       absl::Span<const StepInfo *const> infos, bool inPrologue) {
  std::vector<StepExecutorOr> executors;
  for (const StepInfo *info : infos) {
    executors.push_back(createStep(memory, *info, inPrologue));
    if (!executors.back().ok())
      break;
  }
  return executors;
}

StepExecutorOr DeviceBackend::createStep(const RankMemory &memory, const StepInfo &step, bool inPrologue) {
  if (const auto *call = std::get_if<KernelCall>(&step.action)) {
    if (hasNothingToDo(memory, *call))
      return nullptr;
    if (!code)
      return absl::DataLossError(
          absl::StrCat("damaged artifact: there is no code with the kernel '", call->symbol, "'"));
    return std::make_unique<DeviceKernelStep>(memory, step, device->info(), *code, *steps);
  }
  if (const auto *call = std::get_if<ReorderCall>(&step.action)) {
    layout::Box box = memory.box(call->target);
    if (box.empty())
      return nullptr;
    if (absl::Status status = memory.checkHeld(call->source, box); !status.ok())
      return status;
    return std::make_unique<DeviceReorderStep>(memory, *call, *device, *steps);
  }
  absl::StatusOr<CallBytes> bytes = stagedCallBytes(memory, step, inPrologue);
  if (!bytes.ok())
    return bytes.status();
  absl::StatusOr<std::unique_ptr<DeviceLibraryCall>> call =
      device->prepareLibraryCall(memory, step, {inPrologue, autotune, explain});
  if (!call.ok())
    return call.status();
  if (!*call)
    return nullptr;
  return std::make_unique<DeviceLibraryStep>(*std::move(call), *bytes, *steps);
}

absl::Status DeviceBackend::finish() {
  // Both, even after an error: callers take back what the work uses.
  absl::Status ofSteps = steps->synchronize(), ofMoves = moves->synchronize();
  return ofSteps.ok() ? ofMoves : ofSteps;
}

absl::StatusOr<CallBytes> dovetail::runtime::deviceCallBytes(const RankMemory &memory, const StepInfo &step,
                                                             bool inPrologue) {
  return stagedCallBytes(memory, step, inPrologue);
}

absl::StatusOr<std::unique_ptr<Backend>> dovetail::runtime::createDeviceBackend(const Program &program, int rank,
                                                                                SessionOptions options) {
  const std::string &target = program.getPlan().target;
  absl::StatusOr<const DevicePlugin *> plugin = openDevicePlugin(target);
  if (!plugin.ok())
    return plugin.status();
  absl::StatusOr<int> count = (*plugin)->countDevices();
  if (!count.ok())
    return count.status();
  if (*count == 0)
    return absl::UnavailableError(absl::StrCat("this machine has no device for target '", target, "'"));
  if (options.device >= *count)
    return absl::InvalidArgumentError(absl::StrCat("there is no device ", options.device, " for target '", target,
                                                   "', but ", *count, " in all, counted from 0"));
  absl::StatusOr<std::unique_ptr<Device>> device =
      (*plugin)->openDevice(options.device >= 0 ? options.device : rank % *count);
  if (!device.ok())
    return device.status();
  auto backend = std::make_unique<DeviceBackend>(*std::move(device), options);
  if (absl::Status status = backend->prepare(program); !status.ok())
    return status;
  return backend;
}
