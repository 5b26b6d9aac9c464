//===- CallMemoryTest.cpp - Memory of library calls -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/Reference.h"

#include "dovetail/runtime/ProgramRunner.h"

using namespace dovetail;
using namespace dovetail::test;

namespace {

/// A convolution of `channels` to 40 in windows of 3 x 3, or a transposed one whose windows of 2 x 2 do not overlap.
PlanBuilder convolution(bool transposed, int64_t callBytes, int64_t channels = 20) {
  PlanBuilder builder({1});
  builder.callBytes = callBytes;
  std::mt19937_64 random(1);
  int64_t window = transposed ? 2 : 3;
  Shape input = {1, channels, 8, 9}, output = {1, 40, transposed ? 16 : 6, transposed ? 18 : 7},
        weights = {transposed ? channels : 40, transposed ? 40 : channels, window, window};
  Order channelsLast = {0, 2, 3, 1};
  ConvolutionStep call;
  call.input = builder.value(input, sharding(4), channelsLast, "in");
  call.weights = builder.constantValue(weights, sharding(4), randomFloats(random, volume(weights)));
  call.output = builder.value(output, sharding(4), channelsLast, "out");
  call.strides = Shape(2, transposed ? 2 : 1);
  call.dilations = {1, 1};
  call.pads = {0, 0};
  call.transposed = transposed;
  builder.input("in", call.input);
  builder.output("out", call.output);
  builder.library(std::move(call));
  return builder;
}

} // namespace

TEST(CallMemory, SessionsAllocateWhatThePlanSays) {
  for (int threads : {1, 3})
    for (bool transposed : {false, true}) {
      // One thread does what is not divided, whatever a rank has.
      auto program = convolution(transposed, 1 << 20).program();
      runtime::RunnerOptions options;
      options.threads = threads;
      auto runner = runtime::ProgramRunner::create(program, options);
      ASSERT_TRUE(runner.ok()) << runner.status();
      const runtime::SessionStatistics &found = (*runner)->statistics(0);
      EXPECT_EQ(found.packedBytes, 1 << 20);
      // Transposed, the results come in rows that are put in their places.
      int64_t staging = transposed ? 8 * 9 * 80 * 4 + 2 * 40 * 4 : 0;
      EXPECT_EQ(found.scratchBytes, (2 << 20) + staging);
      auto planned = runtime::estimateStatistics(program->getPlan(), 0, threads);
      ASSERT_TRUE(planned.ok()) << planned.status();
      EXPECT_TRUE(*planned == found);
    }
}

TEST(CallMemory, SessionsAllocateWhatThePlanSaysForThreads) {
  PlanBuilder builder = convolution(/*transposed=*/false, 1 << 20);
  artifact::LibraryStepT &step = *builder.plan.steps[0]->action.AsLibraryStep();
  step.memory->thread_packed = {1 << 10};
  step.division = std::make_unique<artifact::DivisionT>();
  step.division->loop = 2;
  step.division->step = step.division->grain = 2;
  auto program = builder.program();
  // Six rows make three parts of two rows.
  for (auto [threads, parts] : {std::pair(1, 1), {2, 2}, {3, 3}, {5, 3}}) {
    runtime::RunnerOptions options;
    options.threads = threads;
    auto runner = runtime::ProgramRunner::create(program, options);
    ASSERT_TRUE(runner.ok()) << runner.status();
    const runtime::SessionStatistics &found = (*runner)->statistics(0);
    EXPECT_EQ(found.packedBytes, (1 << 20) + (parts - 1) * (1 << 10));
    int64_t share = ((int64_t(1 + parts) << 20) / parts + 63) / 64 * 64;
    EXPECT_EQ(found.scratchBytes, std::max(parts * share, int64_t(2) << 20));
    auto planned = runtime::estimateStatistics(program->getPlan(), 0, threads);
    ASSERT_TRUE(planned.ok()) << planned.status();
    EXPECT_TRUE(*planned == found);
  }
}

TEST(CallMemory, ChannelsThatAreLastAreUsedInPlace) {
  Shape image = {1, 20, 8, 9}, weights = {40, 20, 3, 3}, result = {1, 40, 6, 7}, pooled = {1, 40, 3, 7};
  std::mt19937_64 random(3);
  std::vector<float> input = randomFloats(random, volume(image)), kernel = randomFloats(random, volume(weights));
  auto program = [&](const Order &order) {
    PlanBuilder builder({1});
    uint32_t in = builder.value(image, sharding(4), order), convolved = builder.value(result, sharding(4), order),
             out = builder.value(pooled, sharding(4), order);
    builder.input("in", in);
    ConvolutionStep convolution;
    convolution.input = in;
    convolution.weights = builder.constantValue(weights, sharding(4), kernel);
    convolution.output = convolved;
    convolution.strides = convolution.dilations = {1, 1};
    convolution.pads = {0, 0};
    PoolStep pool;
    pool.input = convolved;
    pool.output = out;
    pool.kernel = pool.strides = {2, 1};
    pool.dilations = {1, 1};
    pool.pads = {0, 0};
    builder.library(std::move(convolution));
    builder.library(std::move(pool));
    builder.output("out", out);
    return builder.program();
  };
  const Order channelsLast = {0, 2, 3, 1};
  auto runner = runtime::ProgramRunner::create(program(channelsLast));
  ASSERT_TRUE(runner.ok()) << runner.status();
  // Nothing but the bounds of the library itself: no copies.
  EXPECT_EQ((*runner)->statistics(0).scratchBytes, 2 << 20);
  auto expected = runFloats(program({}), {input}), actual = runFloats(program(channelsLast), {input});
  ASSERT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
  ASSERT_EQ((*expected)[0].size(), (*actual)[0].size());
  for (size_t i = 0; i < (*actual)[0].size(); ++i)
    ASSERT_NEAR((*expected)[0][i], (*actual)[0][i], 1e-4) << i;
}

TEST(CallMemory, ImplementationsThatNeedMoreAreNotChosen) {
  std::mt19937_64 random(2);
  std::vector<std::vector<float>> inputs = {randomFloats(random, 20 * 8 * 9)};
  // What the library has at last needs nothing.
  auto expected = runFloats(convolution(false, 1 << 20).program(), inputs),
       actual = runFloats(convolution(false, 0).program(), inputs);
  ASSERT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
  ASSERT_EQ((*expected)[0].size(), (*actual)[0].size());
  for (size_t i = 0; i < (*actual)[0].size(); ++i)
    EXPECT_NEAR((*expected)[0][i], (*actual)[0][i], 1e-4);
}

TEST(CallMemory, KernelsOfTheRuntimeDoWhatTheLibraryHasNoRoomFor) {
  // Weights without padded inputs, in vectors of 16 results at most. The library's fast code for AVX-512 takes twice as
  // much scratch memory, and that for AVX2 pads the 17 channels.
  constexpr int64_t channels = 17;
  PlanBuilder builder = convolution(/*transposed=*/false, /*callBytes=*/0, channels);
  artifact::CallMemoryT &memory = *builder.plan.steps[0]->action.AsLibraryStep()->memory;
  memory.packed = {channels * 48 * 9 * 4};
  memory.thread_scratch = {4096};
  auto program = builder.program();
  auto runner = runtime::ProgramRunner::create(program);
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_THAT((*runner)->calls(0)[0].implementation, testing::StartsWith("own gathered"));
  EXPECT_FALSE((*runner)->calls(0)[0].isReference);

  ConvolutionCase test;
  test.in = channels;
  test.out = 40;
  test.extents = {8, 9};
  test.kernel = {3, 3};
  test.strides = test.dilations = {1, 1};
  test.pads = {0, 0};
  test.results = {6, 7};
  std::mt19937_64 random(1);
  std::vector<float> weights = randomFloats(random, volume(test.weightsShape())),
                     input = randomFloats(random, volume(test.inputShape()));
  std::vector<double> expected = convolve(test, input, weights);
  auto actual = runFloats(program, {input});
  ASSERT_TRUE(actual.ok()) << actual.status();
  ASSERT_EQ((*actual)[0].size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR((*actual)[0][i], expected[i], 1e-4) << i;
}

TEST(CallMemory, WithoutImplementationTheCallTakesMoreAndSaysSo) {
  std::mt19937_64 random(3);
  std::vector<float> input = randomFloats(random, 20 * 8 * 9);
  auto expected = runFloats(convolution(true, 1 << 20).program(), {input});
  ASSERT_TRUE(expected.ok()) << expected.status();

  auto spare = runtime::ProgramRunner::create(convolution(true, 1 << 20).program()),
       tight = runtime::ProgramRunner::create(convolution(true, 64).program());
  ASSERT_TRUE(spare.ok() && tight.ok()) << spare.status() << tight.status();
  EXPECT_EQ((*spare)->calls(0)[0].excessBytes, 0);
  EXPECT_EQ((*spare)->remark(), "");
  const runtime::CallReport &call = (*tight)->calls(0)[0];
  EXPECT_LE(call.scratchBytes, call.scratchBound);
  EXPECT_GT(call.excessBytes, 0);
  EXPECT_EQ((*tight)->statistics(0).excessBytes, call.excessBytes);
  EXPECT_THAT((*tight)->remark(), testing::StartsWith("rank 0 takes "));
  EXPECT_THAT((*tight)->remark(), testing::HasSubstr(" such as deconvolution 'library0'; compile the model with"));

  const runtime::Plan &plan = (*tight)->getProgram().getPlan();
  std::vector<float> actual((*expected)[0].size());
  std::vector<runtime::FullTensor> in = {{input.data(), plan.inputs[0].type, plan.inputs[0].shape}},
                                   out = {{actual.data(), plan.outputs[0].type, plan.outputs[0].shape}};
  ASSERT_TRUE((*tight)->run(in, out).ok());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR((*expected)[0][i], actual[i], 1e-4) << i;
}
