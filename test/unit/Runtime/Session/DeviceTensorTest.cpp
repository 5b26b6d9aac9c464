//===- DeviceTensorTest.cpp - Tensors of the caller on a device ----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/DevicePlan.h"

#include "dovetail/dovetail.hpp"
#include "dovetail/runtime/Device.h"

using namespace dovetail::test;
using dovetail::runtime::DeviceMemory;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// Passes a matrix of 4 x 6 from columns of 3 ranks to rows.
PlanBuilder transit() {
  PlanBuilder builder = deviceBuilder({3});
  auto columns = sharding(2, {{1, split(0, {0, 1, 4, 6})}}), rows = sharding(2, {{0, split(0, {0, 3, 3, 4})}});
  uint32_t in = builder.value({4, 6}, columns, {1, 0}), out = builder.value({4, 6}, rows);
  builder.input("x", in);
  builder.exchange(in, out);
  builder.output("y", out);
  return builder;
}

class DeviceTensor : public testing::Test {
protected:
  void SetUp() override {
    auto plugin = dovetail::runtime::openDevicePlugin(deviceTarget());
    ASSERT_TRUE(plugin.ok()) << plugin.status();
    auto opened = (*plugin)->openDevice(0);
    ASSERT_TRUE(opened.ok()) << opened.status();
    device = *std::move(opened);
    place = {static_cast<DLDeviceType>(device->info().dlpackDevice), 0};
    std::vector<std::byte> bytes = transit().artifact();
    program.emplace(bytes.data(), bytes.size());
  }

  std::unique_ptr<DeviceMemory> upload(const std::vector<float> &values) {
    int64_t bytes = values.size() * sizeof(float);
    auto memory = *device->allocate(bytes);
    EXPECT_TRUE(device->copyToDevice(memory->data(), reinterpret_cast<const std::byte *>(values.data()), bytes).ok());
    return memory;
  }
  std::vector<float> download(const DeviceMemory &memory) {
    std::vector<float> values(memory.size() / sizeof(float));
    EXPECT_TRUE(device->copyToHost(reinterpret_cast<std::byte *>(values.data()), memory.data(), memory.size()).ok());
    return values;
  }

  std::unique_ptr<dovetail::runtime::Device> device;
  DLDevice place;
  std::optional<dovetail::Program> program;
};

TEST_F(DeviceTensor, AreReadAndWrittenWithTheirStrides) {
  dovetail::Runner runner(*program);
  dovetail::Port x = program->inputs()[0], y = program->outputs()[0];
  // The input lies transposed, behind an offset; every second element of the output's memory is somebody else's.
  std::vector<float> in(25, -1);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 6; ++j)
      in[1 + j * 4 + i] = static_cast<float>(10 * i + j);
  int64_t inStrides[] = {1, 4}, outStrides[] = {12, 2};
  auto source = upload(in);
  std::vector<std::unique_ptr<dovetail::runtime::DeviceMemory>> targets;
  for (int i = 0; i < 6; ++i)
    targets.push_back(upload(std::vector<float>(48, static_cast<float>(7 + i))));
  DLTensor input = x.tensor(source->data(), place);
  input.strides = inStrides;
  input.byte_offset = sizeof(float);
  // More of them than copies are kept ready.
  for (int i : {0, 0, 1, 0, 2, 3, 4, 1, 0, 5, 5, 2}) {
    ASSERT_TRUE(device->copyToDevice(targets[i]->data(), reinterpret_cast<const std::byte *>(in.data()), 4).ok());
    DLTensor output = y.tensor(targets[i]->data(), place);
    output.strides = outStrides;
    runner.run({input}, {output});
    EXPECT_EQ(download(*targets[i])[0], 0);
  }
  for (int index = 0; index < 6; ++index) {
    std::vector<float> out = download(*targets[index]);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 6; ++j) {
        EXPECT_EQ(out[12 * i + 2 * j], static_cast<float>(10 * i + j)) << i << ", " << j;
        EXPECT_EQ(out[12 * i + 2 * j + 1], static_cast<float>(7 + index));
      }
  }
  // The same memory with other strides is another tensor.
  for (int round = 0; round < 2; ++round)
    for (int64_t step : {2, 1}) {
      int64_t strides[] = {6 * step, step};
      DLTensor output = y.tensor(targets[0]->data(), place);
      output.strides = strides;
      runner.run({input}, {output});
      std::vector<float> out = download(*targets[0]);
      for (int i = 0; i < 24; ++i)
        EXPECT_EQ(out[i * step], static_cast<float>(10 * (i / 6) + i % 6)) << step;
    }
  // What is in the memory counts when a run begins.
  for (float &value : in)
    value += 100;
  ASSERT_TRUE(device->copyToDevice(source->data(), reinterpret_cast<const std::byte *>(in.data()), 100).ok());
  std::vector<float> host(24);
  runner.run({input}, {y.tensor(host.data())});
  for (int i = 0; i < 24; ++i)
    EXPECT_EQ(host[i], static_cast<float>(100 + 10 * (i / 6) + i % 6));
}

TEST_F(DeviceTensor, OfOtherKindsAreRefused) {
  dovetail::Runner runner(*program);
  std::vector<float> data(24);
  dovetail::Port x = program->inputs()[0], y = program->outputs()[0];
  auto expect = [&](DLTensor input, DLTensor output, const std::string &words) {
    try {
      runner.run({input}, {output});
      FAIL() << "no exception";
    } catch (const dovetail::Error &error) {
      EXPECT_EQ(error.status(), DOVETAIL_ERROR_USAGE);
      EXPECT_THAT(error.what(), HasSubstr(words));
    }
  };
  DLTensor good = y.tensor(data.data());
  expect(x.tensor(data.data(), {kDLMetal, 0}), good, "input 'x' was given a tensor on a device of DLPack's kind 8");
  expect(good, y.tensor(data.data(), {kDLMetal, 0}), "output 'y' was given a tensor on a device of DLPack's kind 8");
  EXPECT_NO_THROW(runner.run({good}, {good}));
}

TEST_F(DeviceTensor, OutOfReachAreNamed) {
  if (!hasKernels())
    GTEST_SKIP() << "the fake driver believes any address";
  dovetail::Runner runner(*program);
  std::vector<float> data(24);
  dovetail::Port x = program->inputs()[0], y = program->outputs()[0];
  try {
    runner.run({x.tensor(data.data(), place)}, {y.tensor(data.data())});
    FAIL() << "no exception";
  } catch (const dovetail::Error &error) {
    EXPECT_EQ(error.status(), DOVETAIL_ERROR_DEVICE);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("input 'x': the tensor cannot be copied directly"),
                                    HasSubstr("give one in memory of the rank's device, or of the host")));
  }
}

} // namespace
