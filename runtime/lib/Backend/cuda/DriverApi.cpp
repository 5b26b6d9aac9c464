//===- DriverApi.cpp - Functions of the CUDA driver -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DriverApi.h"

#include "absl/strings/str_cat.h"

using namespace dovetail::runtime::cuda;

std::string dovetail::runtime::cuda::cudaVersionName(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::StatusOr<DriverApi> DriverApi::open() {
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::open(
      {"the NVIDIA driver",
       {"libcuda.so.1"},
       "target 'cuda' needs a machine with an NVIDIA GPU and its driver (in a container: given to it)"});
  if (!library.ok())
    return library.status();
  DriverApi api;
  api.path = library->path();
  api.cuDriverGetVersion = reinterpret_cast<decltype(api.cuDriverGetVersion)>(library->find("cuDriverGetVersion"));
  // Works without a device, too.
  std::string needed = absl::StrCat("CUDA ", cudaVersionName(neededDriverVersion));
  if (!api.cuDriverGetVersion || api.cuDriverGetVersion(&api.version) != CUDA_SUCCESS)
    return library->missing("cuDriverGetVersion", "of an unknown version", needed);
  std::string found = absl::StrCat("for CUDA ", cudaVersionName(api.version));
  if (api.version < neededDriverVersion)
    return library->tooOld(found, needed);
#define DOVETAIL_NAME_OF(FUNCTION) #FUNCTION
#define DOVETAIL_DRIVER_FIND(FUNCTION)                                                                                 \
  api.FUNCTION = reinterpret_cast<decltype(api.FUNCTION)>(library->find(DOVETAIL_NAME_OF(FUNCTION)));                  \
  if (!api.FUNCTION)                                                                                                   \
    return library->missing(DOVETAIL_NAME_OF(FUNCTION), found, needed);
  DOVETAIL_DRIVER_FUNCTIONS(DOVETAIL_DRIVER_FIND)
#define DOVETAIL_DRIVER_FIND_OPTIONAL(FUNCTION)                                                                        \
  api.FUNCTION = reinterpret_cast<decltype(api.FUNCTION)>(library->find(DOVETAIL_NAME_OF(FUNCTION)));
  DOVETAIL_OPTIONAL_DRIVER_FUNCTIONS(DOVETAIL_DRIVER_FIND_OPTIONAL)
#undef DOVETAIL_DRIVER_FIND_OPTIONAL
#undef DOVETAIL_DRIVER_FIND
#undef DOVETAIL_NAME_OF
  if (CUresult result = api.cuInit(0); result != CUDA_SUCCESS) {
    if (result == CUDA_ERROR_NO_DEVICE)
      return absl::UnavailableError("the NVIDIA driver finds no GPU on this machine (is CUDA_VISIBLE_DEVICES empty?)");
    return api.check(result, "cuInit");
  }
  return api;
}

absl::Status DriverApi::check(CUresult result, const char *function) const {
  if (result == CUDA_SUCCESS)
    return absl::OkStatus();
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  std::string message = absl::StrCat("the CUDA driver's ", function, " failed: ", text ? text : "unknown error", " (",
                                     name ? name : absl::StrCat(static_cast<int>(result)), ")");
  return result == CUDA_ERROR_OUT_OF_MEMORY ? absl::ResourceExhaustedError(message) : absl::UnavailableError(message);
}

absl::StatusOr<const DriverApi *> dovetail::runtime::cuda::driver() {
  static const absl::StatusOr<DriverApi> *opened = new absl::StatusOr<DriverApi>(DriverApi::open());
  if (!opened->ok())
    return opened->status();
  return &**opened;
}
