//===- Context.cpp - A GPU of this process --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "KernelImages.h"

#include "absl/strings/str_cat.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;

namespace {

std::mutex contextsMutex;
/// The contexts in use, by ordinal.
std::map<int, std::weak_ptr<Context>> &openContexts() {
  static auto *contexts = new std::map<int, std::weak_ptr<Context>>;
  return *contexts;
}

} // namespace

absl::StatusOr<std::shared_ptr<Context>> Context::of(int ordinal) {
  absl::StatusOr<const DriverApi *> api = driver();
  if (!api.ok())
    return api.status();
  std::lock_guard lock(contextsMutex);
  if (std::shared_ptr<Context> context = openContexts()[ordinal].lock())
    return context;
  auto context = std::make_shared<Context>(**api, ordinal);
  if (absl::Status status = context->open(); !status.ok())
    return status;
  openContexts()[ordinal] = context;
  return context;
}

std::string Context::label() const { return absl::StrCat("GPU ", ordinal); }

absl::Status Context::check(CUresult result, const char *function) const {
  return result == CUDA_SUCCESS ? absl::OkStatus() : annotate(api.check(result, function), label());
}

absl::Status dovetail::runtime::cuda::annotate(const absl::Status &status, absl::string_view where) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

absl::StatusOr<int> Context::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  if (absl::Status status = check(api.cuDeviceGetAttribute(&value, attribute, device), "cuDeviceGetAttribute");
      !status.ok())
    return status;
  return value;
}

absl::Status Context::open() {
  if (absl::Status status = check(api.cuDeviceGet(&device, ordinal), "cuDeviceGet"); !status.ok())
    return status;
  absl::StatusOr<int> major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                      minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
                      processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  for (const absl::StatusOr<int> *value : {&major, &minor, &processors})
    if (!value->ok())
      return value->status();
  computeCapability = *major * 10 + *minor;
  multiprocessors = *processors;
  if (computeCapability < 80)
    return absl::UnavailableError(
        absl::StrCat(label(), " has architecture sm_", computeCapability, "; sm_80 (Ampere) or newer is needed"));
  const char *wait = std::getenv("DOVETAIL_CUDA_SYNCHRONOUS");
  synchronous = wait && *wait && std::strcmp(wait, "0") != 0;
  if (absl::Status status = check(api.cuDevicePrimaryCtxRetain(&handle, device), "cuDevicePrimaryCtxRetain");
      !status.ok())
    return status;
  if (absl::Status status = connectPeers(); !status.ok())
    return status;
  return loadKernels();
}

std::string Context::uniqueName() const {
  CUuuid uuid = {};
  if (!api.cuDeviceGetUuid || api.cuDeviceGetUuid(&uuid, device) != CUDA_SUCCESS)
    return {};
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i)
    absl::StrAppend(&text, i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                    absl::Hex(static_cast<unsigned char>(uuid.bytes[i]), absl::kZeroPad2));
  return text;
}

Context::~Context() {
  if (!handle)
    return;
  {
    DeviceScope scope(*this);
    if (kernels)
      api.cuModuleUnload(kernels);
  }
  api.cuDevicePrimaryCtxRelease(device);
}

absl::Status Context::connectPeers() {
  auto connect = [](const Context &from, const Context &to) {
    int can = 0;
    if (absl::Status status =
            from.check(from.api.cuDeviceCanAccessPeer(&can, from.device, to.device), "cuDeviceCanAccessPeer");
        !status.ok() || !can)
      return status;
    DeviceScope scope(from);
    CUresult result = from.api.cuCtxEnablePeerAccess(to.handle, 0);
    // Others in this process may have done it.
    if (result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
      return absl::OkStatus();
    return from.check(result, "cuCtxEnablePeerAccess");
  };
  for (auto &[other, entry] : openContexts()) {
    std::shared_ptr<Context> peer = other == ordinal ? nullptr : entry.lock();
    if (!peer)
      continue;
    if (absl::Status status = connect(*this, *peer); !status.ok())
      return status;
    if (absl::Status status = connect(*peer, *this); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

absl::Status Context::loadKernels() {
  absl::StatusOr<CUmodule> module = loadImages(*this, kernelImages());
  if (!module.ok())
    return module.status();
  kernels = *module;
  DeviceScope scope(*this);
  for (auto [function, name] : {std::pair{&copyBoxes, "dovetail_copy_boxes"},
                                {&combineBoxes, "dovetail_combine_boxes"},
                                {&postOps, "dovetail_post_ops"}})
    if (absl::Status status = check(api.cuModuleGetFunction(function, kernels, name), "cuModuleGetFunction");
        !status.ok())
      return status;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<std::byte>> Context::allocate(int64_t bytes) const {
  if (bytes <= 0)
    return std::shared_ptr<std::byte>();
  DeviceScope scope(*this);
  CUdeviceptr address = 0;
  CUresult result = api.cuMemAlloc(&address, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    api.cuMemGetInfo(&free, &total);
    return absl::ResourceExhaustedError(absl::StrCat(label(), ": ", bytes, " bytes of memory are needed, but only ",
                                                     free, " of ", total, " are free; split the model over more GPUs"));
  }
  if (absl::Status status = check(result, "cuMemAlloc"); !status.ok())
    return status;
  return std::shared_ptr<std::byte>(reinterpret_cast<std::byte *>(address),
                                    [self = shared_from_this()](std::byte *memory) {
                                      DeviceScope scope(*self);
                                      self->api.cuMemFree(reinterpret_cast<CUdeviceptr>(memory));
                                    });
}

absl::Status Context::upload(std::byte *device, const void *host, int64_t bytes) const {
  if (bytes <= 0)
    return absl::OkStatus();
  DeviceScope scope(*this);
  absl::Status status = check(api.cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(device), host, bytes), "cuMemcpyHtoD");
  // A copy from pageable memory returns when the bytes are staged; streams of sessions do not wait for it.
  return status.ok() ? check(api.cuStreamSynchronize(CU_STREAM_LEGACY), "cuStreamSynchronize") : status;
}

absl::Status Context::checkReach(const std::byte *address) const {
  DeviceScope scope(*this);
  CUmemorytype type{};
  int owner = ordinal;
  auto pointer = reinterpret_cast<CUdeviceptr>(address);
  if (api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) != CUDA_SUCCESS)
    return absl::UnimplementedError(absl::StrCat(label(), " cannot reach memory that CUDA does not know"));
  if (type == CU_MEMORYTYPE_HOST)
    return absl::OkStatus();
  if (absl::Status status = check(api.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer),
                                  "cuPointerGetAttribute");
      !status.ok())
    return status;
  int can = owner == ordinal;
  CUdevice peer;
  if (!can &&
      (api.cuDeviceGet(&peer, owner) != CUDA_SUCCESS || api.cuDeviceCanAccessPeer(&can, device, peer) != CUDA_SUCCESS))
    can = 0;
  if (!can)
    return absl::UnimplementedError(absl::StrCat(label(), " cannot read the memory of GPU ", owner,
                                                 " directly; run the ranks as processes, with --comm nccl"));
  // Whoever opens a context connects it with its peers; callers may own memory where no rank runs.
  return owner == ordinal ? absl::OkStatus() : of(owner).status();
}
