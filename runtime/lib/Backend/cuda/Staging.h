//===- Staging.h - Memory around library calls -----------------*- C++ -*- ===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the operands of library calls get into memory of the shape that the library wants.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_STAGING_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_STAGING_H

#include "Context.h"

#include <numeric>

namespace dovetail::runtime::cuda {

/// Buffers and scratch memory begin at multiples of this many bytes.
inline constexpr int64_t bufferAlignment = 64;

/// Hands out parts of a step's scratch memory, each at a multiple of what libraries want of workspaces.
class Scratch {
public:
  int64_t add(int64_t bytes) {
    int64_t offset = used;
    used += (bytes + alignment - 1) / alignment * alignment;
    return offset;
  }
  /// With what `align` may leave out.
  int64_t size() const { return used > 0 ? used + alignment - bufferAlignment : 0; }
  /// Where the first part lies in scratch memory.
  static std::byte *align(std::byte *memory) {
    auto address = reinterpret_cast<uintptr_t>(memory);
    return memory + (address + alignment - 1) / alignment * alignment - address;
  }

private:
  static constexpr int64_t alignment = 256;

  int64_t used = 0;
};

/// What the address of `part` of a buffer is a multiple of, wherever the buffer lies.
inline int64_t alignmentOf(const MemoryView &view, const layout::Box &part) {
  int64_t elements = 0;
  for (int dim = 0; dim < part.rank(); ++dim)
    elements += view.offset(dim, part[dim].lo);
  return std::gcd(bufferAlignment, elements * elementSize(view.type));
}

/// Copies `box` between two memories, both of which hold it.
inline absl::StatusOr<std::unique_ptr<DeviceWork>> copyBetween(const std::shared_ptr<Context> &context,
                                                               const MemoryView &target, const MemoryView &source,
                                                               const layout::Box &box) {
  std::vector<BoxPair> pairs;
  BoxPair::append(target, source, box, pairs);
  std::vector<StridedBox> boxes;
  for (const BoxPair &pair : pairs)
    boxes.push_back({target.data + pair.getTargetOffset(), source.data + pair.getSourceOffset(), pair.getElementBytes(),
                     pair.getLoops()});
  return createCopies(context, std::move(boxes));
}

/// Sets memory to zero.
inline absl::Status issueZeros(const Context &context, std::byte *memory, int64_t bytes, DeviceStream &stream) {
  DeviceScope scope(context);
  return context.check(context.api.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(memory), 0, bytes, handleOf(stream)),
                       "cuMemsetD8Async");
}

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_STAGING_H
