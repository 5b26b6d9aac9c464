//===- EmulatedMemory.cpp - Memory of the emulated device -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedMemory.h"

#include "absl/strings/str_cat.h"

#include <cstring>
#include <map>
#include <mutex>
#include <new>

using namespace dovetail::runtime;
using namespace dovetail::runtime::emulated;

namespace {

constexpr size_t alignment = 256;

/// What is allocated, by address: begin and end.
struct Allocations {
  std::mutex mutex;
  std::map<uintptr_t, uintptr_t> ranges;
};

Allocations &allocations() {
  // Memory may be freed while the process ends.
  static auto *instance = new Allocations;
  return *instance;
}

class EmulatedMemory : public DeviceMemory {
public:
  EmulatedMemory(std::byte *memory, int64_t size) {
    address = memory;
    bytes = size;
  }
  ~EmulatedMemory() override {
    if (!address)
      return;
    {
      std::lock_guard lock(allocations().mutex);
      allocations().ranges.erase(reinterpret_cast<uintptr_t>(address));
    }
    ::operator delete(address, std::align_val_t(alignment));
  }
};

} // namespace

absl::StatusOr<std::unique_ptr<DeviceMemory>> emulated::allocateMemory(int64_t bytes) {
  if (bytes == 0)
    return std::make_unique<EmulatedMemory>(nullptr, 0);
  auto *memory = static_cast<std::byte *>(::operator new(bytes, std::align_val_t(alignment), std::nothrow));
  if (!memory)
    return absl::ResourceExhaustedError(absl::StrCat("the emulated device cannot allocate ", bytes, " bytes"));
  std::memset(memory, 0xff, bytes);
  std::lock_guard lock(allocations().mutex);
  auto begin = reinterpret_cast<uintptr_t>(memory);
  allocations().ranges[begin] = begin + bytes;
  return std::make_unique<EmulatedMemory>(memory, bytes);
}

bool emulated::isDeviceMemory(const std::byte *address, int64_t bytes) {
  auto begin = reinterpret_cast<uintptr_t>(address);
  std::lock_guard lock(allocations().mutex);
  auto next = allocations().ranges.upper_bound(begin);
  return next != allocations().ranges.begin() && begin + bytes <= std::prev(next)->second;
}

absl::Status emulated::checkBox(const StridedBox &box) {
  int64_t target = box.elementBytes, source = box.elementBytes;
  for (const BoxLoop &loop : box.loops) {
    target += (loop.count - 1) * loop.targetStride;
    source += (loop.count - 1) * loop.sourceStride;
  }
  if (!isDeviceMemory(box.target, target) || !isDeviceMemory(box.source, source))
    return absl::InternalError("a copy on the emulated device leaves the device's memory");
  return absl::OkStatus();
}
