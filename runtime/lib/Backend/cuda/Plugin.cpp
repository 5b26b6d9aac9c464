//===- Plugin.cpp - The plug-in for CUDA ----------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Libraries.h"

#include "dovetail/runtime/PluginBuild.h"

#include "absl/strings/str_cat.h"

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

constexpr int dlpackCuda = 2; // kDLCUDA

absl::StatusOr<int> countDevices() {
  absl::StatusOr<const DriverApi *> api = driver();
  if (!api.ok())
    return api.status();
  int count = 0;
  if (absl::Status status = (*api)->check((*api)->cuDeviceGetCount(&count), "cuDeviceGetCount"); !status.ok())
    return status;
  return count;
}

absl::StatusOr<std::unique_ptr<Device>> openDevice(int ordinal) {
  absl::StatusOr<int> count = countDevices();
  if (!count.ok())
    return count.status();
  if (ordinal < 0 || ordinal >= *count)
    return absl::UnavailableError(absl::StrCat("there is no GPU ", ordinal, ": the machine has ", *count));
  absl::StatusOr<std::shared_ptr<Context>> opened = Context::of(ordinal);
  if (!opened.ok())
    return opened.status();
  const Context &context = **opened;
  DeviceInfo info;
  info.target = "cuda";
  char name[256] = "";
  if (absl::Status status =
          context.check(context.api.cuDeviceGetName(name, sizeof(name), context.device), "cuDeviceGetName");
      !status.ok())
    return status;
  size_t memory = 0;
  if (absl::Status status = context.check(context.api.cuDeviceTotalMem(&memory, context.device), "cuDeviceTotalMem");
      !status.ok())
    return status;
  absl::StatusOr<int> threads = context.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
                      shared = context.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
                      blocks = context.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  for (const absl::StatusOr<int> *value : {&threads, &shared, &blocks})
    if (!value->ok())
      return value->status();
  info.name = name;
  info.arch = absl::StrCat("sm_", context.computeCapability);
  info.memoryBytes = static_cast<int64_t>(memory);
  info.multiprocessors = context.multiprocessors;
  info.maxThreads = *threads;
  info.maxSharedBytes = *shared;
  info.maxBlocks = static_cast<int64_t>(context.multiprocessors) * *blocks;
  info.capturesStreams = !context.synchronous;
  info.dlpackDevice = dlpackCuda;
  info.ordinal = ordinal;
  std::string version = cudaVersionName(context.api.version);
  info.libraries = {{"CUDA driver", version}};
  info.description = absl::StrCat("an NVIDIA ", info.name, " of ", info.arch, ", with a driver for CUDA ", version);
  return createDevice(*std::move(opened), std::move(info));
}

absl::StatusOr<std::shared_ptr<DeviceContext>> openContext(int ordinal) { return Context::of(ordinal); }

} // namespace

extern "C" __attribute__((visibility("default"))) const DevicePlugin *dovetailDevicePlugin() {
  static const DevicePlugin plugin = {devicePluginVersion, pluginBuild, "cuda",       countDevices,
                                      openDevice,          openContext, listLibraries};
  return &plugin;
}
