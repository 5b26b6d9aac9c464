//===- Libraries.cpp - cuBLASLt, cuDNN and cuFFT -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Libraries.h"

#include "absl/strings/str_cat.h"

using namespace dovetail::runtime::cuda;

namespace {

constexpr int64_t neededCublasLt = 120000; // 12.0
constexpr int64_t neededCudnn = 90000;     // 9.0
constexpr int neededCufft = 11000;         // 11.0, of CUDA 12

LibraryFiles cublasLtFiles() {
  return {"cuBLASLt",
          {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"},
          "install it (it is part of CUDA, and of the Python package nvidia-cublas), name its folder in "
          "DOVETAIL_CUDA_PATH, or compile the model with --no-libraries"};
}

LibraryFiles cudnnFiles() {
  return {"cuDNN",
          {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"},
          "install it (the Python package nvidia-cudnn-cu13 holds it), name its folder in DOVETAIL_CUDA_PATH, or "
          "compile the model with --no-libraries"};
}

LibraryFiles cufftFiles() {
  return {"cuFFT",
          {"libcufft.so.12", "libcufft.so.11", "libcufft.so.10", "libcufft.so"},
          "install it (it is part of CUDA, and of the Python package nvidia-cufft), name its folder in "
          "DOVETAIL_CUDA_PATH, or compile the model with --no-libraries"};
}

} // namespace

#define DOVETAIL_NAME_OF(FUNCTION) #FUNCTION
#define DOVETAIL_FIND(FUNCTION)                                                                                        \
  api.FUNCTION = reinterpret_cast<decltype(api.FUNCTION)>(library->find(DOVETAIL_NAME_OF(FUNCTION)));                  \
  if (!api.FUNCTION)                                                                                                   \
    return library->missing(DOVETAIL_NAME_OF(FUNCTION), api.version, needed);

absl::StatusOr<CublasLtApi> CublasLtApi::open() {
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::open(cublasLtFiles());
  if (!library.ok())
    return library.status();
  CublasLtApi api;
  const char *needed = "12.0";
  auto *getVersion = reinterpret_cast<decltype(&::cublasLtGetVersion)>(library->find("cublasLtGetVersion"));
  if (!getVersion)
    return library->missing("cublasLtGetVersion", "of an unknown version", needed);
  int64_t version = static_cast<int64_t>(getVersion());
  // 130002: 13.0.2, but 10203: 10.2.3.
  int64_t unit = version >= 100000 ? 10000 : 1000;
  api.version = absl::StrCat(version / unit, ".", version % unit / 100, ".", version % 100);
  if (version < neededCublasLt)
    return library->tooOld(api.version, needed);
  DOVETAIL_CUBLASLT_FUNCTIONS(DOVETAIL_FIND)
  return api;
}

absl::Status CublasLtApi::check(cublasStatus_t status, const char *function) const {
  if (status == CUBLAS_STATUS_SUCCESS)
    return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cuBLASLt ", version, ": ", function, " failed: ", cublasLtGetStatusString(status)));
}

absl::StatusOr<CudnnApi> CudnnApi::open() {
  // cuDNN opens these by their names alone; what is open already is found.
  for (LibraryFiles companion : {cublasLtFiles(), LibraryFiles{"NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12"}, ""}})
    (void)DynamicLibrary::open(companion);
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::open(cudnnFiles());
  if (!library.ok())
    return library.status();
  CudnnApi api;
  const char *needed = "9.0";
  auto *getVersion = reinterpret_cast<decltype(&::cudnnGetVersion)>(library->find("cudnnGetVersion"));
  if (!getVersion)
    return library->missing("cudnnGetVersion", "of an unknown version", needed);
  int64_t version = static_cast<int64_t>(getVersion());
  // 91301: 9.13.1, but 8907: 8.9.7.
  int64_t unit = version >= neededCudnn ? 10000 : 1000;
  api.version = absl::StrCat(version / unit, ".", version % unit / 100, ".", version % 100);
  if (version < neededCudnn)
    return library->tooOld(api.version, needed);
  DOVETAIL_CUDNN_FUNCTIONS(DOVETAIL_FIND)
  return api;
}

absl::StatusOr<CufftApi> CufftApi::open() {
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::open(cufftFiles());
  if (!library.ok())
    return library.status();
  CufftApi api;
  const char *needed = "11.0";
  auto *getVersion = reinterpret_cast<decltype(&::cufftGetVersion)>(library->find("cufftGetVersion"));
  int version = 0;
  if (!getVersion || getVersion(&version) != CUFFT_SUCCESS)
    return library->missing("cufftGetVersion", "of an unknown version", needed);
  // 11402: 11.4.2.
  api.version = absl::StrCat(version / 1000, ".", version % 1000 / 100, ".", version % 100);
  if (version < neededCufft)
    return library->tooOld(api.version, needed);
  DOVETAIL_CUFFT_FUNCTIONS(DOVETAIL_FIND)
  return api;
}
#undef DOVETAIL_FIND
#undef DOVETAIL_NAME_OF

absl::Status CudnnApi::check(cudnnStatus_t status, const char *function) const {
  if (status == CUDNN_STATUS_SUCCESS)
    return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cuDNN ", version, ": ", function, " failed: ", cudnnGetErrorString(status)));
}

/// The library itself has no names for what goes wrong.
static const char *nameOf(cufftResult result) {
  switch (result) {
  case CUFFT_INVALID_PLAN:
    return "CUFFT_INVALID_PLAN";
  case CUFFT_ALLOC_FAILED:
    return "CUFFT_ALLOC_FAILED";
  case CUFFT_INVALID_TYPE:
    return "CUFFT_INVALID_TYPE";
  case CUFFT_INVALID_VALUE:
    return "CUFFT_INVALID_VALUE";
  case CUFFT_INTERNAL_ERROR:
    return "CUFFT_INTERNAL_ERROR";
  case CUFFT_EXEC_FAILED:
    return "CUFFT_EXEC_FAILED";
  case CUFFT_SETUP_FAILED:
    return "CUFFT_SETUP_FAILED";
  case CUFFT_INVALID_SIZE:
    return "CUFFT_INVALID_SIZE";
  case CUFFT_UNALIGNED_DATA:
    return "CUFFT_UNALIGNED_DATA";
  case CUFFT_NO_WORKSPACE:
    return "CUFFT_NO_WORKSPACE";
  case CUFFT_NOT_SUPPORTED:
    return "CUFFT_NOT_SUPPORTED";
  default:
    return "an error";
  }
}

absl::Status CufftApi::check(cufftResult result, const char *function) const {
  if (result == CUFFT_SUCCESS)
    return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cuFFT ", version, ": ", function, " failed: ", nameOf(result), " (",
                                             static_cast<int>(result), ")"));
}

std::vector<std::pair<std::string, std::string>> dovetail::runtime::cuda::listLibraries() {
  auto describe = [](const absl::StatusOr<std::string> &version) {
    return version.ok() ? *version : std::string(version.status().message());
  };
  auto versionOf = [](const auto &api) -> absl::StatusOr<std::string> {
    return api.ok() ? absl::StatusOr<std::string>(api->version) : api.status();
  };
  return {{"cuBLASLt", describe(versionOf(CublasLtApi::open()))},
          {"cuDNN", describe(versionOf(CudnnApi::open()))},
          {"cuFFT", describe(versionOf(CufftApi::open()))}};
}

LibraryHandles::~LibraryHandles() {
  DeviceScope scope(*context);
  if (blasHandle)
    blas->cublasLtDestroy(blasHandle);
  if (dnnHandle)
    dnn->cudnnDestroy(dnnHandle);
}

absl::StatusOr<cublasLtHandle_t> LibraryHandles::cublasLt() {
  if (blasHandle)
    return blasHandle;
  static const auto *api = new absl::StatusOr<CublasLtApi>(CublasLtApi::open());
  if (!api->ok())
    return api->status();
  blas = &**api;
  DeviceScope scope(*context);
  if (absl::Status status = blas->check(blas->cublasLtCreate(&blasHandle), "cublasLtCreate"); !status.ok())
    return status;
  return blasHandle;
}

absl::StatusOr<cudnnHandle_t> LibraryHandles::cudnn() {
  if (dnnHandle)
    return dnnHandle;
  static const auto *api = new absl::StatusOr<CudnnApi>(CudnnApi::open());
  if (!api->ok())
    return api->status();
  dnn = &**api;
  DeviceScope scope(*context);
  if (absl::Status status = dnn->check(dnn->cudnnCreate(&dnnHandle), "cudnnCreate"); !status.ok())
    return status;
  return dnnHandle;
}

absl::StatusOr<const CufftApi *> LibraryHandles::cufft() {
  static const auto *api = new absl::StatusOr<CufftApi>(CufftApi::open());
  if (!api->ok())
    return api->status();
  return &**api;
}
