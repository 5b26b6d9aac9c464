//===- DeviceMover.h - Exchanges between memories of devices ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_DEVICE_DEVICEMOVER_H
#define DOVETAIL_RUNTIME_BACKEND_DEVICE_DEVICEMOVER_H

#include "dovetail/runtime/Device.h"
#include "dovetail/runtime/Mover.h"

namespace dovetail::runtime {

/// Moves go on while steps run.
class DeviceMover : public Mover {
public:
  DeviceMover(Device &device, DeviceStream &steps, DeviceStream &moves) : device(device), steps(steps), moves(moves) {}

  DeviceStream &getStream(StreamKind kind) override { return kind == StreamKind::Steps ? steps : moves; }
  absl::StatusOr<std::unique_ptr<DeviceEvent>> createEvent() override { return device.createEvent(); }
  absl::StatusOr<std::shared_ptr<std::byte>> allocate(int64_t bytes) override;
  absl::StatusOr<std::unique_ptr<Move>> prepare(std::vector<StridedBox> copies,
                                                std::vector<CombinationDescription> combinations) override;
  bool canRecord() const override { return device.info().capturesStreams; }
  absl::Status beginRecording() override { return device.beginCapture(steps); }
  absl::StatusOr<std::unique_ptr<Move>> endRecording() override;

private:
  Device &device;
  DeviceStream &steps, &moves;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_DEVICE_DEVICEMOVER_H
