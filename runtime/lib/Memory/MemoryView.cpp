//===- MemoryView.cpp - Boxes of tensors in memory ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/MemoryView.h"

#include <algorithm>
#include <cstring>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;
using layout::Interval;

MemoryView MemoryView::packed(ElementType type, const Box &box, const MemoryFormat &format) {
  MemoryView view;
  view.type = type;
  view.box = box;
  view.strides.resize(box.rank());
  view.blockDim = format.blockDim;
  view.block = format.block;
  int64_t stride = view.blockDim >= 0 ? view.block : 1;
  for (auto it = format.order.rbegin(); it != format.order.rend(); ++it) {
    view.strides[*it] = stride;
    int64_t extent = box[*it].size();
    if (*it == view.blockDim && extent > 0)
      extent = (box[*it].hi - 1) / view.block - box[*it].lo / view.block + 1;
    stride *= std::max<int64_t>(extent, 1);
  }
  return view;
}

MemoryView MemoryView::rowMajor(ElementType type, const Box &box, void *data) {
  MemoryFormat format;
  for (int dim = 0; dim < box.rank(); ++dim)
    format.order.push_back(dim);
  MemoryView view = packed(type, box, format);
  view.data = static_cast<std::byte *>(data);
  return view;
}

int64_t MemoryView::offset(int dim, int64_t coordinate) const {
  if (dim != blockDim)
    return (coordinate - box[dim].lo) * strides[dim];
  // Blocks are counted from the tensor's beginning, not the box's.
  return (coordinate / block - box[dim].lo / block) * strides[dim] + coordinate % block;
}

int64_t MemoryView::bytes() const {
  if (box.empty())
    return 0;
  int64_t last = 0;
  for (int dim = 0; dim < box.rank(); ++dim)
    last += dim == blockDim ? ((box[dim].hi - 1) / block - box[dim].lo / block) * strides[dim] + block - 1
                            : offset(dim, box[dim].hi - 1);
  return (last + 1) * elementSize(type);
}

std::byte *MemoryView::address(const Box &part) const {
  int64_t elements = 0;
  for (int dim = 0; dim < box.rank(); ++dim)
    elements += offset(dim, part[dim].lo);
  return data + elements * elementSize(type);
}

std::byte *MemoryView::origin() const {
  int64_t elements = 0;
  for (int dim = 0; dim < box.rank(); ++dim)
    elements += (dim == blockDim ? box[dim].lo / block : box[dim].lo) * strides[dim];
  // The result may lie outside of any object, which pointer arithmetic does not allow.
  return reinterpret_cast<std::byte *>(reinterpret_cast<uintptr_t>(data) -
                                       static_cast<uintptr_t>(elements * elementSize(type)));
}

MemoryView MemoryView::part(const Box &part) const {
  MemoryView view = *this;
  view.box = part;
  if (!part.empty() && data)
    view.data = address(part);
  return view;
}

void BoxPair::append(const MemoryView &target, const MemoryView &source, const Box &box, std::vector<BoxPair> &pairs) {
  if (box.empty())
    return;
  // Inside of a block of either memory, both addresses are linear in each coordinate: cut there.
  for (const MemoryView *view : {&target, &source}) {
    int dim = view->blockDim;
    if (dim < 0)
      continue;
    int64_t cut = (box[dim].lo / view->block + 1) * view->block;
    if (cut < box[dim].hi) {
      Box first = box, rest = box;
      first[dim].hi = cut;
      rest[dim].lo = cut;
      append(target, source, first, pairs);
      append(target, source, rest, pairs);
      return;
    }
  }

  int64_t size = elementSize(target.type);
  BoxPair pair;
  pair.elementBytes = size;
  std::vector<BoxLoop> loops;
  for (int dim = 0; dim < box.rank(); ++dim) {
    pair.targetOffset += target.offset(dim, box[dim].lo) * size;
    pair.sourceOffset += source.offset(dim, box[dim].lo) * size;
    if (box[dim].size() > 1)
      loops.push_back({box[dim].size(), (dim == target.blockDim ? 1 : target.strides[dim]) * size,
                       (dim == source.blockDim ? 1 : source.strides[dim]) * size});
  }
  std::sort(loops.begin(), loops.end(),
            [](const BoxLoop &a, const BoxLoop &b) { return a.targetStride > b.targetStride; });
  for (const BoxLoop &loop : loops) {
    if (!pair.loops.empty()) {
      BoxLoop &outer = pair.loops.back();
      if (outer.targetStride == loop.targetStride * loop.count &&
          outer.sourceStride == loop.sourceStride * loop.count) {
        outer = {outer.count * loop.count, loop.targetStride, loop.sourceStride};
        continue;
      }
    }
    pair.loops.push_back(loop);
  }
  if (pair.loops.empty())
    pair.loops.push_back({1, size, size});
  pairs.push_back(std::move(pair));
}

namespace {

template <typename T>
void copyRun(std::byte *target, const std::byte *source, int64_t count, int64_t targetStride, int64_t sourceStride) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, source + i * sourceStride, sizeof(T));
    std::memcpy(target + i * targetStride, &value, sizeof(T));
  }
}

} // namespace

int64_t BoxPair::contiguousBytes() const {
  const BoxLoop &inner = loops.back();
  bool contiguous = inner.targetStride == elementBytes && inner.sourceStride == elementBytes;
  return contiguous ? inner.count * elementBytes : elementBytes;
}

void BoxPair::copy(std::byte *target, const std::byte *source) const {
  const BoxLoop &inner = loops.back();
  if (inner.targetStride == elementBytes && inner.sourceStride == elementBytes) {
    forEachRun(target, source, [&](std::byte *to, const std::byte *from, int64_t count, int64_t, int64_t) {
      std::memcpy(to, from, count * elementBytes);
    });
    return;
  }
  switch (elementBytes) {
  case 1:
    return forEachRun(target, source, copyRun<uint8_t>);
  case 2:
    return forEachRun(target, source, copyRun<uint16_t>);
  case 4:
    return forEachRun(target, source, copyRun<uint32_t>);
  default:
    return forEachRun(target, source, copyRun<uint64_t>);
  }
}

void dovetail::runtime::copyBox(const MemoryView &target, const MemoryView &source, const Box &box) {
  std::vector<BoxPair> pairs;
  BoxPair::append(target, source, box, pairs);
  for (const BoxPair &pair : pairs)
    pair.copy(target.data, source.data);
}
