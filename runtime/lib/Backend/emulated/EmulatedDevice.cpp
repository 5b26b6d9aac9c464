//===- EmulatedDevice.cpp - A device for tests, on the CPU ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the device plug-in for target `emulated`: kernels for blocks of threads, executed on the CPU with all the
// checks that a real device does without.
//
//===----------------------------------------------------------------------===//

#include "BlockRunner.h"

#include "EmulatedMemory.h"
#include "EmulatedStream.h"
#include "TransformCall.h"
#include "dovetail/runtime/PluginBuild.h"

#include "../../Memory/BoxTasks.h"
#include "../../Program/CodeObject.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <cstdlib>
#include <cstring>

using namespace dovetail::runtime;
using namespace dovetail::runtime::emulated;

namespace {

/// Few blocks: each does several rounds of a kernel's loop.
constexpr int64_t maxBlocks = 5;
/// What the smallest of today's data-centre GPUs has.
constexpr int64_t maxSharedBytes = 163 << 10;
constexpr int dlpackExtension = 12; // kDLExtDev

class LaunchTask : public HostTask {
public:
  LaunchTask(BlockRunner &runner, DovetailBlockKernel kernel, LaunchDescription launch)
      : runner(runner), kernel(kernel), launch(std::move(launch)) {}
  absl::Status perform() override { return runner.run(kernel, launch); }

private:
  BlockRunner &runner;
  DovetailBlockKernel kernel;
  LaunchDescription launch;
};

class EmulatedCode : public DeviceCode {
public:
  EmulatedCode(std::unique_ptr<CodeObject> object, BlockRunner &runner)
      : object(std::move(object)), runner(runner), data(this->object->loadedRanges()) {}

  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareLaunch(const std::string &symbol,
                                                            LaunchDescription launch) override {
    void *address = object->lookup(symbol.c_str());
    if (!address)
      return absl::DataLossError(absl::StrCat("damaged plan: there is no kernel '", symbol, "' in the code section"));
    if (launch.sharedBytes > maxSharedBytes)
      return absl::FailedPreconditionError(absl::StrCat("kernel '", symbol, "' needs ", launch.sharedBytes,
                                                        " bytes of shared memory, but the device has ",
                                                        maxSharedBytes));
    for (absl::Span<const std::byte> range : data)
      launch.regions.push_back({"the kernels' constants", range.data(), static_cast<int64_t>(range.size()), false});
    return std::make_unique<EmulatedWork>(
        std::make_unique<LaunchTask>(runner, reinterpret_cast<DovetailBlockKernel>(address), std::move(launch)));
  }

private:
  std::unique_ptr<CodeObject> object;
  BlockRunner &runner;
  std::vector<absl::Span<const std::byte>> data; ///< Where constants are.
};

class EmulatedDevice : public Device {
public:
  EmulatedDevice(int ordinal, uint64_t seed) : seed(seed), runner(seed) {
    deviceInfo.target = "emulated";
    deviceInfo.name = "emulated device";
    deviceInfo.description = "emulates a device on the CPU, for tests only";
    deviceInfo.arch = "emulated";
    deviceInfo.memoryBytes = int64_t(1) << 34;
    deviceInfo.maxBlocks = maxBlocks;
    deviceInfo.maxSharedBytes = maxSharedBytes;
    deviceInfo.capturesStreams = true;
    deviceInfo.dlpackDevice = dlpackExtension;
    deviceInfo.ordinal = ordinal;
  }

  const DeviceInfo &info() const override { return deviceInfo; }

  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(int64_t bytes) override { return allocateMemory(bytes); }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocatePinned(int64_t bytes) override { return allocateMemory(bytes); }

  absl::Status copyToDevice(std::byte *device, const std::byte *host, int64_t bytes) override {
    if (bytes > 0 && !isDeviceMemory(device, bytes))
      return absl::InternalError("copies to memory that is not the device's");
    if (bytes > 0)
      std::memcpy(device, host, bytes);
    return absl::OkStatus();
  }
  absl::Status copyToHost(std::byte *host, const std::byte *device, int64_t bytes) override {
    if (bytes > 0 && !isDeviceMemory(device, bytes))
      return absl::InternalError("copies from memory that is not the device's");
    if (bytes > 0)
      std::memcpy(host, device, bytes);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<DeviceStream>> createStream() override {
    // Each has its own.
    return std::make_unique<EmulatedStream>(seed == 0 ? 0 : seed * 1000 + ++streams);
  }
  absl::StatusOr<std::unique_ptr<DeviceEvent>> createEvent() override { return std::make_unique<EmulatedEvent>(); }

  absl::StatusOr<std::unique_ptr<DeviceCode>> loadCode(absl::Span<const CodeImage> images) override {
    for (const CodeImage &image : images) {
      if (image.kind != SectionKind::Code)
        continue;
      absl::StatusOr<std::unique_ptr<CodeObject>> object = CodeObject::load(image.bytes);
      if (!object.ok())
        return object.status();
      return std::make_unique<EmulatedCode>(*std::move(object), runner);
    }
    return absl::FailedPreconditionError("the artifact has no code for the emulated device; compile the model again");
  }

  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCopies(std::vector<StridedBox> boxes) override {
    for (const StridedBox &box : boxes)
      if (absl::Status status = checkBox(box); !status.ok())
        return status;
    return std::make_unique<EmulatedWork>(std::make_unique<CopyTask>(boxes));
  }

  absl::StatusOr<std::unique_ptr<DeviceWork>> prepareCombination(CombinationDescription description) override {
    for (const StridedBox &box : description.boxes)
      if (absl::Status status = checkBox(box); !status.ok())
        return status;
    return std::make_unique<EmulatedWork>(std::make_unique<CombinationTask>(description));
  }

  absl::StatusOr<std::unique_ptr<DeviceLibraryCall>> prepareLibraryCall(const RankMemory &memory, const StepInfo &step,
                                                                        LibraryCallOptions) override {
    if (const auto *call = std::get_if<TransformCall>(&step.action))
      return createTransform(memory, *call);
    return absl::UnimplementedError(absl::StrCat("the emulated device has no library for a step of kind ", step.kind(),
                                                 "; compile the model with --no-libraries"));
  }

  absl::Status beginCapture(DeviceStream &stream) override {
    return static_cast<EmulatedStream &>(stream).state->beginCapture();
  }
  absl::StatusOr<std::unique_ptr<DeviceWork>> endCapture(DeviceStream &stream) override {
    absl::StatusOr<std::unique_ptr<HostTask>> graph = static_cast<EmulatedStream &>(stream).state->endCapture();
    if (!graph.ok())
      return graph.status();
    return std::make_unique<EmulatedWork>(*std::move(graph));
  }

private:
  DeviceInfo deviceInfo;
  uint64_t seed, streams = 0;
  BlockRunner runner;
};

absl::StatusOr<int> countDevices() { return 2; }

absl::StatusOr<std::unique_ptr<Device>> openDevice(int ordinal) {
  // Another seed is another order of blocks and threads, and of what streams do; with 0 they do it as late as possible.
  uint64_t seed = 1;
  if (const char *variable = std::getenv("DOVETAIL_EMULATED_SEED"); variable && !absl::SimpleAtoi(variable, &seed))
    return absl::InvalidArgumentError(absl::StrCat("DOVETAIL_EMULATED_SEED is '", variable, "', not a number"));
  return std::make_unique<EmulatedDevice>(ordinal, seed);
}

class EmulatedContext : public DeviceContext {
public:
  absl::Status checkMemory(const std::byte *data, int64_t bytes) const override {
    return isDeviceMemory(data, bytes) ? absl::OkStatus() : absl::InternalError("a message leaves the device's memory");
  }
};

absl::StatusOr<std::shared_ptr<DeviceContext>> openContext(int) { return std::make_shared<EmulatedContext>(); }

} // namespace

extern "C" __attribute__((visibility("default"))) const DevicePlugin *dovetailDevicePlugin() {
  static const DevicePlugin plugin{devicePluginVersion, pluginBuild, hostMemory, countDevices, openDevice, openContext};
  return &plugin;
}
