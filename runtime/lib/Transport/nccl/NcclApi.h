//===- NcclApi.h - Functions of NCCL ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TRANSPORT_NCCL_NCCLAPI_H
#define DOVETAIL_RUNTIME_TRANSPORT_NCCL_NCCLAPI_H

#include "../../Plugin/DynamicLibrary.h"

#include <nccl.h>

namespace dovetail::runtime::cuda {

#define DOVETAIL_NCCL_FUNCTIONS(X)                                                                                     \
  X(ncclGetVersion)                                                                                                    \
  X(ncclGetUniqueId)                                                                                                   \
  X(ncclGetErrorString)                                                                                                \
  X(ncclGetLastError)                                                                                                  \
  X(ncclCommInitRank)                                                                                                  \
  X(ncclCommGetAsyncError)                                                                                             \
  X(ncclCommAbort)                                                                                                     \
  X(ncclCommDestroy)                                                                                                   \
  X(ncclGroupStart)                                                                                                    \
  X(ncclGroupEnd)                                                                                                      \
  X(ncclSend)                                                                                                          \
  X(ncclRecv)                                                                                                          \
  X(ncclAllReduce)                                                                                                     \
  X(ncclReduceScatter)                                                                                                 \
  X(ncclAllGather)                                                                                                     \
  X(ncclCommSplit)

struct NcclApi {
#define DOVETAIL_MEMBER(FUNCTION) decltype(&::FUNCTION) FUNCTION = nullptr;
  DOVETAIL_NCCL_FUNCTIONS(DOVETAIL_MEMBER)
#undef DOVETAIL_MEMBER
  std::string version;

  /// Errors: UNAVAILABLE: missing or too old.
  static absl::StatusOr<NcclApi> open();
  absl::Status check(ncclResult_t result, const char *function, ncclComm_t communicator = nullptr) const;
};

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_TRANSPORT_NCCL_NCCLAPI_H
