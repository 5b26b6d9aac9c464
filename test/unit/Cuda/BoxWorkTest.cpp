//===- BoxWorkTest.cpp - Copies and combinations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fake.h"

#include "Backend/device/kernels/BoxJobs.h"
#include "Memory/Combine.h"

#include <cstring>
#include <random>
#include <set>

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using namespace dovetail::runtime::device;
using layout::Box;
using layout::Interval;
using layout::ReductionKind;

namespace {

/// Random boxes in random formats, and memory for them.
class BoxWork : public test::FakeDevice {
protected:
  struct Held {
    MemoryView view;
    std::unique_ptr<DeviceMemory> memory;
    std::vector<std::byte> host;
  };

  int64_t random(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(generator); }

  Held hold(ElementType type, const Box &box) {
    MemoryFormat format;
    for (int dim = 0; dim < box.rank(); ++dim)
      format.order.push_back(dim);
    std::shuffle(format.order.begin(), format.order.end(), generator);
    Held held;
    held.view = MemoryView::packed(type, box, format);
    held.host.resize(held.view.bytes());
    held.memory = *device->allocate(held.view.bytes());
    for (std::byte &byte : held.host)
      byte = static_cast<std::byte>(random(0, 255));
    return held;
  }
  /// Small numbers, if the type is one of floating-point numbers: what becomes of the bits of those that are none is
  /// not defined.
  void fill(Held &held) {
    auto put = [&](auto value) {
      for (size_t i = 0; i + sizeof(value) <= held.host.size(); i += sizeof(value)) {
        value = static_cast<decltype(value)>(static_cast<double>(random(-40, 40)) / 8);
        std::memcpy(&held.host[i], &value, sizeof(value));
      }
    };
    switch (held.view.type) {
    case ElementType::F32:
      return put(0.0f);
    case ElementType::F64:
      return put(0.0);
    case ElementType::F16:
      return put(_Float16(0));
    case ElementType::BF16:
      for (size_t i = 0; i < held.host.size(); i += 2) {
        held.host[i] = static_cast<std::byte>(random(0, 255));
        held.host[i + 1] = static_cast<std::byte>(random(0x3e, 0x40));
      }
      return;
    default:
      return;
    }
  }
  void upload(Held &held) {
    ASSERT_TRUE(device->copyToDevice(held.memory->data(), held.host.data(), held.memory->size()).ok());
  }
  std::vector<std::byte> download(const Held &held) {
    std::vector<std::byte> bytes(held.host.size());
    EXPECT_TRUE(device->copyToHost(bytes.data(), held.memory->data(), held.memory->size()).ok());
    return bytes;
  }
  static std::vector<StridedBox> strided(const std::vector<BoxPair> &pairs, std::byte *target,
                                         const std::byte *source) {
    std::vector<StridedBox> boxes;
    for (const BoxPair &pair : pairs)
      boxes.push_back(
          {target + pair.getTargetOffset(), source + pair.getSourceOffset(), pair.getElementBytes(), pair.getLoops()});
    return boxes;
  }

  std::mt19937 generator{7};
};

TEST_F(BoxWork, CopiesAreTheHosts) {
  const ElementType types[] = {ElementType::U8, ElementType::F16, ElementType::F32, ElementType::I64};
  for (int round = 0; round < 300; ++round) {
    ElementType type = types[round % 4];
    int rank = static_cast<int>(random(1, 5));
    std::vector<Interval> outer, inner;
    for (int dim = 0; dim < rank; ++dim) {
      int64_t lo = random(0, 9), size = random(1, 12);
      outer.push_back({lo, lo + size});
      int64_t first = random(lo, lo + size - 1);
      inner.push_back({first, random(first, lo + size)});
    }
    Held source = hold(type, Box(outer)), target = hold(type, Box(outer));
    upload(source);
    upload(target);
    std::vector<BoxPair> pairs;
    BoxPair::append(target.view, source.view, Box(inner), pairs);
    auto work = device->prepareCopies(strided(pairs, target.memory->data(), source.memory->data()));
    ASSERT_TRUE(work.ok()) << work.status();
    ASSERT_TRUE((*work)->issue(*stream).ok());
    for (const BoxPair &pair : pairs)
      pair.copy(target.host.data(), source.host.data());
    ASSERT_EQ(download(target), target.host) << "round " << round << ": " << Box(inner).str();
  }
  EXPECT_GT(log->launches, 50);
  EXPECT_GT(log->copies, 0);
}

/// Tiles of all sizes, cut off at odd places, at addresses that are aligned to elements only, with other boxes beside.
TEST_F(BoxWork, TransposedBoxesAreTiles) {
  const ElementType types[] = {ElementType::U8, ElementType::F16, ElementType::F32, ElementType::I64};
  const int64_t sizes[] = {2, 3, 8, 31, 33, 64, 70, 130, 300};
  int tiled = 0, both = 0;
  std::set<std::pair<int, int>> shapes;
  for (int round = 0; round < 120; ++round) {
    ElementType type = types[round % 4];
    // Elements of up to 16 bytes: an innermost dimension that both have last.
    bool wide = round % 5 == 0;
    int64_t a = sizes[random(0, 8)], b = sizes[random(0, 8)];
    // Tiles are larger where there are many.
    int64_t c = round % 7 < 3 && a * b < 10000 ? random(130, 140) : random(1, 3);
    int64_t run = wide ? 16 / elementSize(type) : 1, cut = wide ? 0 : random(0, 1);
    Box outer({{0, c}, {0, a + 3}, {0, b + 2}, {0, run}});
    Box inner({{0, c}, {cut, cut + a}, {2 * cut, 2 * cut + b}, {0, run}});
    Held source = hold(type, outer), target = hold(type, outer);
    source.view = MemoryView::packed(type, outer, {{0, 1, 2, 3}});
    target.view = MemoryView::packed(type, outer, round % 2 ? MemoryFormat{{0, 2, 1, 3}} : MemoryFormat{{2, 0, 1, 3}});
    upload(source);
    upload(target);
    std::vector<BoxPair> pairs;
    BoxPair::append(target.view, source.view, inner, pairs);
    // And what is left of the first rows.
    if (round % 3 == 0)
      BoxPair::append(target.view, source.view, Box({{0, c}, {a + 1, a + 3}, {0, 1}, {0, run}}), pairs);
    std::vector<StridedBox> boxes = strided(pairs, target.memory->data(), source.memory->data());
    BoxJobs jobs = BoxJobs::copies(boxes);
    EXPECT_EQ(jobs.tileJobs > 0, a * b >= 256) << a << " by " << b;
    EXPECT_LE(jobs.sharedBytes, 32u << 10);
    for (int64_t i = 0; i < jobs.tileJobs; ++i)
      shapes.insert({jobs.jobs[i].targetBits, jobs.jobs[i].sourceBits});
    tiled += jobs.tileJobs > 0;
    both += jobs.tileJobs > 0 && jobs.chunks > 0;
    auto work = device->prepareCopies(boxes);
    ASSERT_TRUE(work.ok()) << work.status();
    ASSERT_TRUE((*work)->issue(*stream).ok());
    for (const BoxPair &pair : pairs)
      pair.copy(target.host.data(), source.host.data());
    ASSERT_EQ(download(target), target.host) << "round " << round << ": " << inner.str();
  }
  EXPECT_GT(tiled, 60);
  EXPECT_GT(both, 15);
  EXPECT_GT(shapes.size(), 10u);
}

/// Whole tiles where there is work for all processors of a GPU, else smaller ones; and parts with 2^31 tiles at most.
TEST_F(BoxWork, TilesSuitTheGpu) {
  auto jobsOf = [](int64_t outer, int64_t channels, int64_t pixels, int64_t bytes) {
    int64_t image = channels * pixels * bytes;
    return BoxJobs::copies(
        {{nullptr,
          nullptr,
          bytes,
          {{outer, image, image}, {pixels, channels * bytes, bytes}, {channels, bytes, pixels * bytes}}}});
  };
  auto shape = [](const BoxJobs &jobs) {
    return std::pair{1 << jobs.jobs[0].targetBits, 1 << jobs.jobs[0].sourceBits};
  };
  BoxJobs large = jobsOf(1, 64, 512 * 512, 4);
  EXPECT_EQ(shape(large), std::pair(64, 64));
  EXPECT_EQ(large.tiles, 4096);
  EXPECT_EQ(large.sharedBytes, 64u * 65 * 4);
  EXPECT_EQ(shape(jobsOf(8, 64, 512 * 512, 16)), std::pair(32, 32));
  EXPECT_EQ(shape(jobsOf(1, 512, 49, 4)), std::pair(32, 32));
  EXPECT_EQ(shape(jobsOf(1, 3, 512 * 512, 2)), std::pair(4, 256));

  BoxJobs huge = jobsOf(int64_t(1) << 34, 40, 100, 1);
  EXPECT_EQ(shape(huge), std::pair(64, 64));
  EXPECT_EQ(huge.tiles, int64_t(1) << 35);
  int64_t first = 0;
  for (const BoxJob &job : huge.jobs) {
    EXPECT_EQ(job.first, first);
    EXPECT_LE(job.rounds, 1u << 31);
    first += job.rounds;
  }
  EXPECT_EQ(first, huge.tiles);
}

TEST_F(BoxWork, ManyBoxesAreOneLaunch) {
  Box box({{0, 40}, {0, 24}});
  Held source = hold(ElementType::F32, box), target = hold(ElementType::F32, box);
  upload(source);
  upload(target);
  std::vector<BoxPair> pairs;
  for (int64_t row = 0; row < 40; row += 3)
    BoxPair::append(target.view, source.view, Box({{row, row + 1}, {row % 7, 24}}), pairs);
  auto work = *device->prepareCopies(strided(pairs, target.memory->data(), source.memory->data()));
  ASSERT_TRUE(work->issue(*stream).ok());
  EXPECT_EQ(log->launches, 1);
  for (const BoxPair &pair : pairs)
    pair.copy(target.host.data(), source.host.data());
  EXPECT_EQ(download(target), target.host);
}

TEST_F(BoxWork, NothingIsNoLaunch) {
  auto work = *device->prepareCopies({});
  ASSERT_TRUE(work->issue(*stream).ok());
  EXPECT_EQ(log->launches + log->copies, 0);
}

TEST_F(BoxWork, CombinationsAreTheHosts) {
  const ReductionKind kinds[] = {ReductionKind::Sum, ReductionKind::Prod, ReductionKind::Max, ReductionKind::Min};
  for (int round = 0; round < 13 * 4 * 4; ++round) {
    auto type = static_cast<ElementType>(round % 13);
    ReductionKind kind = kinds[round / 13 % 4];
    Box box({{0, random(1, 9)}, {2, 2 + random(1, 9)}, {0, 3}});
    Held source = hold(type, box), target = hold(type, box);
    fill(source);
    fill(target);
    if (type == ElementType::Bool) {
      for (Held *held : {&source, &target})
        for (std::byte &byte : held->host)
          byte &= std::byte{1};
    }
    upload(source);
    upload(target);
    // The same boxes as `Combination` has.
    CombinationDescription description{kind, type, {}};
    std::vector<BoxPair> pairs;
    BoxPair::append(target.view, source.view, box, pairs);
    description.boxes = strided(pairs, target.memory->data(), source.memory->data());
    auto work = device->prepareCombination(description);
    ASSERT_TRUE(work.ok()) << work.status();
    ASSERT_TRUE((*work)->issue(*stream).ok());
    Combination(kind, target.view, source.view, box).run(target.host.data(), source.host.data());
    ASSERT_EQ(download(target), target.host) << elementTypeName(type) << " kind " << static_cast<int>(kind);
  }
}

TEST_F(BoxWork, LargeAndDeepBoxesAreTakenApart) {
  // Only the table is looked at: 2^33 chunks, and 10 loops.
  StridedBox large{nullptr, nullptr, 1, {{int64_t(1) << 20, 1 << 14, 1 << 14}, {1 << 13, 2, 2}}};
  BoxJobs jobs = BoxJobs::copies({large});
  EXPECT_EQ(jobs.chunks, int64_t(1) << 33);
  int64_t first = 0;
  for (const BoxJob &job : jobs.jobs) {
    EXPECT_EQ(job.first, first);
    int64_t chunks = 1;
    for (int loop = 0; loop < job.loops; ++loop)
      chunks *= job.counts[loop].count;
    EXPECT_LE(chunks, int64_t(1) << 31);
    first += chunks;
  }
  EXPECT_EQ(first, jobs.chunks);
  EXPECT_EQ(jobs.jobs.size(), 4u);

  std::vector<std::byte> memory(1 << 10), copy(1 << 10);
  for (size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<std::byte>(i * 7);
  StridedBox deep{copy.data(), memory.data(), 1, {}};
  for (int loop = 9; loop >= 0; --loop) // Reads the bits of the address backwards.
    deep.loops.push_back({2, int64_t(1) << loop, int64_t(1) << (9 - loop)});
  auto work = *device->prepareCopies({deep});
  ASSERT_TRUE(work->issue(*stream).ok());
  for (int i = 0; i < 1 << 10; ++i) {
    int reversed = 0;
    for (int bit = 0; bit < 10; ++bit)
      reversed |= (i >> bit & 1) << (9 - bit);
    ASSERT_EQ(copy[i], memory[reversed]) << i;
  }
}

TEST_F(BoxWork, ChunksAreAsWideAsPossible) {
  alignas(16) std::byte memory[256];
  auto granule = [&](int64_t offset, int64_t bytes) {
    StridedBox box{memory + offset, memory + 128, 4, {{2, 64, 64}, {bytes / 4, 4, 4}}};
    return BoxJobs::copies({box}).jobs.front().granule;
  };
  EXPECT_EQ(granule(0, 32), 16);
  EXPECT_EQ(granule(8, 32), 8);
  EXPECT_EQ(granule(0, 24), 8);
  EXPECT_EQ(granule(4, 32), 4);
  EXPECT_EQ(granule(0, 12), 4);
}

TEST_F(BoxWork, CapturedWorkIsReplayed) {
  Box box({{0, 8}, {0, 8}});
  Held source = hold(ElementType::F32, box), target = hold(ElementType::F32, box);
  upload(source);
  upload(target);
  std::vector<BoxPair> pairs;
  BoxPair::append(target.view, source.view, Box({{1, 5}, {1, 7}}), pairs);
  auto work = *device->prepareCopies(strided(pairs, target.memory->data(), source.memory->data()));
  ASSERT_TRUE(device->beginCapture(*stream).ok());
  ASSERT_TRUE(work->issue(*stream).ok());
  auto graph = device->endCapture(*stream);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(download(target), target.host);
  EXPECT_EQ(log->launches, 0);
  ASSERT_TRUE((*graph)->issue(*stream).ok());
  EXPECT_EQ(log->launches, 1);
  for (const BoxPair &pair : pairs)
    pair.copy(target.host.data(), source.host.data());
  EXPECT_EQ(download(target), target.host);
}

TEST_F(BoxWork, MemoryOutOfReachIsRefused) {
  log->owner = 1;
  StridedBox box{reinterpret_cast<std::byte *>(64), reinterpret_cast<std::byte *>(128), 4, {{2, 64, 64}, {3, 8, 8}}};
  absl::Status status = device->prepareCopies({box}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("GPU 0 cannot read the memory of GPU 1 directly"));
}

} // namespace
