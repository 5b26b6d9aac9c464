//===- ConvolutionResidualTest.cpp - Residuals in the results' memory -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/Reference.h"

#include <cmath>
#include <limits>

using namespace dovetail;
using namespace dovetail::test;

namespace {

/// Whether all are alike: NaN, the same infinity, or numbers close to each other.
testing::AssertionResult isLike(const std::vector<double> &expected, const std::vector<float> &actual) {
  for (size_t i = 0; i < expected.size(); ++i) {
    bool isEqual = std::isnan(expected[i])   ? std::isnan(actual[i])
                   : std::isinf(expected[i]) ? expected[i] == actual[i]
                                             : std::abs(expected[i] - actual[i]) < 1e-4;
    if (!isEqual)
      return testing::AssertionFailure() << actual[i] << " at " << i << ", expected " << expected[i];
  }
  return testing::AssertionSuccess();
}

/// A convolution with a residual that lies where its result goes, and a Relu.
void checkResidualInPlace(const std::vector<std::pair<size_t, float>> &inInput,
                          const std::vector<std::pair<size_t, float>> &inResidual) {
  // Calls are divided alike: not all parts of a result lie together.
  std::mt19937_64 random(13);
  ConvolutionCase test;
  test.in = test.out = 16;
  test.extents = test.results = {9, 5};
  test.kernel = {3, 3};
  test.strides = test.dilations = {1, 1};
  test.pads = {1, 1};
  std::vector<float> input = randomFloats(random, volume(test.inputShape())),
                     weights = randomFloats(random, volume(test.weightsShape())),
                     residual = randomFloats(random, volume(test.outputShape()));
  for (auto [index, value] : inInput)
    input[index] = value;
  for (auto [index, value] : inResidual)
    residual[index] = value;
  for (auto kind : {artifact::PostOpKind::AddTensor, artifact::PostOpKind::MulTensor})
    for (Order order : {Order{0, 2, 3, 1}, Order{0, 1, 2, 3}}) {
      PlanBuilder builder({1});
      uint32_t in = builder.value(test.inputShape(), sharding(4), order);
      uint32_t kernel = builder.constantValue(test.weightsShape(), sharding(4), weights);
      uint32_t buffer = builder.buffer(test.outputShape(), sharding(4), order);
      uint32_t before = builder.tensor(buffer, sharding(4)), after = builder.tensor(buffer, sharding(4));
      builder.input("input", in);
      builder.input("residual", before);
      ConvolutionStep call;
      call.input = in;
      call.weights = kernel;
      call.output = after;
      call.strides = test.strides;
      call.dilations = test.dilations;
      call.pads = test.pads;
      for (auto step : {kind, artifact::PostOpKind::Relu}) {
        call.post_ops.push_back(std::make_unique<artifact::PostOpT>());
        call.post_ops.back()->kind = step;
        call.post_ops.back()->tensor = step == kind ? before : -1;
      }
      builder.library(std::move(call));
      builder.output("out", after);
      runtime::RunnerOptions options = divideCalls(random, builder);
      auto results = runFloats(builder.program(), {input, residual}, options);
      ASSERT_TRUE(results.ok()) << results.status();
      std::vector<double> expected = convolve(test, input, weights);
      for (size_t i = 0; i < expected.size(); ++i) {
        double &value = expected[i];
        value = kind == artifact::PostOpKind::AddTensor ? value + residual[i] : value * residual[i];
        value = value < 0 ? 0 : value;
        // cuDNN is given the largest number as a bound; other ways to do it on a device are not.
        constexpr float largest = std::numeric_limits<float>::max();
        if (builder.plan.target != "cpu" && std::isinf(value) && (*results)[0][i] == largest)
          value = largest;
      }
      EXPECT_TRUE(isLike(expected, (*results)[0]));
    }
}

} // namespace

TEST(Convolution, ResidualInTheResultsMemory) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  checkResidualInPlace({}, {});
  // The call has overwritten the residual when NaN turns out to have come from the input.
  checkResidualInPlace({{3, nan}, {100, infinity}, {301, -infinity}}, {});
  checkResidualInPlace({}, {{5, nan}, {77, infinity}, {200, -infinity}});
  checkResidualInPlace(
      {{3, nan}, {100, infinity}, {301, -infinity}},
      {{9, nan}, {100, infinity}, {101, -infinity}, {102, -infinity}, {301, infinity}, {302, -infinity}});
}
