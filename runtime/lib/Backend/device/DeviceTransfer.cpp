//===- DeviceTransfer.cpp - Inputs and outputs on devices -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceTransfer.h"

#include "DeviceMover.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <array>
#include <numeric>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

class DeviceTransfer : public PortTransfer {
public:
  DeviceTransfer(Device &device, DeviceStream &stream, const MemoryView &port, MemoryView staging,
                 std::unique_ptr<DeviceMemory> pinned, std::unique_ptr<DeviceWork> copy, bool isInput)
      : device(device), stream(stream), port(port), staging(std::move(staging)), pinned(std::move(pinned)),
        copy(std::move(copy)), isInput(isInput) {}

  absl::Status run(const MemoryView &memory, absl::Span<const layout::Box> boxes, bool onDevice) override {
    if (boxes.empty() || staging.box.empty())
      return absl::OkStatus();
    if (onDevice)
      return copyDirectly(memory, boxes);
    return isInput ? upload(memory, boxes) : download(memory, boxes);
  }

private:
  /// A prepared copy from or to memory of the caller, who often takes turns with a few tensors.
  struct Direct {
    std::unique_ptr<DeviceWork> work; ///< Null: none yet.
    MemoryView memory;
    std::vector<layout::Box> boxes;
  };

  absl::Status upload(const MemoryView &host, absl::Span<const layout::Box> boxes) {
    // The device may still read what was staged before.
    if (staged)
      if (absl::Status status = stream.synchronize(); !status.ok())
        return status;
    for (const layout::Box &box : boxes)
      copyBox(staging, host, box);
    staged = true;
    return copy->issue(stream);
  }

  absl::Status download(const MemoryView &host, absl::Span<const layout::Box> boxes) {
    if (absl::Status status = copy->issue(stream); !status.ok())
      return status;
    if (absl::Status status = stream.synchronize(); !status.ok())
      return status;
    for (const layout::Box &box : boxes)
      copyBox(host, staging, box);
    return absl::OkStatus();
  }

  /// Without staging.
  absl::Status copyDirectly(const MemoryView &memory, absl::Span<const layout::Box> boxes) {
    auto known = std::find_if(directs.begin(), directs.end(), [&](const Direct &direct) {
      return direct.work && direct.memory.data == memory.data && direct.memory.strides == memory.strides &&
             direct.memory.box == memory.box &&
             std::equal(boxes.begin(), boxes.end(), direct.boxes.begin(), direct.boxes.end());
    });
    if (known == directs.end()) {
      known = directs.begin() + oldest;
      if (absl::Status status = prepare(*known, memory, boxes); !status.ok())
        return status;
      oldest = (oldest + 1) % directs.size();
    }
    absl::Status status = known->work->issue(stream);
    return status.ok() && !isInput ? stream.synchronize() : status;
  }

  absl::Status prepare(Direct &direct, const MemoryView &memory, absl::Span<const layout::Box> boxes) {
    // The device may still be doing the work that is replaced.
    if (absl::Status status = direct.work ? stream.synchronize() : absl::OkStatus(); !status.ok())
      return status;
    const MemoryView &target = isInput ? port : memory, &source = isInput ? memory : port;
    std::vector<BoxPair> pairs;
    for (const layout::Box &box : boxes)
      BoxPair::append(target, source, box, pairs);
    absl::StatusOr<std::unique_ptr<DeviceWork>> work =
        device.prepareCopies(stridedBoxes(pairs, target.data, source.data));
    if (!work.ok())
      return absl::UnavailableError(absl::StrCat("the tensor cannot be copied directly: ", work.status().message(),
                                                 "; give one in memory of the rank's device, or of the host"));
    direct = {*std::move(work), memory, {boxes.begin(), boxes.end()}};
    return absl::OkStatus();
  }

  Device &device;
  DeviceStream &stream;
  const MemoryView &port;
  MemoryView staging;
  std::unique_ptr<DeviceMemory> pinned;
  std::unique_ptr<DeviceWork> copy; ///< Of the whole box.
  bool isInput, staged = false;
  std::array<Direct, 4> directs;
  size_t oldest = 0; ///< Of them: the next to be replaced.
};

} // namespace

MemoryView dovetail::runtime::packedLike(const MemoryView &memory, const layout::Box &box) {
  MemoryFormat format;
  format.order.resize(memory.strides.size());
  std::iota(format.order.begin(), format.order.end(), 0);
  std::sort(format.order.begin(), format.order.end(),
            [&](int a, int b) { return std::pair(-memory.strides[a], a) < std::pair(-memory.strides[b], b); });
  return MemoryView::packed(memory.type, box, format);
}

absl::StatusOr<std::unique_ptr<PortTransfer>>
dovetail::runtime::createDeviceTransfer(Device &device, DeviceStream &stream, const MemoryView &memory,
                                        const layout::Box &box, bool isInput) {
  MemoryView staging = packedLike(memory, box);
  absl::StatusOr<std::unique_ptr<DeviceMemory>> pinned = device.allocatePinned(staging.bytes());
  if (!pinned.ok())
    return pinned.status();
  staging.data = (*pinned)->data();
  const MemoryView &target = isInput ? memory : staging, &source = isInput ? staging : memory;
  std::vector<BoxPair> pairs;
  BoxPair::append(target, source, box, pairs);
  absl::StatusOr<std::unique_ptr<DeviceWork>> copy =
      device.prepareCopies(stridedBoxes(pairs, target.data, source.data));
  if (!copy.ok())
    return copy.status();
  return std::make_unique<DeviceTransfer>(device, stream, memory, std::move(staging), *std::move(pinned),
                                          *std::move(copy), isInput);
}
