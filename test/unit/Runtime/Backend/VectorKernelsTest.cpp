//===- VectorKernelsTest.cpp - Tests of kernels written by hand -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares kernels of all instruction sets that the machine has with sums in f64.
//
//===----------------------------------------------------------------------===//

#include "Backend/cpu/Kernels/VectorKernels.h"
#include "InstructionSets.h"

#include "gmock/gmock.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace dovetail;
using namespace dovetail::runtime;

namespace {

/// A convolution of `images` x `rows` x `columns` x `inputs`, of which `pad` results begin before it, among channels of
/// wider memory: `gap` elements lie between neighbours.
struct Case {
  int64_t images, rows, columns, inputs, outputs, padRows, padColumns, outputRows, outputColumns, gap, block;
};

class Winograd : public testing::TestWithParam<Case> {};

TEST_P(Winograd, IsTheSumOfProducts) {
  const Case &c = GetParam();
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
  auto fill = [&](int64_t size) {
    std::vector<float> values(size);
    for (float &value : values)
      value = uniform(random);
    return values;
  };
  int64_t inputWidth = c.inputs + c.gap, outputWidth = c.outputs + c.gap;
  std::vector<float> input = fill(c.images * c.rows * c.columns * inputWidth), weights = fill(c.outputs * c.inputs * 9);
  std::vector<float> bias = fill(c.outputs), before = fill(c.images * c.outputRows * c.outputColumns * outputWidth);

  std::vector<double> expected(before.begin(), before.end());
  double largest = 0;
  for (int64_t image = 0; image < c.images; ++image)
    for (int64_t y = 0; y < c.outputRows; ++y)
      for (int64_t x = 0; x < c.outputColumns; ++x)
        for (int64_t o = 0; o < c.outputs; ++o) {
          double sum = bias[o];
          for (int64_t i = 0; i < 3; ++i)
            for (int64_t j = 0; j < 3; ++j) {
              int64_t row = y - c.padRows + i, column = x - c.padColumns + j;
              if (row < 0 || row >= c.rows || column < 0 || column >= c.columns)
                continue;
              for (int64_t channel = 0; channel < c.inputs; ++channel)
                sum += double(input[((image * c.rows + row) * c.columns + column) * inputWidth + channel]) *
                       weights[(o * c.inputs + channel) * 9 + i * 3 + j];
            }
          double &result = expected[((image * c.outputRows + y) * c.outputColumns + x) * outputWidth + o];
          // What lies there is added, then halved where it is negative, and limited.
          result += sum;
          largest = std::max(largest, std::abs(result));
          result = std::min(result < 0 ? result / 2 : result, 1.5);
        }

  for (const InstructionSet &set : instructionSets()) {
    SCOPED_TRACE(set.name);
    const VectorKernels &kernels = *set.kernels;
    int64_t panels = kernels.panelsOf(c.outputs);
    std::vector<float> packed(kernels.winogradWeights(c.outputs, c.inputs));
    WinogradWeights from{weights.data(), c.outputs, c.inputs, c.inputs * 9, 9, 3, 1};
    for (int64_t panel = 0; panel < panels; ++panel)
      kernels.packWinograd(from, packed.data(), panel, panel + 1);
    auto run = [&](int64_t block, int64_t tileParts, int64_t panelParts) {
      std::vector<float> output = before, scratch(kernels.winogradScratch(c.inputs, block), std::nanf(""));
      WinogradTask task{};
      task.input = input.data();
      task.inputColumnStride = inputWidth;
      task.inputRowStride = c.columns * inputWidth;
      task.inputImageStride = c.rows * c.columns * inputWidth;
      task.inputRows = c.rows;
      task.inputColumns = c.columns;
      task.padRows = c.padRows;
      task.padColumns = c.padColumns;
      task.output = output.data();
      task.outputColumnStride = outputWidth;
      task.outputRowStride = c.outputColumns * outputWidth;
      task.outputImageStride = c.outputRows * c.outputColumns * outputWidth;
      task.images = c.images;
      task.outputRows = c.outputRows;
      task.outputColumns = c.outputColumns;
      task.inputs = c.inputs;
      task.outputs = c.outputs;
      task.weights = packed.data();
      task.epilogue.bias = bias.data();
      task.epilogue.addend = output.data();
      task.epilogue.steps[0] = {EpilogueStep::AddTensor, 0, 0};
      task.epilogue.steps[1] = {EpilogueStep::Relu, 0.5f, 0};
      task.epilogue.steps[2] = {EpilogueStep::Clip, -1e30f, 1.5f};
      task.epilogue.numSteps = 3;
      task.tilesOfBlock = block;
      int64_t tiles = task.numTiles();
      for (int64_t i = 0; i < tileParts; ++i)
        for (int64_t j = 0; j < panelParts; ++j)
          kernels.runWinograd(task, tiles * i / tileParts, tiles * (i + 1) / tileParts, panels * j / panelParts,
                              panels * (j + 1) / panelParts, scratch.data());
      return output;
    };
    std::vector<float> whole = run(c.block, 1, 1);
    for (size_t i = 0; i < whole.size(); ++i)
      ASSERT_NEAR(whole[i], expected[i], 1e-5 * largest) << "element " << i;
    // Bit by bit, however it is divided.
    EXPECT_EQ(run(1, 3, 2), whole);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Winograd,
    testing::Values(Case{1, 8, 8, 16, 32, 1, 1, 8, 8, 0, 24}, Case{1, 3, 3, 1, 1, 0, 0, 1, 1, 0, 1},
                    Case{2, 9, 13, 5, 7, 1, 1, 9, 13, 3, 24}, Case{1, 6, 5, 33, 65, 3, 2, 11, 7, 1, 5},
                    Case{3, 17, 4, 20, 48, 0, 1, 15, 4, 0, 48}, Case{1, 30, 30, 64, 40, 1, 1, 30, 30, 4, 30}));

TEST(SigmoidKernel, IsWithinItsBound) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> given = {0,      -0.0f, infinity, -infinity,     3e38f,         -3e38f,
                              1e-40f, 88,    -88,      std::nanf(""), -std::nanf("")};
  // All bits of a fraction.
  given.push_back(std::bit_cast<float>(0xffffffffu));
  given.push_back(std::bit_cast<float>(0x7fc00001u));
  for (float x = -20; x < 20; x += 0.03f)
    given.push_back(x);
  for (const InstructionSet &set : instructionSets()) {
    SCOPED_TRACE(set.name);
    for (size_t count : {given.size(), given.size() - 3}) {
      std::vector<float> data = given;
      set.kernels->sigmoid(data.data(), static_cast<int64_t>(count));
      for (size_t i = 0; i < count; ++i) {
        if (std::isnan(given[i]))
          EXPECT_TRUE(std::isnan(data[i])) << "element " << i;
        else
          EXPECT_NEAR(data[i], 1 / (1 + std::exp(-static_cast<double>(given[i]))), 1e-6) << given[i];
      }
      EXPECT_TRUE(std::equal(given.begin() + count, given.end(), data.begin() + count)) << "writes beyond the end";
    }
  }
}

} // namespace
