//===- ProductKernelTest.cpp - Tests of kernels for products --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares products by the kernels of all instruction sets that the machine has with sums in f64.
//
//===----------------------------------------------------------------------===//

#include "InstructionSets.h"

#include "gmock/gmock.h"

#include <cmath>
#include <limits>
#include <random>

using namespace dovetail::runtime;

namespace {

/// Rows of the input, the weights and the output have `gap` elements more than they need. Weights lie by rows, or with
/// `isTransposed` by columns.
struct Case {
  int64_t rows, depth, columns, gap;
  bool isTransposed;
};

class Product : public testing::TestWithParam<Case> {};

TEST_P(Product, IsTheSumOfProducts) {
  const Case &c = GetParam();
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-0.5f, 0.5f);
  auto fill = [&](int64_t size) {
    std::vector<float> values(size);
    for (float &value : values)
      value = uniform(random);
    return values;
  };
  int64_t inputRow = c.depth + c.gap, outputRow = c.columns + c.gap;
  int64_t termStride = c.isTransposed ? 1 : c.columns + c.gap, columnStride = c.isTransposed ? c.depth + c.gap : 1;
  std::vector<float> input = fill(c.rows * inputRow), bias = fill(c.columns), before = fill(c.rows * outputRow),
                     weights = fill((c.isTransposed ? c.columns : c.depth) * (std::max(termStride, columnStride)));
  // Each addition rounds to 24 bits.
  std::vector<double> expected(before.begin(), before.end()), errors(before.size());
  for (int64_t row = 0; row < c.rows; ++row)
    for (int64_t column = 0; column < c.columns; ++column) {
      double sum = bias[column], size = 2;
      for (int64_t term = 0; term < c.depth; ++term) {
        double product = double(input[row * inputRow + term]) * weights[term * termStride + column * columnStride];
        sum += product;
        size += std::abs(product);
      }
      errors[row * outputRow + column] = std::ldexp(size * double(c.depth + 4), -24);
      // What lies there is added, then halved where it is negative, and limited.
      double &result = expected[row * outputRow + column];
      result += sum;
      result = std::min(result < 0 ? result / 2 : result, 1.5);
    }

  for (const InstructionSet &set : instructionSets()) {
    SCOPED_TRACE(set.name);
    const VectorKernels &kernels = *set.kernels;
    std::vector<float> packed(kernels.productWeights(c.depth, c.columns), std::nanf(""));
    kernels.packProduct({weights.data(), c.depth, c.columns, termStride, columnStride}, packed.data());
    auto run = [&](int64_t block) {
      std::vector<float> output = before;
      ProductTask task{};
      task.weights = packed.data();
      task.depth = c.depth;
      task.columns = c.columns;
      task.inputRow = inputRow;
      task.outputRow = outputRow;
      task.epilogue.bias = bias.data();
      task.epilogue.steps[0] = {EpilogueStep::AddTensor, 0, 0};
      task.epilogue.steps[1] = {EpilogueStep::Relu, 0.5f, 0};
      task.epilogue.steps[2] = {EpilogueStep::Clip, -1e30f, 1.5f};
      task.epilogue.numSteps = 3;
      for (int64_t row = 0; row < c.rows; row += block) {
        task.rows = std::min(block, c.rows - row);
        task.input = input.data() + row * inputRow;
        task.output = output.data() + row * outputRow;
        task.epilogue.addend = task.output;
        kernels.runProduct(task);
      }
      return output;
    };
    std::vector<float> whole = run(c.rows);
    for (size_t i = 0; i < whole.size(); ++i)
      ASSERT_NEAR(whole[i], expected[i], errors[i]) << "element " << i;
    // Bit by bit, however rows are divided.
    EXPECT_EQ(run(5), whole);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Product,
                         testing::Values(Case{1, 1, 1, 0, false}, Case{4, 16, 32, 0, false}, Case{7, 5, 33, 3, false},
                                         Case{13, 64, 17, 0, true}, Case{50, 33, 9, 2, true},
                                         Case{29, 3000, 40, 0, false}, Case{25, 50000, 3, 1, true},
                                         Case{6, 0, 20, 0, false}));

TEST(ProductEpilogue, ReluGivesZeroOrNaN) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  // Sums of nothing, to which these are added.
  std::vector<float> bias = {-infinity, -1, -0.0f, 0, 2, infinity, std::nanf(""), -1e-45f, 3};
  for (const InstructionSet &set : instructionSets()) {
    SCOPED_TRACE(set.name);
    auto columns = static_cast<int64_t>(bias.size());
    std::vector<float> packed(std::max<int64_t>(set.kernels->productWeights(0, columns), 1)),
        output(3 * bias.size(), 7);
    ProductTask task{};
    task.weights = packed.data();
    task.input = output.data();
    task.output = output.data();
    task.rows = 3;
    task.columns = task.outputRow = columns;
    task.epilogue.bias = bias.data();
    task.epilogue.steps[0] = {EpilogueStep::Relu, 0, 0};
    task.epilogue.numSteps = 1;
    set.kernels->runProduct(task);
    for (size_t i = 0; i < output.size(); ++i) {
      float given = bias[i % bias.size()];
      if (std::isnan(given)) {
        EXPECT_TRUE(std::isnan(output[i])) << "element " << i;
        continue;
      }
      EXPECT_EQ(output[i], std::max(given, 0.0f)) << "element " << i;
      EXPECT_FALSE(std::signbit(output[i])) << "element " << i;
    }
  }
}

} // namespace
