//===- PackingTest.cpp - Weights that are packed when a session starts ----===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/Reference.h"
#include "Program/PackedWeights.h"

#include "dovetail/runtime/HostFeatures.h"
#include "dovetail/runtime/ProgramRunner.h"

#include <algorithm>
#include <optional>

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

/// A convolution whose weights the prologue makes, and which may take so many bytes. With `step`, two threads divide
/// its 40 output channels there, and pack so many parts. Checks its result.
runtime::SessionStatistics convolveMadeWeights(int64_t callBytes, int64_t step = 0, int64_t parts = 1) {
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
  runtime::RunnerOptions options;
  if (step > 0) {
    builder.divide(/*loop=*/1, step);
    options.threads = 2;
  }
  auto program = builder.program();
  auto results = runFloats(program, {input}, options);
  EXPECT_TRUE(results.ok()) << results.status();
  std::vector<double> expected = convolve(test, input, weights);
  for (size_t i = 0; results.ok() && i < expected.size(); ++i)
    EXPECT_NEAR((*results)[0][i], expected[i], 1e-3) << i;
  auto runner = runtime::ProgramRunner::create(program, options);
  auto planned = runtime::estimateStatistics(program->getPlan(), 0, step > 0 ? 2 : 1);
  EXPECT_TRUE(runner.ok() && planned.ok() && *planned == (*runner)->statistics(0)) << runner.status();
  // The keys of parts end so.
  for (const auto &[key, bytes] : program->getPackedWeights().contents())
    EXPECT_EQ(std::count(key.begin(), key.end(), ';'), parts);
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

TEST(Packing, WhatThreadsDivideIsCopiedInParts) {
  // Both parts have half of the room: that suffices for 20 channels, and not for 24, so that one thread has all.
  for (auto [step, parts] : {std::pair(20, 2), std::pair(24, 1)}) {
    SCOPED_TRACE(step);
    runtime::SessionStatistics found = convolveMadeWeights(windowBytes, step, parts);
    EXPECT_EQ(found.persistentBytes, 0);
    EXPECT_EQ(found.startBytes, windowBytes);
    EXPECT_EQ(found.packedBytes, windowBytes);
  }
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

TEST(Packing, RanksShareWhatTheyPackAlike) {
  // Rows are divided, weights are not. Those of the first product are made by the prologue.
  // Two threads a rank divide `loop` of the products, if it is given.
  auto resident = [](int ranks, std::optional<uint32_t> loop = std::nullopt) -> int64_t {
    PlanBuilder builder({ranks});
    builder.callBytes = 8 << 20;
    std::vector<int64_t> cuts;
    for (int i = 0; i <= ranks; ++i)
      cuts.push_back(8 * i);
    layout::DimSharding dim = split(0, cuts);
    int64_t all = 8L * ranks;
    std::mt19937_64 random(1);
    std::vector<float> constant = randomFloats(random, terms * columns), input = randomFloats(random, all * terms);
    uint32_t in = builder.value({all, terms}, sharding(2, {{0, dim}}));
    uint32_t ones = builder.constantValue({columns}, sharding(1), std::vector(columns, 0.0F));
    uint32_t plain = builder.constantValue({terms, columns}, sharding(2), constant);
    uint32_t made = builder.tensor(builder.buffer({terms, columns}, sharding(2), {}, BufferKind::Persistent),
                                   sharding(2), "weights");
    builder.kernel("scaleAndPlace", {plain, ones}, {made}, {{terms, {}}, {columns, {}}}, -1, /*inPrologue=*/true);
    builder.input("in", in);
    for (uint32_t weights : {made, plain}) {
      MatMulStep product;
      product.a = in;
      product.b = weights;
      product.output = builder.value({all, columns}, sharding(2, {{0, dim}}));
      builder.output(weights == made ? "made" : "plain", product.output);
      builder.library(std::move(product));
      if (loop)
        builder.divide(*loop, *loop == 0 ? 1 : 64);
    }
    auto program = builder.program();
    EXPECT_EQ(program->getPackedWeights().bytes(), 0);
    // Two runners at once share, too.
    runtime::RunnerOptions options;
    options.threads = loop ? 2 * ranks : ranks;
    auto one = runtime::ProgramRunner::create(program, options),
         other = runtime::ProgramRunner::create(program, options);
    EXPECT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
    if (!one.ok() || !other.ok())
      return -1;
    int64_t bytes = program->getPackedWeights().bytes();
    one->reset();
    EXPECT_EQ(program->getPackedWeights().bytes(), bytes);
    std::vector<float> results[2] = {std::vector<float>(all * columns), std::vector<float>(all * columns)};
    std::vector<runtime::FullTensor> inputs(1), outputs(2);
    inputs[0].type = runtime::ElementType::F32;
    inputs[0].shape = {all, terms};
    inputs[0].data = reinterpret_cast<std::byte *>(input.data());
    for (int i = 0; i < 2; ++i) {
      outputs[i].type = runtime::ElementType::F32;
      outputs[i].shape = {all, columns};
      outputs[i].data = reinterpret_cast<std::byte *>(results[i].data());
    }
    absl::Status status = (*other)->run(inputs, outputs);
    EXPECT_TRUE(status.ok()) << status;
    for (int64_t row = 0; row < all; row += 5)
      for (int64_t column = 0; column < columns; column += 333) {
        double sum[2] = {}, size[2] = {};
        for (int64_t k = 0; k < terms; ++k)
          for (int i = 0; i < 2; ++i) {
            double weight = i == 0 ? static_cast<double>(1000 * k + column) : constant[k * columns + column];
            sum[i] += input[row * terms + k] * weight;
            size[i] += std::abs(input[row * terms + k] * weight);
          }
        for (int i = 0; i < 2; ++i)
          EXPECT_NEAR(results[i][row * columns + column], sum[i], 1e-6 * size[i]) << row << ", " << column;
      }
    other->reset();
    EXPECT_EQ(program->getPackedWeights().bytes(), 0);
    return bytes;
  };
  int64_t alone = resident(1);
  // Without AVX2 oneDNN reads weights that change as they are.
  EXPECT_GE(alone, (runtime::hostHasFeature("avx2") ? 2 : 1) * weightBytes);
  EXPECT_LT(alone, 3 * weightBytes);
  EXPECT_EQ(resident(3), alone);
  // Threads with different rows use the same weights; those with different columns have theirs, which ranks share.
  EXPECT_EQ(resident(1, 0), alone);
  EXPECT_EQ(resident(3, 0), alone);
  int64_t columnwise = resident(1, 1);
  EXPECT_GE(columnwise, (runtime::hostHasFeature("avx2") ? 2 : 1) * weightBytes);
  EXPECT_LT(columnwise, 3 * weightBytes);
  EXPECT_EQ(resident(3, 1), columnwise);
}

TEST(Packing, EachAlgorithmHasItsOwnWeights) {
  ConvolutionCase test;
  test.in = 20;
  test.out = 40;
  test.extents = test.results = {8, 9};
  test.kernel = {3, 3};
  test.strides = test.dilations = test.pads = {1, 1};
  std::mt19937_64 random(3);
  std::vector<float> input = randomFloats(random, volume(test.inputShape())),
                     weights = randomFloats(random, volume(test.weightsShape()));
  std::vector<double> expected = convolve(test, input, weights);
  using artifact::ConvolutionAlgorithm;
  struct Form {
    ConvolutionAlgorithm algorithm;
    std::vector<int32_t> order; ///< Of dimensions, outermost first: with columns outside of rows, tiles are transposed.
  };
  const Form forms[] = {{ConvolutionAlgorithm::Library, {0, 2, 3, 1}},
                        {ConvolutionAlgorithm::Winograd, {0, 2, 3, 1}},
                        {ConvolutionAlgorithm::Winograd, {0, 3, 2, 1}}};
  // Whichever packs first, alone and with rows or output channels divided among ranks; on ranks of one to four threads,
  // which divide nothing, rows or output channels.
  struct Case {
    std::vector<int64_t> cuts; ///< Of ranks,
    int dim;                   ///< of the result.
    std::optional<uint32_t> loop;
    size_t packed; ///< Of how many forms there are weights: those of all threads of a call count as one.
  };
  const Case cases[] = {
      {{0, 8}, 2, {}, 3},       // All in one.
      {{0, 3, 4, 8}, 2, {}, 3}, // Ranks with different rows use the same weights,
      {{0, 8}, 2, 2, 3},        // and so do threads.
      {{0, 3, 4, 8}, 2, 2, 3},
      {{0, 8}, 2, 1, 6}, // The library has others for two, three and four threads with different channels,
      {{0, 3, 4, 8}, 2, 1, 6},
      {{0, 16, 32, 40}, 1, 2, 9},
      {{0, 16, 32, 40}, 1, 1, 11}, // and for two on the first and the second rank.
  };
  for (const Case &each : cases)
    for (size_t first = 0; first < std::size(forms); ++first) {
      SCOPED_TRACE(testing::Message() << "case " << &each - cases << ", first " << first);
      int ranks = static_cast<int>(each.cuts.size()) - 1;
      PlanBuilder builder({ranks});
      layout::Sharding whole = sharding(4), cut = sharding(4, {{each.dim, split(0, each.cuts)}});
      uint32_t constant = builder.constantValue(test.weightsShape(), whole, weights);
      // The halo of a rank's rows is nobody's business here: all ranks have the input.
      uint32_t in = builder.value(test.inputShape(), whole);
      builder.input("in", in);
      for (size_t i = 0; i < std::size(forms); ++i) {
        const Form &form = forms[(first + i) % std::size(forms)];
        ConvolutionStep call;
        call.algorithm = form.algorithm;
        call.input = in;
        call.weights = constant;
        call.output = builder.value(test.outputShape(), cut, form.order);
        call.strides = call.dilations = call.pads = {1, 1};
        builder.output("out" + std::to_string(i), call.output);
        builder.library(std::move(call));
        if (each.loop)
          builder.divide(*each.loop, *each.loop == 1 ? 8 : 1);
      }
      auto program = builder.program();
      // All of them live at once, so each uses what those before it have packed alike, and nothing else.
      std::vector<std::unique_ptr<runtime::ProgramRunner>> runners;
      for (size_t i = 0; i < 4; ++i) {
        runtime::RunnerOptions options;
        options.threads = ranks * static_cast<int>((first + i) % 4 + 1);
        auto runner = runtime::ProgramRunner::create(program, options);
        ASSERT_TRUE(runner.ok()) << runner.status();
        runners.push_back(*std::move(runner));
        auto results = runFloats(program, {input}, options);
        ASSERT_TRUE(results.ok()) << results.status();
        for (size_t output = 0; output < std::size(forms); ++output)
          EXPECT_TRUE(near(expected, (*results)[output])) << options.threads << " threads, " << output;
      }
      EXPECT_EQ(program->getPackedWeights().contents().size(), each.packed);
    }
}

TEST(Packing, WhatOneGivesUpAnotherDoes) {
  runtime::PackedWeights weights;
  int64_t asked = 0;
  auto allocate = [&](int64_t bytes) -> absl::StatusOr<std::shared_ptr<std::byte>> {
    asked = bytes;
    return std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>());
  };
  auto first = weights.acquire({{"a", 64}, {"b", 128}}, "here", allocate);
  EXPECT_EQ(asked, 192);
  auto second = weights.acquire({{"b", 128}, {"c", 64}}, "here", allocate);
  EXPECT_EQ(asked, 64);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ((*first)[1], (*second)[0]);
  EXPECT_EQ((*first)[1]->data(), (*first)[0]->data() + 64);
  EXPECT_EQ(weights.bytes(), 256);
  using State = runtime::PackedWeights::Entry::State;
  runtime::PackedWeights::Entry &entry = *(*first)[1];
  EXPECT_TRUE(entry.claim());
  EXPECT_FALSE(entry.claim());
  EXPECT_EQ(entry.waitFor(std::chrono::milliseconds(1)), State::Claimed);
  entry.finish(/*success=*/false);
  EXPECT_EQ(entry.waitFor(std::chrono::milliseconds(1)), State::Empty);
  EXPECT_TRUE(entry.claim());
  entry.finish(/*success=*/true);
  EXPECT_EQ(entry.waitFor(std::chrono::milliseconds(1)), State::Packed);
  EXPECT_FALSE(entry.claim());
  first->clear();
  EXPECT_EQ(weights.bytes(), 192);
  auto none = [](int64_t) -> absl::StatusOr<std::shared_ptr<std::byte>> {
    return absl::ResourceExhaustedError("none");
  };
  EXPECT_FALSE(weights.acquire({{"d", 64}}, "here", none).ok());
  EXPECT_EQ(weights.bytes(), 192);
}

TEST(Packing, ImagesAreReadAsTheyWereWritten) {
  std::vector<float> first = {1, 2, 3}, second(100, 5);
  auto bytesOf = [](const std::vector<float> &values) {
    return absl::MakeConstSpan(reinterpret_cast<const std::byte *>(values.data()), values.size() * sizeof(float));
  };
  runtime::PackedImage image{"a library", 3, {{"first", bytesOf(first)}, {"second", bytesOf(second)}}};
  std::vector<std::byte> bytes = image.serialize();
  auto parsed = runtime::PackedImage::parse(bytes);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->machine, "a library");
  EXPECT_EQ(parsed->threads, 3);
  EXPECT_EQ(parsed->entries, image.entries);
  for (const auto &[key, entry] : parsed->entries)
    EXPECT_EQ((entry.data() - bytes.data()) % 64, 0) << key;

  // Whatever is damaged or missing, nothing outside is read.
  for (size_t size = 0; size + 401 < bytes.size(); ++size)
    EXPECT_EQ(runtime::PackedImage::parse(absl::MakeConstSpan(bytes).first(size)).status().code(),
              absl::StatusCode::kDataLoss);
  for (size_t number = 0; number < 9; ++number) {
    std::vector<std::byte> damaged = bytes;
    std::fill_n(damaged.begin() + number * 8, 8, std::byte(255));
    EXPECT_EQ(runtime::PackedImage::parse(damaged).status().code(), absl::StatusCode::kDataLoss) << number;
  }
}

TEST(Packing, AnImageIsForOneMachine) {
  std::vector<std::byte> packed(64, std::byte(7));
  auto missingOn = [&](const char *machine, int64_t bytes) {
    runtime::PackedWeights weights;
    weights.setImage({"this", 1, {{"a", packed}}}, [](auto) { return absl::OkStatus(); });
    auto entries = weights.acquire({{"a", bytes}}, machine, [](int64_t size) {
      return std::shared_ptr<std::byte>(new std::byte[size], std::default_delete<std::byte[]>());
    });
    EXPECT_TRUE(entries.ok());
    bool isUsed = entries.ok() && (*entries)[0]->data() == packed.data();
    EXPECT_EQ(isUsed, entries.ok() && !(*entries)[0]->claim());
    EXPECT_EQ(isUsed, weights.numMissing() == 0);
    return weights.numMissing();
  };
  EXPECT_EQ(missingOn("this", 64), 0);
  EXPECT_EQ(missingOn("that", 64), 1);
  EXPECT_EQ(missingOn("this", 128), 1);
}
