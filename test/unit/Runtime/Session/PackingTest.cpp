//===- PackingTest.cpp - Weights that are packed when a session starts ----===//
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
using artifact::BufferKind;

namespace {

constexpr int64_t rows = 2, terms = 1500, columns = 1000;
constexpr int64_t weightBytes = terms * columns * 4;

/// The sum of products of the input with `count` matrices, each of which the prologue makes of a constant.
struct Products {
  PlanBuilder builder{{1}};
  std::vector<std::vector<float>> constants;
  std::vector<uint32_t> weights; ///< What the prologue makes: tensors.

  explicit Products(int count, int64_t callBytes) {
    builder.callBytes = callBytes;
    std::mt19937_64 random(1);
    uint32_t in = builder.value({rows, terms}, sharding(2)),
             ones = builder.constantValue({columns}, sharding(1), std::vector(columns, 1.0F));
    builder.input("in", in);
    for (int i = 0; i < count; ++i) {
      constants.push_back(randomFloats(random, terms * columns));
      uint32_t constant = builder.constantValue({terms, columns}, sharding(2), constants.back());
      weights.push_back(builder.tensor(builder.buffer({terms, columns}, sharding(2), {}, BufferKind::Persistent),
                                       sharding(2), "weights"));
      builder.kernel("scaleAndPlace", {constant, ones}, {weights.back()}, {{terms, {}}, {columns, {}}}, -1,
                     /*inPrologue=*/true);
    }
    for (int i = 0; i < count; ++i) {
      MatMulStep product;
      product.a = in;
      product.b = weights[i];
      product.output = builder.value({rows, columns}, sharding(2));
      builder.output("out" + std::to_string(i), product.output);
      builder.library(std::move(product));
    }
  }

  /// Checks the results of a run, and that the estimate of memory is what it is. Returns that.
  runtime::SessionStatistics check(int threads = 1) {
    std::mt19937_64 random(2);
    std::vector<float> input = randomFloats(random, rows * terms);
    auto program = builder.program();
    auto results = runFloats(program, {input});
    EXPECT_TRUE(results.ok()) << results.status();
    for (size_t i = 0; results.ok() && i < constants.size(); ++i)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column : {int64_t(0), int64_t(517), columns - 1}) {
          double sum = 0, size = 0;
          for (int64_t k = 0; k < terms; ++k) {
            double term = input[row * terms + k] *
                          (double(constants[i][k * columns + column]) + static_cast<double>(1000 * k + column));
            sum += term;
            size += std::abs(term);
          }
          EXPECT_NEAR((*results)[i][row * columns + column], sum, 1e-6 * size) << i << ", " << row << ", " << column;
        }
    runtime::RunnerOptions options;
    options.threads = threads;
    auto runner = runtime::ProgramRunner::create(program, options);
    EXPECT_TRUE(runner.ok()) << runner.status();
    auto planned = runtime::estimateStatistics(program->getPlan(), 0, threads);
    EXPECT_TRUE(planned.ok()) << planned.status();
    if (!runner.ok() || !planned.ok())
      return {};
    EXPECT_TRUE(*planned == (*runner)->statistics(0));
    return *planned;
  }
};

} // namespace

TEST(Packing, OneOfManyWeightsIsInMemoryAsItWas) {
  runtime::SessionStatistics found = Products(4, 8 << 20).check();
  EXPECT_EQ(found.persistentBytes, 0);
  EXPECT_EQ(found.weightBytes, 0);
  EXPECT_EQ(found.packedBytes, 4 * (8 << 20));
  // As many pieces at once as the arena has room for, which is scratch memory here.
  EXPECT_GE(found.startBytes, weightBytes);
  EXPECT_LE(found.startBytes, found.arenaBytes);
  EXPECT_LT(found.startBytes, 4 * weightBytes);
}

namespace {

/// A convolution whose weights the prologue makes, and which may take so many bytes. Checks its result.
runtime::SessionStatistics convolveMadeWeights(int64_t callBytes) {
  ConvolutionCase test;
  test.in = 20;
  test.out = 40;
  test.extents = {8, 9};
  test.kernel = {3, 3};
  test.strides = test.dilations = {1, 1};
  test.pads = {0, 0};
  test.results = {6, 7};
  std::mt19937_64 random(3);
  std::vector<float> input = randomFloats(random, volume(test.inputShape())),
                     constant = randomFloats(random, volume(test.weightsShape())), weights = constant;
  for (float &weight : weights)
    weight += 1;

  PlanBuilder builder({1});
  builder.callBytes = callBytes;
  ConvolutionStep call;
  call.input = builder.value(test.inputShape(), sharding(4), {0, 2, 3, 1});
  call.output = builder.value(test.outputShape(), sharding(4), {0, 2, 3, 1});
  call.strides = call.dilations = {1, 1};
  call.pads = {0, 0};
  call.weights = builder.tensor(builder.buffer(test.weightsShape(), sharding(4), {}, BufferKind::Persistent),
                                sharding(4), "weights");
  builder.kernel("incrementWindows", {builder.constantValue(test.weightsShape(), sharding(4), constant)},
                 {call.weights}, {{40, {}}, {20, {}}, {3, {}}, {3, {}}}, -1, /*inPrologue=*/true);
  builder.input("in", call.input);
  builder.output("out", call.output);
  builder.library(std::move(call));
  auto program = builder.program();
  auto results = runFloats(program, {input});
  EXPECT_TRUE(results.ok()) << results.status();
  std::vector<double> expected = convolve(test, input, weights);
  for (size_t i = 0; results.ok() && i < expected.size(); ++i)
    EXPECT_NEAR((*results)[0][i], expected[i], 1e-3) << i;
  auto runner = runtime::ProgramRunner::create(program);
  auto planned = runtime::estimateStatistics(program->getPlan(), 0, 1);
  EXPECT_TRUE(runner.ok() && planned.ok() && *planned == (*runner)->statistics(0)) << runner.status();
  return planned.ok() ? *planned : runtime::SessionStatistics();
}

constexpr int64_t windowBytes = 40 * 20 * 3 * 3 * 4;

} // namespace

TEST(Packing, WhatTheLibraryTakesAsItIsIsCopied) {
  // Channels would be filled up to whole blocks, for which there is no room.
  runtime::SessionStatistics found = convolveMadeWeights(windowBytes);
  EXPECT_EQ(found.persistentBytes, 0);
  EXPECT_EQ(found.startBytes, windowBytes);
}

TEST(Packing, WithoutRoomForACopyWeightsStay) {
  EXPECT_EQ(convolveMadeWeights(windowBytes - 64).persistentBytes, windowBytes);
  EXPECT_EQ(convolveMadeWeights(1 << 20).persistentBytes, 0);
}

TEST(Packing, WhatRunsReadStays) {
  Products products(2, 8 << 20);
  uint32_t copy = products.builder.value({terms, columns}, sharding(2));
  uint32_t ones = products.builder.constantValue({columns}, sharding(1), std::vector(columns, 1.0F));
  products.builder.kernel("scaleAndPlace", {products.weights[1], ones}, {copy}, {{terms, {}}, {columns, {}}});
  products.builder.output("copy", copy);
  runtime::SessionStatistics found = products.check();
  EXPECT_EQ(found.persistentBytes, weightBytes);
  EXPECT_EQ(found.weightBytes, columns * 4);
}

TEST(Packing, WhatRanksExchangeStays) {
  PlanBuilder builder({2});
  auto dim = split(0, {0, 2, 4});
  layout::Sharding cut = sharding(1, {{0, dim}}), whole = sharding(1);
  uint32_t one = builder.constantValue({4}, cut, {1, 2, 3, 4});
  uint32_t part = builder.tensor(builder.buffer({4}, cut, {}, BufferKind::Persistent), cut, "part");
  uint32_t all = builder.tensor(builder.buffer({4}, whole, {}, BufferKind::Persistent), whole, "all");
  uint32_t last = builder.tensor(builder.buffer({4}, whole, {}, BufferKind::Persistent), whole, "last");
  uint32_t out = builder.value({4}, whole);
  builder.kernel("increment", {one}, {part}, {{4, dim}}, -1, /*inPrologue=*/true);
  builder.exchange(part, all, /*inPrologue=*/true);
  builder.kernel("increment", {all}, {last}, {{4, {}}}, -1, /*inPrologue=*/true);
  builder.kernel("increment", {last}, {out}, {{4, {}}});
  builder.output("out", out);
  auto program = builder.program();
  auto results = runFloats(program, {});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0], (std::vector<float>{4, 5, 6, 7}));
  auto planned = runtime::estimateStatistics(program->getPlan(), 0, 1);
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->persistentBytes, 3 * 64);
}
