//===- NcclTransport.h - Messages by NCCL ----------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_COMM_NCCL_NCCLTRANSPORT_H
#define DOVETAIL_RUNTIME_COMM_NCCL_NCCLTRANSPORT_H

#include "dovetail/runtime/Transport.h"

#include <string>

namespace dovetail::runtime::cuda {

/// See `DevicePlugin`. Errors: UNAVAILABLE.
absl::StatusOr<std::string> nameNcclGroup();
absl::StatusOr<std::unique_ptr<Transport>> joinNcclGroup(const std::string &name, int rank, int size, int ordinal);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_COMM_NCCL_NCCLTRANSPORT_H
