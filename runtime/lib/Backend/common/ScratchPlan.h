//===- ScratchPlan.h - Parts of scratch memory ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how the scratch memory of a library call is divided, on CPUs and devices.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_COMMON_SCRATCHPLAN_H
#define DOVETAIL_RUNTIME_BACKEND_COMMON_SCRATCHPLAN_H

#include "../../Memory/Alignment.h"

#include <cstddef>
#include <cstdint>

namespace dovetail::runtime {

/// Hands out parts of a step's scratch memory, each at a multiple of what the library wants.
template <int64_t alignment> class AlignedScratch {
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
  static_assert(alignment % bufferAlignment == 0);

  int64_t used = 0;
};

using ScratchPlan = AlignedScratch<bufferAlignment>;

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_BACKEND_COMMON_SCRATCHPLAN_H
