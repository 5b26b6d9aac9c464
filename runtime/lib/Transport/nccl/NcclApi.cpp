//===- NcclApi.cpp - Functions of NCCL ---------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NcclApi.h"

#include "absl/strings/str_cat.h"

using namespace dovetail::runtime::cuda;

absl::StatusOr<NcclApi> NcclApi::open() {
  constexpr int oldest = 21800;
  const char *needed = "2.18";
  absl::StatusOr<DynamicLibrary> library = DynamicLibrary::open(
      {"NCCL",
       {"libnccl.so.2", "libnccl.so"},
       "install it (the Python package nvidia-nccl-cu13 holds it) or name its folder in DOVETAIL_CUDA_PATH"});
  if (!library.ok())
    return library.status();
  NcclApi api;
  int version = 0;
  api.ncclGetVersion = reinterpret_cast<decltype(api.ncclGetVersion)>(library->find("ncclGetVersion"));
  if (!api.ncclGetVersion || api.ncclGetVersion(&version) != ncclSuccess)
    return library->missing("ncclGetVersion", "of an unknown version", needed);
  // 22809: 2.28.9, but 2708: 2.7.8.
  int unit = version >= 10000 ? 10000 : 1000;
  api.version = absl::StrCat(version / unit, ".", version % unit / 100, ".", version % 100);
  if (version < oldest)
    return library->tooOld(api.version, needed);
#define DOVETAIL_FIND(FUNCTION)                                                                                        \
  api.FUNCTION = reinterpret_cast<decltype(api.FUNCTION)>(library->find(#FUNCTION));                                   \
  if (!api.FUNCTION)                                                                                                   \
    return library->missing(#FUNCTION, api.version, needed);
  DOVETAIL_NCCL_FUNCTIONS(DOVETAIL_FIND)
#undef DOVETAIL_FIND
  return api;
}

absl::Status NcclApi::check(ncclResult_t result, const char *function, ncclComm_t communicator) const {
  if (result == ncclSuccess || result == ncclInProgress)
    return absl::OkStatus();
  const char *detail = ncclGetLastError(communicator);
  return absl::UnavailableError(absl::StrCat("NCCL ", version, ": ", function, " failed: ", ncclGetErrorString(result),
                                             detail && *detail ? absl::StrCat(" (", detail, ")") : ""));
}
