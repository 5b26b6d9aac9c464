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
#include <utility>

using namespace dovetail;
using namespace dovetail::runtime;
using layout::Box;

MemoryView MemoryView::packed(ElementType type, const Box &box, const MemoryFormat &format) {
  MemoryView view;
  view.type = type;
  view.box = box;
  view.strides = format.strides(box);
  return view;
}

MemoryView MemoryView::ofBuffer(const Plan &plan, uint32_t buffer, int rank) {
  const BufferInfo &info = plan.buffers[buffer];
  return packed(info.type, plan.bufferBox(buffer, rank), info.format);
}

MemoryView MemoryView::rowMajor(ElementType type, const Box &box, void *data) {
  MemoryView view = packed(type, box, MemoryFormat::rowMajor(box.rank()));
  view.data = static_cast<std::byte *>(data);
  return view;
}

int64_t MemoryView::offset(int dim, int64_t coordinate) const { return (coordinate - box[dim].lo) * strides[dim]; }

int64_t MemoryView::bytes() const {
  if (box.empty())
    return 0;
  int64_t last = 0;
  for (int dim = 0; dim < box.rank(); ++dim)
    last += offset(dim, box[dim].hi - 1);
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
    elements += box[dim].lo * strides[dim];
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

bool MemoryView::isLike(const MemoryView &packed, const Box &box) const {
  for (int dim = 0; dim < box.rank(); ++dim)
    if (box[dim].size() > 1 && strides[dim] != packed.strides[dim])
      return false;
  return true;
}

void BoxPair::append(const MemoryView &target, const MemoryView &source, const Box &box, std::vector<BoxPair> &pairs) {
  if (box.empty())
    return;
  int64_t size = elementSize(target.type);
  BoxPair pair;
  pair.elementBytes = size;
  std::vector<BoxLoop> loops;
  for (int dim = 0; dim < box.rank(); ++dim) {
    pair.targetOffset += target.offset(dim, box[dim].lo) * size;
    pair.sourceOffset += source.offset(dim, box[dim].lo) * size;
    if (box[dim].size() > 1)
      loops.push_back({box[dim].size(), target.strides[dim] * size, source.strides[dim] * size});
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

/// Some CPUs' memcpy leaves long runs outside the caches that the next step reads and writes (glibc 2.36 on AMD's Zen 4
/// from about 1 MiB on: that step took twice as long), and parts of them not. Runs that no cache would hold are its
/// own.
void copyBytes(std::byte *target, const std::byte *source, int64_t bytes) {
  constexpr int64_t partBytes = 64 << 10, mostBytes = 4 << 20;
  int64_t part = bytes <= mostBytes ? partBytes : bytes;
  for (int64_t done = 0; done < bytes; done += part)
    std::memcpy(target + done, source + done, std::min(part, bytes - done));
}

//===----------------------------------------------------------------------===//
// Transposed copies
//===----------------------------------------------------------------------===//

/// Bytes of the vectors that squares of elements are transposed in, which all machines have.
constexpr int64_t vectorBytes = 16;
/// Rows and columns of blocks of squares: lines of a cache both ways.
constexpr int64_t blockBytes = 64;

template <typename T> using Vector = T __attribute__((vector_size(vectorBytes)));
template <typename T> constexpr int64_t squareExtent = vectorBytes / sizeof(T);

/// Interleaves halves of two vectors, which begin at `first`.
template <typename T, size_t first, size_t... places>
Vector<T> interleave(Vector<T> a, Vector<T> b, std::index_sequence<places...>) {
  return __builtin_shufflevector(a, b, (first + places / 2 + places % 2 * squareExtent<T>)...);
}

/// Strides of a copy whose rows are contiguous in the source, and whose columns in the target: of a column in the
/// source, and of a row in the target.
struct TransposedStrides {
  int64_t source, target;
};

/// Copies a square of elements, by interleaving halves of its vectors as often as they can be halved.
template <typename T>
__attribute__((always_inline)) inline void copySquare(std::byte *target, const std::byte *source,
                                                      TransposedStrides strides) {
  constexpr int64_t extent = squareExtent<T>, half = extent / 2;
  constexpr auto places = std::make_index_sequence<extent>();
  Vector<T> vectors[extent], next[extent];
#pragma unroll
  for (int64_t i = 0; i < extent; ++i)
    std::memcpy(&vectors[i], source + i * strides.source, vectorBytes);
#pragma unroll
  for (int64_t done = 1; done < extent; done *= 2) {
#pragma unroll
    for (int64_t i = 0; i < half; ++i) {
      next[2 * i] = interleave<T, 0>(vectors[i], vectors[i + half], places);
      next[2 * i + 1] = interleave<T, half>(vectors[i], vectors[i + half], places);
    }
#pragma unroll
    for (int64_t i = 0; i < extent; ++i)
      vectors[i] = next[i];
  }
#pragma unroll
  for (int64_t i = 0; i < extent; ++i)
    std::memcpy(target + i * strides.target, &vectors[i], vectorBytes);
}

/// Calls `body` for the first coordinate of each square in [lo, hi) of `count`; the last one may overlap another.
template <typename T, typename Body> void forEachSquare(int64_t lo, int64_t hi, int64_t count, Body body) {
  for (int64_t i = lo; i < hi; i += squareExtent<T>)
    body(std::min(i, count - squareExtent<T>));
}

/// Copies `rows` x `columns` elements, at least a square.
template <typename T>
void copyTransposed(std::byte *target, const std::byte *source, int64_t rows, int64_t columns,
                    TransposedStrides strides) {
  constexpr int64_t size = sizeof(T), block = blockBytes / size;
  for (int64_t row = 0; row < rows; row += block)
    for (int64_t column = 0; column < columns; column += block)
      forEachSquare<T>(row, std::min(row + block, rows), rows, [&](int64_t i) {
        forEachSquare<T>(column, std::min(column + block, columns), columns, [&](int64_t j) {
          copySquare<T>(target + i * strides.target + j * size, source + i * size + j * strides.source, strides);
        });
      });
}

/// The loop whose elements are contiguous in the source, if the last one's are in the target, and both have a square of
/// elements or more; -1 if there is none.
template <typename T> int findTransposedLoop(const std::vector<BoxLoop> &loops) {
  constexpr int64_t size = sizeof(T);
  if (loops.back().targetStride != size || loops.back().count < squareExtent<T>)
    return -1;
  for (size_t loop = 0; loop + 1 < loops.size(); ++loop)
    if (loops[loop].sourceStride == size && loops[loop].count >= squareExtent<T>)
      return static_cast<int>(loop);
  return -1;
}

/// Copies what loops from `depth` on go through, the last one and `transposed` as transposed squares.
template <typename T>
void copyPlanes(const std::vector<BoxLoop> &loops, size_t depth, int transposed, std::byte *target,
                const std::byte *source) {
  if (static_cast<int>(depth) == transposed)
    ++depth;
  if (depth + 1 >= loops.size())
    return copyTransposed<T>(target, source, loops[transposed].count, loops.back().count,
                             {loops.back().sourceStride, loops[transposed].targetStride});
  for (int64_t i = 0; i < loops[depth].count; ++i)
    copyPlanes<T>(loops, depth + 1, transposed, target + i * loops[depth].targetStride,
                  source + i * loops[depth].sourceStride);
}

template <typename T> void copyElements(const BoxPair &pair, std::byte *target, const std::byte *source) {
  int transposed = findTransposedLoop<T>(pair.getLoops());
  if (transposed < 0)
    return pair.forEachRun(target, source, copyRun<T>);
  copyPlanes<T>(pair.getLoops(), 0, transposed, target + pair.getTargetOffset(), source + pair.getSourceOffset());
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
      copyBytes(to, from, count * elementBytes);
    });
    return;
  }
  switch (elementBytes) {
  case 1:
    return copyElements<uint8_t>(*this, target, source);
  case 2:
    return copyElements<uint16_t>(*this, target, source);
  case 4:
    return copyElements<uint32_t>(*this, target, source);
  default:
    return copyElements<uint64_t>(*this, target, source);
  }
}

void dovetail::runtime::copyBox(const MemoryView &target, const MemoryView &source, const Box &box) {
  std::vector<BoxPair> pairs;
  BoxPair::append(target, source, box, pairs);
  for (const BoxPair &pair : pairs)
    pair.copy(target.data, source.data);
}
