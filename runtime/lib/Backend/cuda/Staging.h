//===- Staging.h - Memory around library calls -----------------*- C++ -*-===//
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

#include "../common/ScratchPlan.h"
#include "Context.h"

#include <numeric>

namespace dovetail::runtime::cuda {

/// Scratch memory in parts that are aligned as CUDA's libraries want workspaces to be.
using Scratch = AlignedScratch<256>;

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
  std::vector<StridedBox> boxes;
  appendCopies(target, source, box, boxes);
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
