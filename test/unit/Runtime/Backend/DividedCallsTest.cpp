//===- DividedCallsTest.cpp - Calls that threads divide -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/Reference.h"

using namespace dovetail;
using namespace dovetail::test;

// Parts of a call may see rows and columns in different orders, and then weights that are packed for one are not those
// of the other: the second part reads one row of the input only, which lies in memory as it would in the order of the
// result, and the first reads two, which do not.
TEST(DividedCalls, PartsInDifferentOrdersPackForThemselves) {
  ConvolutionCase test;
  test.in = test.out = 16;
  test.extents = {3, 5};
  test.results = {2, 5};
  test.kernel = {3, 3};
  test.strides = {3, 1};
  test.dilations = test.pads = {1, 1};
  std::mt19937_64 random(17);
  std::vector<float> input = randomFloats(random, volume(test.inputShape())),
                     weights = randomFloats(random, volume(test.weightsShape()));
  PlanBuilder builder({1});
  ConvolutionStep call;
  call.input = builder.value(test.inputShape(), sharding(4), {0, 2, 3, 1});
  call.weights = builder.constantValue(test.weightsShape(), sharding(4), weights);
  call.output = builder.value(test.outputShape(), sharding(4), {0, 3, 2, 1});
  call.strides = test.strides;
  call.dilations = test.dilations;
  call.pads = test.pads;
  builder.input("input", call.input);
  builder.output("out", call.output);
  builder.library(std::move(call));
  builder.divide(/*loop=*/2);
  auto results = runFloats(builder.program(), {input}, {.threads = 2});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_TRUE(near(convolve(test, input, weights), (*results)[0]));
}
