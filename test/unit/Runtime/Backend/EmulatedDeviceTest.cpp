//===- EmulatedDeviceTest.cpp - Blocks of threads on the CPU --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/PlanBuilder.h"

#include "dovetail/runtime/Device.h"

#include <cmath>

using namespace dovetail;
using namespace dovetail::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// An open device with the kernels of BlockKernels.c.
class EmulatedDevice : public testing::Test {
protected:
  void SetUp() override { open("1"); }

  void open(const char *seed) {
    ::setenv("DOVETAIL_EMULATED_SEED", seed, 1);
    code.reset();
    stream.reset();
    auto plugin = runtime::openDevicePlugin("emulated");
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    auto opened = (*plugin)->openDevice(0);
    ::unsetenv("DOVETAIL_EMULATED_SEED");
    ASSERT_TRUE(opened.ok()) << opened.status();
    device = *std::move(opened);
    static const std::vector<std::byte> bytes = readBytes(DOVETAIL_TEST_BLOCK_KERNELS);
    auto loaded = device->loadCode({{runtime::SectionKind::Code, "", bytes}});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    code = *std::move(loaded);
    auto created = device->createStream();
    ASSERT_TRUE(created.ok()) << created.status();
    stream = *std::move(created);
  }

  std::unique_ptr<runtime::DeviceMemory> allocate(int64_t floats) {
    auto memory = device->allocate(floats * sizeof(float));
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }
  std::unique_ptr<runtime::DeviceMemory> upload(const std::vector<float> &values) {
    auto memory = allocate(values.size());
    EXPECT_TRUE(device
                    ->copyToDevice(memory->data(), reinterpret_cast<const std::byte *>(values.data()),
                                   values.size() * sizeof(float))
                    .ok());
    return memory;
  }
  std::vector<float> download(const runtime::DeviceMemory &memory) {
    std::vector<float> values(memory.size() / sizeof(float));
    EXPECT_TRUE(device->copyToHost(reinterpret_cast<std::byte *>(values.data()), memory.data(), memory.size()).ok());
    return values;
  }

  static runtime::DeviceRegion region(const char *name, const runtime::DeviceMemory &memory, bool written) {
    return {name, memory.data(), memory.size(), written};
  }
  /// A launch that reads `in` and writes `out`.
  static runtime::LaunchDescription describe(const runtime::DeviceMemory &in, const runtime::DeviceMemory &out,
                                             int64_t blocks, int threads, int64_t sharedBytes,
                                             std::vector<int64_t> numbers) {
    return {"the launch",
            blocks,
            threads,
            sharedBytes,
            {in.data(), out.data()},
            std::move(numbers),
            {region("tensor 'in'", in, false), region("tensor 'out'", out, true)}};
  }
  absl::Status launch(const std::string &symbol, runtime::LaunchDescription description) {
    auto work = code->prepareLaunch(symbol, std::move(description));
    if (!work.ok())
      return work.status();
    if (absl::Status status = (*work)->issue(*stream); !status.ok())
      return status;
    return stream->synchronize();
  }

  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::DeviceCode> code;
  std::unique_ptr<runtime::DeviceStream> stream;
};

} // namespace

TEST_F(EmulatedDevice, SaysWhatItIs) {
  EXPECT_THAT(device->info().description, AllOf(HasSubstr("emulates"), HasSubstr("CPU"), HasSubstr("tests")));
  EXPECT_EQ(code->prepareLaunch("absent", {}).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(EmulatedDevice, BlockReduction) {
  std::mt19937_64 random(1);
  int64_t rows = 7, columns = 1000;
  std::vector<float> in(rows * columns), expected(rows);
  for (int64_t i = 0; i < rows * columns; ++i)
    expected[i / columns] += in[i] = static_cast<float>(static_cast<int>(random() % 100));
  auto source = upload(in);
  for (const char *seed : {"1", "2", "3", "4"}) {
    open(seed);
    for (int threads : {32, 96, 1024})
      for (int64_t blocks : {1, 3, 7, 9}) {
        auto target = allocate(rows);
        absl::Status status =
            launch("sumColumnsBlocks", describe(*source, *target, blocks, threads, threads / 32 * sizeof(float),
                                                {0, rows, 0, columns, columns, 1, 1}));
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(download(*target), expected) << threads << " threads, " << blocks << " blocks";
      }
  }
}

TEST_F(EmulatedDevice, TiledTranspose) {
  std::mt19937_64 random(2);
  int64_t rows = 37, columns = 50;
  std::vector<float> in = randomFloats(random, rows * columns), expected(in.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      expected[j * rows + i] = in[i * columns + j];
  auto source = upload(in), target = allocate(in.size()), racy = allocate(in.size());
  std::vector<int64_t> numbers = {0, rows, 0, columns, columns, 1, rows, 1};
  int64_t sharedBytes = 16 * 17 * sizeof(float);
  absl::Status status = launch("transposeBlocks", describe(*source, *target, 4, 256, sharedBytes, numbers));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(download(*target), expected);
  // Without its barriers, some thread reads what no other has written yet, whatever the order.
  status = launch("transposeRace", describe(*source, *racy, 4, 256, sharedBytes, numbers));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_NE(download(*racy), expected);
}

TEST_F(EmulatedDevice, ConstantsOfTheCode) {
  auto target = allocate(9);
  absl::Status status =
      launch("constantBlocks", {"the launch", 2, 3, 0, {target->data()}, {0, 9}, {region("out", *target, true)}});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(download(*target), (std::vector<float>{10, 20, 30, 40, 10, 20, 30, 40, 10}));
}

TEST_F(EmulatedDevice, MisbehaviourIsCaught) {
  auto in = upload(std::vector<float>(100)), out = allocate(100);
  auto expect = [&](int64_t what, const char *words) {
    absl::Status status = launch("misbehave", describe(*in, *out, 2, 64, 16, {what}));
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("the launch: "), HasSubstr(words)));
    // The stream is lost, as a real device's would be; the device is not.
    EXPECT_FALSE(stream->synchronize().ok());
    stream = *device->createStream();
  };
  expect(0, "thread 3 of block 0 reads 4 bytes at offset 400 of tensor 'in', which has 400 bytes");
  expect(1, "thread 3 of block 0 writes 4 bytes at offset -4 of tensor 'out', which has 400 bytes");
  expect(2, "writes 4 bytes at offset 20 of tensor 'in', which has 400 bytes and may only be read");
  expect(3, "block 0: the threads part: thread 0 waits at a barrier, but thread 3 has ended");
  expect(4, "block 0: the threads part: thread 0 waits at a barrier, but thread 3 waits at a shuffle");
  expect(5, "thread 3 of block 0 shuffles with mask 2, but thread 0 of its warp with mask 1");
  expect(6, "shuffles with thread 32 of its warp, which has 32");
  expect(7, "writes past its 16 bytes of shared memory");
  expect(8, "reads 8 bytes at offset 396 of tensor 'in', which has 400 bytes");
  expect(9, "reads 4 bytes at offset 24 of tensor 'in', an address that is not a multiple of 16");
  expect(10, "thread 3 of block 0 reads 8 bytes at offset 12 of the 16 bytes of shared memory");
  expect(11, "thread 3 of block 0 writes 4 bytes at offset -4 of the 16 bytes of shared memory");
  expect(12, "reads 8 bytes at offset 4 of the 16 bytes of shared memory, which is not a multiple of 8");
  // All is well again afterwards.
  absl::Status status = launch("incrementBlocks", describe(*in, *out, 2, 32, 0, {0, 100, 1, 1}));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(download(*out), std::vector<float>(100, 1));
}

TEST_F(EmulatedDevice, WorkIsDoneInTheOrderOfEvents) {
  open("0");
  auto a = upload({1, 2, 3}), b = allocate(3), c = allocate(3);
  auto other = *device->createStream();
  auto event = *device->createEvent();
  auto copy = [&](const runtime::DeviceMemory &to, const runtime::DeviceMemory &from) {
    return *device->prepareCopies({{to.data(), from.data(), 4, {{3, 4, 4}}}});
  };
  auto first = copy(*b, *a), second = copy(*c, *b);
  // Without an order the second copy comes too soon: nothing is done before it must be.
  ASSERT_TRUE(first->issue(*stream).ok());
  ASSERT_TRUE(second->issue(*other).ok());
  ASSERT_TRUE(other->synchronize().ok());
  EXPECT_TRUE(std::isnan(download(*c)[0]));
  // With one it does not, though nobody waits for the first stream itself.
  ASSERT_TRUE(event->record(*stream).ok());
  ASSERT_TRUE(other->wait(*event).ok());
  ASSERT_TRUE(second->issue(*other).ok());
  ASSERT_TRUE(other->synchronize().ok());
  EXPECT_EQ(download(*c), (std::vector<float>{1, 2, 3}));
}

TEST_F(EmulatedDevice, CapturedWorkIsDoneWhenIssued) {
  auto a = upload({1, 2, 3}), b = allocate(3);
  auto work = *code->prepareLaunch("incrementBlocks", describe(*a, *b, 1, 32, 0, {0, 3, 1, 1}));
  auto back = *device->prepareCopies({{a->data(), b->data(), 4, {{3, 4, 4}}}});
  ASSERT_TRUE(device->beginCapture(*stream).ok());
  ASSERT_TRUE(work->issue(*stream).ok());
  ASSERT_TRUE(back->issue(*stream).ok());
  EXPECT_FALSE(stream->synchronize().ok());
  auto graph = device->endCapture(*stream);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_TRUE(std::isnan(download(*b)[0]));
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE((*graph)->issue(*stream).ok());
  ASSERT_TRUE(stream->synchronize().ok());
  EXPECT_EQ(download(*b), (std::vector<float>{5, 6, 7}));
}

TEST_F(EmulatedDevice, RecordingsHoldTheWorkOfStreamsThatJoin) {
  for (const char *seed : {"0", "1", "2", "3", "4"}) {
    open(seed);
    auto a = upload({1, 2, 3}), b = allocate(3), c = allocate(3), d = upload({7, 7, 7});
    auto other = *device->createStream();
    auto begun = *device->createEvent(), done = *device->createEvent();
    auto copy = [&](const runtime::DeviceMemory &to, const runtime::DeviceMemory &from) {
      return *device->prepareCopies({{to.data(), from.data(), 4, {{3, 4, 4}}}});
    };
    auto first = copy(*b, *a), second = copy(*c, *b), free = copy(*a, *d), last = copy(*d, *c);
    ASSERT_TRUE(device->beginCapture(*stream).ok());
    ASSERT_TRUE(first->issue(*stream).ok());
    ASSERT_TRUE(begun->record(*stream).ok());
    ASSERT_TRUE(other->wait(*begun).ok());
    ASSERT_TRUE(second->issue(*other).ok());
    ASSERT_TRUE(done->record(*other).ok());
    ASSERT_TRUE(free->issue(*stream).ok());
    ASSERT_TRUE(stream->wait(*done).ok());
    ASSERT_TRUE(last->issue(*stream).ok());
    auto graph = device->endCapture(*stream);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_TRUE(std::isnan(download(*b)[0]));
    ASSERT_TRUE((*graph)->issue(*stream).ok());
    ASSERT_TRUE(stream->synchronize().ok());
    EXPECT_EQ(download(*d), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(download(*a), (std::vector<float>{7, 7, 7}));

    // Events of a recording mean nothing outside, and those of before nothing inside.
    EXPECT_FALSE(other->wait(*begun).ok());
    ASSERT_TRUE(begun->record(*other).ok());
    ASSERT_TRUE(device->beginCapture(*stream).ok());
    EXPECT_FALSE(stream->wait(*begun).ok());
    // Work that nobody waits for is not complete at the end.
    ASSERT_TRUE(done->record(*stream).ok());
    ASSERT_TRUE(other->wait(*done).ok());
    ASSERT_TRUE(second->issue(*other).ok());
    EXPECT_FALSE(device->endCapture(*stream).ok());
  }
}

TEST_F(EmulatedDevice, CopiesStayInItsMemory) {
  std::vector<float> host(3);
  auto a = upload({1, 2, 3});
  auto *data = reinterpret_cast<std::byte *>(host.data());
  EXPECT_EQ(device->prepareCopies({{data, a->data(), 4, {{3, 4, 4}}}}).status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device->prepareCopies({{a->data(), a->data(), 4, {{4, 4, 4}}}}).status().code(),
            absl::StatusCode::kInternal);
}
