//===- NcclCommunicator.h - Exchanges by NCCL ---------*- C++ -*- ===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the communicator backend `nccl`: ranks are processes with a GPU each, which send each other exactly the boxes
// that must move.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_COMM_NCCL_NCCLCOMMUNICATOR_H
#define DOVETAIL_RUNTIME_COMM_NCCL_NCCLCOMMUNICATOR_H

#include "dovetail/runtime/Communicator.h"
#include "dovetail/runtime/LaunchEnvironment.h"

#include <chrono>

namespace dovetail::runtime::cuda {

/// See `DevicePlugin::connectRanks`. Errors: UNAVAILABLE, DEADLINE_EXCEEDED.
absl::StatusOr<std::unique_ptr<Communicator>> connectNccl(const LaunchEnvironment &environment, int ordinal,
                                                          std::chrono::milliseconds timeout);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_COMM_NCCL_NCCLCOMMUNICATOR_H
