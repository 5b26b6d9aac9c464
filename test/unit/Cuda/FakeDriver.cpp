//===- FakeDriver.cpp - A CUDA driver for tests ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stands in for libcuda.so.1: memory is the host's, streams do their work at once or record it, and the runtime's own
// kernels are run by their host build. Compiled with other values of FAKE_VERSION and FAKE_DEVICES it is too old, or
// has no device.
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"
#include "FakeDriverStreams.h"
#include "FakeKernels.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace dovetail::runtime::device;
using namespace dovetail::test;

FakeDriverLog dovetail::test::theLog;
thread_local std::vector<CUcontext> dovetail::test::contexts;

namespace {

struct FakeFunction {
  std::string name;
};
struct FakeModule {
  std::vector<FakeFunction *> functions;
};

std::mutex logMutex;

/// Memory of devices and pinned memory of the host, by address, and which device may use that of which other.
struct Memories {
  struct Range {
    uintptr_t end;
    int device; ///< Negative: the host's.
  };
  std::mutex mutex;
  std::map<uintptr_t, Range> ranges;
  std::set<std::pair<int, int>> peers;

  void add(const void *address, size_t bytes, int device) {
    std::lock_guard lock(mutex);
    auto begin = reinterpret_cast<uintptr_t>(address);
    ranges[begin] = {begin + bytes, device};
  }
  void remove(const void *address) {
    std::lock_guard lock(mutex);
    ranges.erase(reinterpret_cast<uintptr_t>(address));
  }
  const Range *find(const void *address) {
    auto place = reinterpret_cast<uintptr_t>(address);
    auto next = ranges.upper_bound(place);
    return next != ranges.begin() && place < std::prev(next)->second.end ? &std::prev(next)->second : nullptr;
  }
  /// Whether kernels of `device` reach an address; those that nobody allocated are taken for its own.
  bool reaches(int device, const void *address) {
    std::lock_guard lock(mutex);
    const Range *range = find(address);
    return !range || range->device < 0 || range->device == device || peers.count({device, range->device});
  }
};

Memories &memories() {
  static auto *instance = new Memories;
  return *instance;
}

int deviceOf(CUcontext context) { return static_cast<int>(reinterpret_cast<uintptr_t>(context) - 0x1000); }

template <typename T> T parameter(void **parameters, int index) { return *static_cast<T *>(parameters[index]); }

/// Whether `device` reaches all that a kernel with a table of boxes touches.
bool reachesJobs(int device, const std::string &name, const std::vector<int64_t> &numbers) {
  auto *jobs = reinterpret_cast<const BoxJob *>(numbers[0]);
  int64_t count = name == "dovetail_copy_boxes" ? numbers[1] + numbers[3] : numbers[1];
  for (int64_t i = 0; i < count; ++i)
    if (!memories().reaches(device, reinterpret_cast<void *>(jobs[i].target)) ||
        !memories().reaches(device, reinterpret_cast<void *>(jobs[i].source)))
      return false;
  return true;
}

} // namespace

extern "C" {

FakeDriverLog *fakeDriverLog() { return &theLog; }

CUresult cuInit(unsigned) { return FAKE_DEVICES == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *version) {
  *version = FAKE_VERSION;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char **name) {
  *name = error == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char **text) {
  *text = "a fake error";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) {
  *count = FAKE_DEVICES;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char *name, int, CUdevice) {
  std::strcpy(name, "Fake 9000");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  std::memset(uuid, 0, sizeof(*uuid));
  uuid->bytes[15] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = 9;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = 0;
    break;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 2;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = 100 << 10;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
    *value = 32;
    break;
  default:
    *value = 1024;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t *bytes, CUdevice) {
  *bytes = size_t(1) << 30;
  return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int *can, CUdevice, CUdevice) {
  *can = FAKE_DEVICES > 1 && !std::getenv("FAKE_NO_PEERS");
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  *context = reinterpret_cast<CUcontext>(uintptr_t(0x1000) + device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext context) {
  contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext *context) {
  *context = contexts.back();
  contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize() { return CUDA_SUCCESS; }
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
  std::lock_guard lock(memories().mutex);
  bool isNew = memories().peers.insert({deviceOf(contexts.back()), deviceOf(peer)}).second;
  return isNew ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}
CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address) {
  std::lock_guard lock(memories().mutex);
  const Memories::Range *range = memories().find(reinterpret_cast<void *>(address));
  if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    *static_cast<CUmemorytype *>(data) = range && range->device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  else
    *static_cast<int *>(data) = range ? range->device : theLog.owner;
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t *free, size_t *total) {
  *free = size_t(1) << 29;
  *total = size_t(1) << 30;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  if (contexts.empty())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (captures)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (bytes > size_t(1) << 29)
    return CUDA_ERROR_OUT_OF_MEMORY;
  ++theLog.allocations;
  *address = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  memories().add(reinterpret_cast<void *>(*address), bytes, deviceOf(contexts.back()));
  return CUDA_SUCCESS;
}
CUresult cuMemFree(CUdeviceptr address) {
  if (captures)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  memories().remove(reinterpret_cast<void *>(address));
  --theLog.allocations;
  std::free(reinterpret_cast<void *>(address));
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  if (captures)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  ++theLog.allocations;
  *address = std::malloc(bytes);
  memories().add(*address, bytes, -1);
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void *address) {
  memories().remove(address);
  --theLog.allocations;
  std::free(address);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoD(CUdeviceptr target, const void *source, size_t bytes) {
  if (captures)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::memcpy(reinterpret_cast<void *>(target), source, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void *target, CUdeviceptr source, size_t bytes) {
  if (captures)
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::memcpy(target, reinterpret_cast<void *>(source), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
  auto copy = [=] {
    ++theLog.copies;
    std::memmove(reinterpret_cast<void *>(target), reinterpret_cast<void *>(source), bytes);
  };
  return perform(stream, copy, CU_GRAPH_NODE_TYPE_MEMCPY);
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
  return perform(stream, [=] { function(data); });
}
CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t bytes, CUstream stream) {
  auto fill = [=] {
    ++theLog.fills;
    std::memset(reinterpret_cast<void *>(target), value, bytes);
  };
  return perform(stream, fill, CU_GRAPH_NODE_TYPE_MEMSET);
}
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned options, CUjit_option *option,
                            void **values) {
  std::string text(static_cast<const char *>(image));
  if (text.find("BROKEN") != std::string::npos) {
    for (unsigned i = 0; i < options; ++i)
      if (option[i] == CU_JIT_ERROR_LOG_BUFFER)
        std::strcpy(static_cast<char *>(values[i]), "ptxas fatal: it is broken");
    return CUDA_ERROR_INVALID_PTX;
  }
  std::lock_guard lock(logMutex);
  theLog.lastImage = text.substr(0, 40);
  *module = reinterpret_cast<CUmodule>(new FakeModule);
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  auto *fake = reinterpret_cast<FakeModule *>(module);
  for (FakeFunction *function : fake->functions)
    delete function;
  delete fake;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  if (std::strstr(name, "missing"))
    return CUDA_ERROR_NOT_FOUND;
  auto *made = new FakeFunction{name};
  reinterpret_cast<FakeModule *>(module)->functions.push_back(made);
  *function = reinterpret_cast<CUfunction>(made);
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction) {
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 512 : 1024;
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; }
CUresult cuLaunchKernel(CUfunction function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                        unsigned shared, CUstream stream, void **parameters, void **) {
  std::string name = reinterpret_cast<FakeFunction *>(function)->name;
  int count = dovetail::test::kernelParameters(name, theLog.parameters);
  std::vector<int64_t> numbers;
  for (int i = 0; i < count; ++i)
    numbers.push_back(parameter<int64_t>(parameters, i));
  {
    std::lock_guard lock(logMutex);
    theLog.lastShared = shared;
    std::memcpy(theLog.lastParameters, numbers.data(), numbers.size() * sizeof(int64_t));
  }
  if (name == "dovetail_post_ops")
    return perform(stream, dovetail::test::postOps(blocks, threads, parameters, theLog));
  bool hasJobs = name == "dovetail_copy_boxes" || name == "dovetail_combine_boxes";
  if (hasJobs && !contexts.empty() && !reachesJobs(deviceOf(contexts.back()), name, numbers))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  return perform(stream, [=] {
    ++theLog.launches;
    theLog.clock += theLog.launchTime;
    dovetail::test::runKernel(name, blocks, threads, shared, numbers);
  });
}
}
