//===- Libraries.h - cuBLASLt, cuDNN and cuFFT -----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the functions of cuBLASLt, cuDNN and cuFFT that the plug-in calls, found when the first step needs them.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_LIBRARIES_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_LIBRARIES_H

#include "Context.h"

#include <cublasLt.h>
#include <cudnn_graph.h>
#include <cufft.h>

#include <utility>

namespace dovetail::runtime::cuda {

#define DOVETAIL_CUBLASLT_FUNCTIONS(X)                                                                                 \
  X(cublasLtGetVersion)                                                                                                \
  X(cublasLtGetStatusString)                                                                                           \
  X(cublasLtCreate)                                                                                                    \
  X(cublasLtDestroy)                                                                                                   \
  X(cublasLtMatmul)                                                                                                    \
  X(cublasLtMatmulAlgoGetHeuristic)                                                                                    \
  X(cublasLtMatmulAlgoConfigGetAttribute)                                                                              \
  X(cublasLtMatmulAlgoCapGetAttribute)                                                                                 \
  X(cublasLtMatmulDescCreate)                                                                                          \
  X(cublasLtMatmulDescDestroy)                                                                                         \
  X(cublasLtMatmulDescSetAttribute)                                                                                    \
  X(cublasLtMatrixLayoutCreate)                                                                                        \
  X(cublasLtMatrixLayoutDestroy)                                                                                       \
  X(cublasLtMatrixLayoutSetAttribute)                                                                                  \
  X(cublasLtMatmulPreferenceCreate)                                                                                    \
  X(cublasLtMatmulPreferenceDestroy)                                                                                   \
  X(cublasLtMatmulPreferenceSetAttribute)

#define DOVETAIL_CUDNN_FUNCTIONS(X)                                                                                    \
  X(cudnnGetVersion)                                                                                                   \
  X(cudnnGetErrorString)                                                                                               \
  X(cudnnGetLastErrorString)                                                                                           \
  X(cudnnCreate)                                                                                                       \
  X(cudnnDestroy)                                                                                                      \
  X(cudnnSetStream)                                                                                                    \
  X(cudnnBackendCreateDescriptor)                                                                                      \
  X(cudnnBackendDestroyDescriptor)                                                                                     \
  X(cudnnBackendSetAttribute)                                                                                          \
  X(cudnnBackendGetAttribute)                                                                                          \
  X(cudnnBackendFinalize)                                                                                              \
  X(cudnnBackendExecute)

#define DOVETAIL_CUFFT_FUNCTIONS(X)                                                                                    \
  X(cufftGetVersion)                                                                                                   \
  X(cufftCreate)                                                                                                       \
  X(cufftDestroy)                                                                                                      \
  X(cufftSetAutoAllocation)                                                                                            \
  X(cufftMakePlanMany64)                                                                                               \
  X(cufftSetWorkArea)                                                                                                  \
  X(cufftSetStream)                                                                                                    \
  X(cufftExecC2C)                                                                                                      \
  X(cufftExecR2C)                                                                                                      \
  X(cufftExecC2R)                                                                                                      \
  X(cufftExecZ2Z)                                                                                                      \
  X(cufftExecD2Z)                                                                                                      \
  X(cufftExecZ2D)

struct CublasLtApi {
#define DOVETAIL_MEMBER(FUNCTION) decltype(&::FUNCTION) FUNCTION = nullptr;
  DOVETAIL_CUBLASLT_FUNCTIONS(DOVETAIL_MEMBER)
  std::string version;

  /// Errors: UNAVAILABLE: missing or too old.
  static absl::StatusOr<CublasLtApi> open();
  absl::Status check(cublasStatus_t status, const char *function) const;
};

struct CudnnApi {
  DOVETAIL_CUDNN_FUNCTIONS(DOVETAIL_MEMBER)
  std::string version;

  /// Errors: UNAVAILABLE: missing or too old.
  static absl::StatusOr<CudnnApi> open();
  absl::Status check(cudnnStatus_t status, const char *function) const;
};

struct CufftApi {
  DOVETAIL_CUFFT_FUNCTIONS(DOVETAIL_MEMBER)
#undef DOVETAIL_MEMBER
  std::string version;

  /// Errors: UNAVAILABLE: missing or too old.
  static absl::StatusOr<CufftApi> open();
  absl::Status check(cufftResult result, const char *function) const;
};

/// Each library's name, and its version or what is the matter with it.
std::vector<std::pair<std::string, std::string>> listLibraries();

/// The libraries as one session uses them: on one thread.
class LibraryHandles {
public:
  explicit LibraryHandles(std::shared_ptr<Context> context) : context(std::move(context)) {}
  ~LibraryHandles();

  /// Opened with the first call. Errors: UNAVAILABLE.
  absl::StatusOr<cublasLtHandle_t> cublasLt();
  absl::StatusOr<cudnnHandle_t> cudnn();
  /// Has no handle; its plans belong to calls.
  absl::StatusOr<const CufftApi *> cufft();
  /// After a handle was returned.
  const CublasLtApi &cublasLtApi() const { return *blas; }
  const CudnnApi &cudnnApi() const { return *dnn; }

  const std::shared_ptr<Context> context;

private:
  const CublasLtApi *blas = nullptr;
  const CudnnApi *dnn = nullptr;
  cublasLtHandle_t blasHandle = nullptr;
  cudnnHandle_t dnnHandle = nullptr;
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_LIBRARIES_H
