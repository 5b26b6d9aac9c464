//===- DriverApi.h - Functions of the CUDA driver ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the functions of libcuda.so.1 that the plug-in calls, found at run time.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_DRIVERAPI_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_DRIVERAPI_H

#include "../../Plugin/DynamicLibrary.h"

#include <cuda.h>

// Its second version, which CUDA 12.8 brought, is missing from older drivers.
#undef cuEventElapsedTime
extern "C" CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end);

namespace dovetail::runtime::cuda {

/// The driver must know this version of CUDA.
inline constexpr int neededDriverVersion = 12000;

// cuda.h renames functions to their newest versions, here and in calls alike.
#define DOVETAIL_DRIVER_FUNCTIONS(X)                                                                                   \
  X(cuInit)                                                                                                            \
  X(cuDriverGetVersion)                                                                                                \
  X(cuGetErrorName)                                                                                                    \
  X(cuGetErrorString)                                                                                                  \
  X(cuDeviceGetCount)                                                                                                  \
  X(cuDeviceGet)                                                                                                       \
  X(cuDeviceGetName)                                                                                                   \
  X(cuDeviceGetAttribute)                                                                                              \
  X(cuDeviceTotalMem)                                                                                                  \
  X(cuDeviceCanAccessPeer)                                                                                             \
  X(cuDevicePrimaryCtxRetain)                                                                                          \
  X(cuDevicePrimaryCtxRelease)                                                                                         \
  X(cuCtxPushCurrent)                                                                                                  \
  X(cuCtxPopCurrent)                                                                                                   \
  X(cuCtxSynchronize)                                                                                                  \
  X(cuCtxEnablePeerAccess)                                                                                             \
  X(cuPointerGetAttribute)                                                                                             \
  X(cuMemGetInfo)                                                                                                      \
  X(cuMemAlloc)                                                                                                        \
  X(cuMemFree)                                                                                                         \
  X(cuMemHostAlloc)                                                                                                    \
  X(cuMemFreeHost)                                                                                                     \
  X(cuMemcpyHtoD)                                                                                                      \
  X(cuMemcpyDtoH)                                                                                                      \
  X(cuMemcpyAsync)                                                                                                     \
  X(cuMemsetD8Async)                                                                                                   \
  X(cuStreamCreate)                                                                                                    \
  X(cuStreamDestroy)                                                                                                   \
  X(cuStreamSynchronize)                                                                                               \
  X(cuStreamQuery)                                                                                                     \
  X(cuStreamWaitEvent)                                                                                                 \
  X(cuStreamBeginCapture)                                                                                              \
  X(cuStreamEndCapture)                                                                                                \
  X(cuStreamIsCapturing)                                                                                               \
  X(cuEventCreate)                                                                                                     \
  X(cuEventDestroy)                                                                                                    \
  X(cuEventRecord)                                                                                                     \
  X(cuEventSynchronize)                                                                                                \
  X(cuEventQuery)                                                                                                      \
  X(cuEventElapsedTime)                                                                                                \
  X(cuModuleLoadDataEx)                                                                                                \
  X(cuModuleUnload)                                                                                                    \
  X(cuModuleGetFunction)                                                                                               \
  X(cuFuncGetAttribute)                                                                                                \
  X(cuFuncSetAttribute)                                                                                                \
  X(cuLaunchKernel)                                                                                                    \
  X(cuGraphInstantiate)                                                                                                \
  X(cuGraphUpload)                                                                                                     \
  X(cuGraphLaunch)                                                                                                     \
  X(cuGraphExecDestroy)                                                                                                \
  X(cuGraphDestroy)

// For reports and names: older drivers lack some.
#define DOVETAIL_OPTIONAL_DRIVER_FUNCTIONS(X)                                                                          \
  X(cuDeviceGetUuid)                                                                                                   \
  X(cuStreamGetCaptureInfo)                                                                                            \
  X(cuGraphGetNodes)                                                                                                   \
  X(cuGraphNodeGetType)

/// The driver, initialised.
struct DriverApi {
#define DOVETAIL_DRIVER_MEMBER(FUNCTION) decltype(&::FUNCTION) FUNCTION = nullptr;
  DOVETAIL_DRIVER_FUNCTIONS(DOVETAIL_DRIVER_MEMBER)
  DOVETAIL_OPTIONAL_DRIVER_FUNCTIONS(DOVETAIL_DRIVER_MEMBER)
#undef DOVETAIL_DRIVER_MEMBER
  int version = 0; ///< Of CUDA, such as 13000.
  std::string path;

  /// Opens libcuda.so.1 and initialises it. Errors: UNAVAILABLE: no driver, too old, or no device that it can use.
  static absl::StatusOr<DriverApi> open();
  /// OK, or what `function` says: RESOURCE_EXHAUSTED when memory is short, else UNAVAILABLE.
  absl::Status check(CUresult result, const char *function) const;
};

/// The driver of this process, opened once.
absl::StatusOr<const DriverApi *> driver();

/// `13.0` for 13000.
std::string cudaVersionName(int version);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_DRIVERAPI_H
