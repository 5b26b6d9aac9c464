//===- Staging.cpp - Memory around library calls -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Staging.h"

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using layout::Box;

absl::StatusOr<std::unique_ptr<DeviceWork>>
dovetail::runtime::cuda::copyBetween(const std::shared_ptr<Context> &context, const MemoryView &target,
                                     const MemoryView &source, const Box &box) {
  std::vector<StridedBox> boxes;
  appendCopies(target, source, box, boxes);
  return createCopies(context, std::move(boxes));
}

/// The parts of `whole` around `inner`, which it contains.
static std::vector<Box> around(Box whole, const Box &inner) {
  if (inner.empty())
    return {whole};
  std::vector<Box> parts;
  for (int dim = 0; dim < whole.rank(); ++dim) {
    for (layout::Interval side : {layout::Interval{whole[dim].lo, inner[dim].lo}, {inner[dim].hi, whole[dim].hi}}) {
      if (side.empty())
        continue;
      parts.push_back(whole);
      parts.back()[dim] = side;
    }
    whole[dim] = inner[dim];
  }
  return parts;
}

absl::StatusOr<std::unique_ptr<DeviceWork>>
dovetail::runtime::cuda::copyAmongZeros(const std::shared_ptr<Context> &context, const MemoryView &target,
                                        const MemoryView &source, const Box &box, std::shared_ptr<std::byte> &zeros) {
  std::vector<StridedBox> boxes;
  appendCopies(target, source, box, boxes);
  int64_t size = elementSize(target.type), longest = 0;
  for (const Box &part : around(target.box, box)) {
    StridedBox fill{target.address(part), nullptr, size, {}};
    for (int dim = 0; dim < part.rank(); ++dim)
      if (part[dim].size() > 1)
        fill.loops.push_back({part[dim].size(), target.strides[dim] * size, 0});
    std::sort(fill.loops.begin(), fill.loops.end(),
              [](const BoxLoop &a, const BoxLoop &b) { return a.targetStride > b.targetStride; });
    // Neighbours are read from neighbours, so that they are copied in wide chunks; all else is read again and again.
    if (!fill.loops.empty() && fill.loops.back().targetStride == size) {
      fill.loops.back().sourceStride = size;
      longest = std::max(longest, fill.loops.back().count);
    }
    longest = std::max<int64_t>(longest, 1);
    boxes.push_back(std::move(fill));
  }
  if (longest > 0) {
    std::vector<std::byte> host(longest * size);
    absl::StatusOr<std::shared_ptr<std::byte>> allocated = context->allocate(longest * size);
    if (!allocated.ok())
      return allocated.status();
    zeros = *std::move(allocated);
    if (absl::Status status = context->upload(zeros.get(), host.data(), longest * size); !status.ok())
      return status;
  }
  for (StridedBox &copy : boxes)
    if (!copy.source)
      copy.source = zeros.get();
  return createCopies(context, std::move(boxes));
}
