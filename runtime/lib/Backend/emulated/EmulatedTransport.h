//===- EmulatedTransport.h - Messages between emulated devices -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_EMULATED_EMULATEDTRANSPORT_H
#define DOVETAIL_RUNTIME_BACKEND_EMULATED_EMULATEDTRANSPORT_H

#include "dovetail/runtime/Transport.h"

#include <string>

namespace dovetail::runtime::emulated {

/// See `DevicePlugin`. Processes of one machine, connected by sockets.
absl::StatusOr<std::string> nameGroup();
absl::StatusOr<std::unique_ptr<Transport>> joinGroup(const std::string &name, int rank, int size, int ordinal);

} // namespace dovetail::runtime::emulated

#endif // DOVETAIL_RUNTIME_BACKEND_EMULATED_EMULATEDTRANSPORT_H
