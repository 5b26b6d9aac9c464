//===- EmulatedMemory.h - Memory of the emulated device ---------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_EMULATED_EMULATEDMEMORY_H
#define DOVETAIL_RUNTIME_BACKEND_EMULATED_EMULATEDMEMORY_H

#include "dovetail/runtime/Device.h"

namespace dovetail::runtime::emulated {

/// Memory filled with values that are not numbers, so that nobody relies on zeros.
absl::StatusOr<std::unique_ptr<DeviceMemory>> allocateMemory(int64_t bytes);

/// Whether these bytes lie in memory that `allocateMemory` gave away and that is still there. Devices cannot read any
/// other memory of the host.
bool isDeviceMemory(const std::byte *address, int64_t bytes);

/// The same for all elements of a box. Errors: INTERNAL.
absl::Status checkBox(const StridedBox &box);

} // namespace dovetail::runtime::emulated

#endif // DOVETAIL_RUNTIME_BACKEND_EMULATED_EMULATEDMEMORY_H
