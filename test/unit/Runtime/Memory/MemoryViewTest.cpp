//===- MemoryViewTest.cpp - Boxes of tensors in memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/runtime/MemoryView.h"

#include "Random.h"

#include "gtest/gtest.h"

using namespace dovetail;
using layout::Box;
using layout::Interval;
using layout::Random;
using runtime::BoxPair;
using runtime::ElementType;
using runtime::MemoryFormat;
using runtime::MemoryView;

namespace {

/// Memory of elements of 32 bits for a box, whose positions are found by counting.
struct Memory {
  Box box;
  MemoryFormat format;
  std::vector<uint32_t> elements;
  MemoryView view;

  Memory(const Box &box, const MemoryFormat &format) : box(box), format(format) {
    view = MemoryView::packed(ElementType::F32, box, format);
    for (int64_t i = 0, volume = box.volume(); i < volume; ++i)
      elements.push_back(0xdead0000u + static_cast<uint32_t>(i));
    view.data = reinterpret_cast<std::byte *>(elements.data());
  }
  Memory(const Memory &) = delete;

  int64_t position(const std::vector<int64_t> &index) const {
    int64_t position = 0;
    for (int dim : format.order)
      position = position * box[dim].size() + index[dim] - box[dim].lo;
    return position;
  }
};

template <typename Visit> void forEachIndex(const Box &box, Visit visit) {
  std::vector<int64_t> extents = box.shape();
  int64_t volume = box.volume();
  for (int64_t number = 0; number < volume; ++number) {
    std::vector<int64_t> index(box.rank());
    int64_t rest = number;
    for (int dim = box.rank() - 1; dim >= 0; --dim) {
      index[dim] = box[dim].lo + rest % extents[dim];
      rest /= extents[dim];
    }
    visit(index);
  }
}

MemoryFormat randomFormat(Random &random, int rank) {
  MemoryFormat format = MemoryFormat::rowMajor(rank);
  random.shuffle(format.order);
  return format;
}

Box randomBoxAround(Random &random, const Box &inner, const std::vector<int64_t> &shape) {
  Box box = inner;
  for (int dim = 0; dim < box.rank(); ++dim)
    box[dim] = {random.between(0, inner[dim].lo), random.between(inner[dim].hi, shape[dim])};
  return box;
}

} // namespace

// A box goes from one memory to the other, and nothing else changes.
TEST(MemoryViewProperty, BoxesAreCopied) {
  layout::forRandomCases(3000, [&](Random &random) {
    int rank = random.below(5);
    std::vector<int64_t> shape;
    Box box;
    std::vector<Interval> intervals;
    for (int dim = 0; dim < rank; ++dim) {
      shape.push_back(random.between(1, 11));
      int64_t lo = random.between(0, shape[dim] - 1);
      intervals.push_back({lo, random.chance(40) ? shape[dim] : random.between(lo + 1, shape[dim])});
    }
    box = Box(intervals);
    MemoryFormat sourceFormat = randomFormat(random, rank),
                 targetFormat = random.chance(40) ? sourceFormat : randomFormat(random, rank);
    Memory source(randomBoxAround(random, box, shape), sourceFormat),
        target(randomBoxAround(random, box, shape), targetFormat);
    EXPECT_EQ(source.view.bytes(), static_cast<int64_t>(source.elements.size() * 4));

    std::vector<uint32_t> expected = target.elements;
    uint32_t number = 0;
    forEachIndex(box, [&](const std::vector<int64_t> &index) {
      source.elements[source.position(index)] = ++number;
      expected[target.position(index)] = number;
    });
    runtime::copyBox(target.view, source.view, box);
    ASSERT_EQ(target.elements, expected) << "from " << sourceFormat.str() << " of " << source.box.str() << " to "
                                         << targetFormat.str() << " of " << target.box.str() << ", " << box.str();

    std::vector<BoxPair> pairs;
    BoxPair::append(target.view, source.view, box, pairs);
    EXPECT_EQ(pairs.size(), 1u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(target.view.address(box)),
              reinterpret_cast<uintptr_t>(&target.elements[rank == 0 ? 0 : target.position([&] {
                std::vector<int64_t> low;
                for (Interval interval : box)
                  low.push_back(interval.lo);
                return low;
              }())]));
  });
}

// Elements of all sizes get from one order of dimensions to another where both are of any extents, and nothing else
// changes.
TEST(MemoryViewProperty, TransposedBoxesAreCopied) {
  layout::forRandomCases(2000, [&](Random &random) {
    ElementType type =
        std::vector{ElementType::U8, ElementType::F16, ElementType::F32, ElementType::I64}[random.below(4)];
    int64_t size = runtime::elementSize(type);
    int rank = random.between(2, 4);
    std::vector<Interval> intervals;
    for (int dim = 0; dim < rank; ++dim) {
      int64_t lo = random.between(0, 3);
      intervals.push_back({lo, lo + random.between(1, dim < rank - 2 ? 3 : 150)});
    }
    random.shuffle(intervals);
    std::vector<int64_t> shape;
    for (Interval interval : intervals)
      shape.push_back(interval.hi + random.between(0, 3));
    Box box(intervals);
    auto randomView = [&] {
      MemoryFormat format = MemoryFormat::rowMajor(rank);
      random.shuffle(format.order);
      return MemoryView::packed(type, randomBoxAround(random, box, shape), format);
    };
    MemoryView source = randomView(), target = randomView();
    std::vector<uint8_t> from(source.bytes()), to(target.bytes());
    for (uint8_t &byte : from)
      byte = static_cast<uint8_t>(random.below(256));
    for (uint8_t &byte : to)
      byte = static_cast<uint8_t>(random.below(256));
    source.data = reinterpret_cast<std::byte *>(from.data());
    target.data = reinterpret_cast<std::byte *>(to.data());
    std::vector<uint8_t> expected = to;
    forEachIndex(box, [&](const std::vector<int64_t> &index) {
      int64_t read = 0, written = 0;
      for (int dim = 0; dim < rank; ++dim) {
        read += source.offset(dim, index[dim]) * size;
        written += target.offset(dim, index[dim]) * size;
      }
      std::copy_n(from.begin() + read, size, expected.begin() + written);
    });
    runtime::copyBox(target, source, box);
    ASSERT_EQ(to, expected) << size << " bytes, " << box.str() << " of " << source.box.str() << " to "
                            << target.box.str();
  });
}

// A kernel finds every element from the origin.
TEST(MemoryView, ElementsAreFoundFromTheOrigin) {
  for (Interval channels : {Interval{0, 40}, {16, 40}, {10, 20}, {33, 40}}) {
    Memory memory(Box{{1, 3}, channels, {4, 9}}, {{0, 2, 1}});
    const MemoryView &view = memory.view;
    forEachIndex(memory.box, [&](const std::vector<int64_t> &index) {
      int64_t offset = index[0] * view.strides[0] + index[1] * view.strides[1] + index[2] * view.strides[2];
      EXPECT_EQ(reinterpret_cast<uintptr_t>(view.origin()) + 4 * static_cast<uintptr_t>(offset),
                reinterpret_cast<uintptr_t>(&memory.elements[memory.position(index)]));
    });
  }
}
