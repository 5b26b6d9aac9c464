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

/// The elements of `pairs` at these addresses.
std::vector<StridedBox> stridedBoxes(const std::vector<BoxPair> &pairs, std::byte *target, const std::byte *source);

/// Lanes are streams and marks are events, so that moves go on while steps run.
class DeviceMover : public Mover {
public:
  DeviceMover(Device &device, DeviceStream &steps, DeviceStream &moves) : device(device), steps(steps), moves(moves) {}

  Device *getDevice() override { return &device; }
  DeviceStream *getStream(Lane lane) override { return &streamOf(lane); }
  absl::StatusOr<std::unique_ptr<Mark>> createMark() override;
  absl::Status mark(Mark &mark, Lane lane) override;
  absl::Status wait(const Mark &mark, Lane lane) override;
  absl::StatusOr<std::unique_ptr<Move>> prepare(std::byte *target, const std::byte *source, std::vector<BoxPair> copies,
                                                std::vector<Combination> combinations) override;
  bool canRecord() const override { return device.info().capturesStreams; }
  absl::Status beginRecording() override { return device.beginCapture(steps); }
  absl::StatusOr<std::unique_ptr<Move>> endRecording() override;

private:
  DeviceStream &streamOf(Lane lane) const { return lane == Lane::Steps ? steps : moves; }

  Device &device;
  DeviceStream &steps, &moves;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_DEVICE_DEVICEMOVER_H
