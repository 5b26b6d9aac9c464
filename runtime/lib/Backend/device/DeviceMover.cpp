//===- DeviceMover.cpp - Exchanges between memories of devices ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceMover.h"

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

class DeviceMove : public Move {
public:
  explicit DeviceMove(DeviceStream &stream) : stream(stream) {}

  absl::Status run() override {
    for (const std::unique_ptr<DeviceWork> &work : works)
      if (absl::Status status = work->issue(stream); !status.ok())
        return status;
    return absl::OkStatus();
  }

  absl::Status add(absl::StatusOr<std::unique_ptr<DeviceWork>> work) {
    if (work.ok())
      works.push_back(*std::move(work));
    return work.status();
  }

private:
  DeviceStream &stream;
  std::vector<std::unique_ptr<DeviceWork>> works;
};

} // namespace

absl::StatusOr<std::shared_ptr<std::byte>> DeviceMover::allocate(int64_t bytes) {
  absl::StatusOr<std::unique_ptr<DeviceMemory>> memory = device.allocate(bytes);
  if (!memory.ok())
    return memory.status();
  std::shared_ptr<DeviceMemory> owner = *std::move(memory);
  return std::shared_ptr<std::byte>(owner, owner->data());
}

absl::StatusOr<std::unique_ptr<Move>> DeviceMover::prepare(std::vector<StridedBox> copies,
                                                           std::vector<CombinationDescription> combinations) {
  auto move = std::make_unique<DeviceMove>(moves);
  if (!copies.empty())
    if (absl::Status status = move->add(device.prepareCopies(std::move(copies))); !status.ok())
      return status;
  for (CombinationDescription &combination : combinations)
    if (absl::Status status = move->add(device.prepareCombination(std::move(combination))); !status.ok())
      return status;
  return move;
}

absl::StatusOr<std::unique_ptr<Move>> DeviceMover::endRecording() {
  auto recording = std::make_unique<DeviceMove>(steps);
  if (absl::Status status = recording->add(device.endCapture(steps)); !status.ok())
    return status;
  return recording;
}
