//===- Context.h - A GPU of this process ------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what all sessions on a GPU share: its primary context, and the runtime's own kernels on it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_CONTEXT_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_CONTEXT_H

#include "DriverApi.h"

#include "dovetail/runtime/Device.h"

#include <memory>

namespace dovetail::runtime::cuda {

inline CUstream handleOf(DeviceStream &stream) { return static_cast<CUstream>(stream.nativeHandle()); }

class Context : public DeviceContext, public std::enable_shared_from_this<Context> {
public:
  Context(const DriverApi &api, int ordinal) : api(api), ordinal(ordinal) {}
  ~Context() override;
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  /// The context of a device, which all sessions share as long as one of them lives. Thread-safe.
  static absl::StatusOr<std::shared_ptr<Context>> of(int ordinal);

  void enter() const override { api.cuCtxPushCurrent(handle); }
  void leave() const override {
    CUcontext popped;
    api.cuCtxPopCurrent(&popped);
  }

  std::string uniqueName() const override;

  /// OK, or what the driver says, after the name of the device.
  absl::Status check(CUresult result, const char *function) const;
  /// Device memory is freed with the last use of the result.
  absl::StatusOr<std::shared_ptr<std::byte>> allocate(int64_t bytes) const;
  /// Returns when the bytes are there. For start-up only.
  absl::Status upload(std::byte *device, const void *host, int64_t bytes) const;
  absl::StatusOr<int> attribute(CUdevice_attribute attribute) const;
  /// Whether kernels of this device can reach `address`, memory of a device or pinned memory of the host. If not,
  /// UNIMPLEMENTED says why.
  absl::Status checkReach(const std::byte *address) const;

  /// `GPU 0`, as in messages.
  std::string label() const;

  const DriverApi &api;
  const int ordinal;
  CUdevice device = 0;
  CUcontext handle = nullptr;
  int computeCapability = 0; ///< Such as 90.
  int multiprocessors = 1;
  bool synchronous = false; ///< DOVETAIL_CUDA_SYNCHRONOUS: wait for each step, so that errors name it.
  CUfunction copyBoxes = nullptr, combineBoxes = nullptr, postOps = nullptr;

private:
  absl::Status open();
  absl::Status connectPeers();
  absl::Status loadKernels();

  CUmodule kernels = nullptr;
};

/// Loads the best of the images. Errors: FAILED_PRECONDITION when none is for this device, with the compiler's log.
absl::StatusOr<CUmodule> loadImages(const Context &context, absl::Span<const CodeImage> images);

/// Returns `status` with the place that it happened at before its message.
absl::Status annotate(const absl::Status &status, absl::string_view where);

std::unique_ptr<Device> createDevice(std::shared_ptr<Context> context, DeviceInfo info);
absl::StatusOr<std::unique_ptr<DeviceCode>> createCode(std::shared_ptr<Context> context,
                                                       absl::Span<const CodeImage> images);
absl::StatusOr<std::unique_ptr<DeviceWork>> createCopies(std::shared_ptr<Context> context,
                                                         std::vector<StridedBox> boxes);
absl::StatusOr<std::unique_ptr<DeviceWork>> createCombination(std::shared_ptr<Context> context,
                                                              CombinationDescription description);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_CONTEXT_H
