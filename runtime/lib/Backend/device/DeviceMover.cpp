//===- DeviceMover.cpp - Exchanges between memories of devices ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceMover.h"

#include "../../Memory/Combine.h"

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

class EventMark : public Mark {
public:
  explicit EventMark(std::unique_ptr<DeviceEvent> event) : event(std::move(event)) {}

  std::unique_ptr<DeviceEvent> event;
};

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

std::vector<StridedBox> dovetail::runtime::stridedBoxes(const std::vector<BoxPair> &pairs, std::byte *target,
                                                        const std::byte *source) {
  std::vector<StridedBox> boxes;
  for (const BoxPair &pair : pairs)
    boxes.push_back(
        {target + pair.getTargetOffset(), source + pair.getSourceOffset(), pair.getElementBytes(), pair.getLoops()});
  return boxes;
}

absl::StatusOr<std::unique_ptr<Mark>> DeviceMover::createMark() {
  absl::StatusOr<std::unique_ptr<DeviceEvent>> event = device.createEvent();
  if (!event.ok())
    return event.status();
  return std::make_unique<EventMark>(*std::move(event));
}

absl::Status DeviceMover::mark(Mark &mark, Lane lane) {
  return static_cast<EventMark &>(mark).event->record(streamOf(lane));
}

absl::Status DeviceMover::wait(const Mark &mark, Lane lane) {
  return streamOf(lane).wait(*static_cast<const EventMark &>(mark).event);
}

absl::StatusOr<std::unique_ptr<Move>> DeviceMover::prepare(std::byte *target, const std::byte *source,
                                                           std::vector<BoxPair> copies,
                                                           std::vector<Combination> combinations) {
  auto move = std::make_unique<DeviceMove>(moves);
  if (!copies.empty())
    if (absl::Status status = move->add(device.prepareCopies(stridedBoxes(copies, target, source))); !status.ok())
      return status;
  for (const Combination &combination : combinations) {
    CombinationDescription description{combination.getKind(), combination.getType(), combination.getTargetMoment(),
                                       combination.getSourceMoment(),
                                       stridedBoxes(combination.getPairs(), target, source)};
    if (absl::Status status = move->add(device.prepareCombination(std::move(description))); !status.ok())
      return status;
  }
  return move;
}

absl::StatusOr<std::unique_ptr<Move>> DeviceMover::endRecording() {
  auto recording = std::make_unique<DeviceMove>(steps);
  if (absl::Status status = recording->add(device.endCapture(steps)); !status.ok())
    return status;
  return recording;
}
