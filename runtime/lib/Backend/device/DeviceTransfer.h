//===- DeviceTransfer.h - Inputs and outputs on devices ---------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_DEVICE_DEVICETRANSFER_H
#define DOVETAIL_RUNTIME_BACKEND_DEVICE_DEVICETRANSFER_H

#include "../../Session/Backend.h"

#include "dovetail/runtime/Device.h"

namespace dovetail::runtime {

/// Carries `box` of `memory` through pinned memory of the host.
absl::StatusOr<std::unique_ptr<PortTransfer>> createDeviceTransfer(Device &device, DeviceStream &stream,
                                                                   const MemoryView &memory, const layout::Box &box,
                                                                   bool isInput);

/// A dense view of `box` whose dimensions come in the order that they have in `memory`; without data.
MemoryView packedLike(const MemoryView &memory, const layout::Box &box);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_DEVICE_DEVICETRANSFER_H
