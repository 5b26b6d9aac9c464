//===- ConvolutionTest.cpp - Convolutions over uneven cuts -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/Reference.h"

#include "dovetail/Layout/Arith.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace dovetail;
using namespace dovetail::test;

namespace {

int64_t draw(std::mt19937_64 &random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

/// What a rank needs of a spatial dimension for the result [lo, hi): by definition, looking at every pair.
layout::Interval needOf(const ConvolutionCase &test, int dim, layout::Interval out) {
  layout::Interval need;
  for (int64_t o = out.lo; o < out.hi; ++o)
    for (int64_t k = 0; k < test.kernel[dim]; ++k) {
      int64_t position = test.transposed ? o + test.pads[dim] - k * test.dilations[dim]
                                         : o * test.strides[dim] - test.pads[dim] + k * test.dilations[dim];
      if (test.transposed && position % test.strides[dim] != 0)
        continue;
      if (test.transposed)
        position /= test.strides[dim];
      if (position >= 0 && position < test.extents[dim])
        need = need.hull({position, position + 1});
    }
  return need;
}

/// A memory order of a tensor: channels last, row-major, or a spatial dimension moved to the front.
Order randomOrder(std::mt19937_64 &random, int spatial) {
  Order order = {0};
  bool channelsLast = draw(random, 0, 2) != 0;
  if (!channelsLast)
    order.push_back(1);
  for (int i = 0; i < spatial; ++i)
    order.push_back(2 + i);
  if (channelsLast)
    order.push_back(1);
  if (draw(random, 0, 2) == 0) {
    int dim = 2 + draw(random, 0, spatial - 1);
    order.erase(std::find(order.begin(), order.end(), dim));
    order.insert(order.begin(), dim);
  }
  return order;
}

struct PostOpCase {
  std::vector<artifact::PostOpT> ops;
  std::vector<std::vector<float>> operands; ///< For each op; empty without one.
  std::vector<Shape> shapes;
};

/// Post-ops for a result of `shape`: kinds, operands of several broadcast shapes.
PostOpCase randomPostOps(std::mt19937_64 &random, const Shape &shape) {
  PostOpCase result;
  int64_t count = draw(random, 0, 3);
  for (int64_t i = 0; i < count; ++i) {
    artifact::PostOpT op;
    // Tensors more often than each of the others.
    int64_t kind = draw(random, 0, 16);
    op.kind = kind <= 12 ? static_cast<artifact::PostOpKind>(kind)
                         : (kind <= 14 ? artifact::PostOpKind::AddTensor : artifact::PostOpKind::MulTensor);
    op.alpha = op.kind == artifact::PostOpKind::Clip ? -0.5f : 0.3f;
    op.beta = 0.6f;
    Shape operand;
    if (op.kind == artifact::PostOpKind::AddTensor || op.kind == artifact::PostOpKind::MulTensor) {
      operand = shape;
      int64_t form = draw(random, 0, 4);
      for (size_t dim = 0; dim < shape.size(); ++dim)
        if ((form == 0 && dim != 1) || form == 1 || (form == 2 && draw(random, 0, 1)))
          operand[dim] = 1;
      while (form != 3 && operand.size() > 1 && operand[0] == 1 && draw(random, 0, 1))
        operand.erase(operand.begin());
    }
    result.operands.push_back(operand.empty() ? std::vector<float>() : randomFloats(random, volume(operand)));
    result.shapes.push_back(operand);
    result.ops.push_back(op);
  }
  return result;
}

/// Rounds the operands to `type`.
void roundOperands(PostOpCase &ops, artifact::ElementType type) {
  for (std::vector<float> &operand : ops.operands)
    operand = rounded(std::move(operand), type);
}

/// Adds constants for the operands to the plan and the ops to a library call.
void addPostOps(PlanBuilder &builder, const PostOpCase &ops, std::mt19937_64 &random,
                std::vector<std::unique_ptr<artifact::PostOpT>> &target) {
  for (size_t i = 0; i < ops.ops.size(); ++i) {
    auto op = std::make_unique<artifact::PostOpT>(ops.ops[i]);
    if (!ops.shapes[i].empty()) {
      int rank = ops.shapes[i].size();
      Order order;
      if (rank >= 3 && draw(random, 0, 1))
        order = randomOrder(random, rank - 2);
      op->tensor = builder.constantValue(ops.shapes[i], sharding(rank), ops.operands[i], order);
    }
    target.push_back(std::move(op));
  }
}

double largestOf(const std::vector<double> &values) {
  double largest = 0;
  for (double value : values)
    largest = std::max(largest, std::abs(value));
  return largest;
}

/// Returns the largest value on the way.
double applyPostOps(const PostOpCase &ops, const Shape &shape, std::vector<double> &values) {
  double largest = largestOf(values);
  for (size_t i = 0; i < ops.ops.size(); ++i) {
    forEachIndex(shape, [&](const Shape &index) {
      double operand = 0;
      if (!ops.shapes[i].empty()) {
        Shape at;
        size_t missing = shape.size() - ops.shapes[i].size();
        for (size_t dim = 0; dim < ops.shapes[i].size(); ++dim)
          at.push_back(ops.shapes[i][dim] == 1 ? 0 : index[missing + dim]);
        operand = ops.operands[i][linear(ops.shapes[i], at)];
      }
      double &value = values[linear(shape, index)];
      value = applyPostOp(ops.ops[i], value, operand);
    });
    largest = std::max(largest, largestOf(values));
  }
  return largest;
}

/// Runs the case with its result cut along `dim` at `cuts`, everything else as the seed says, and compares.
void check(const ConvolutionCase &test, int dim, const std::vector<int64_t> &cuts, std::mt19937_64 &random,
           artifact::ElementType type = artifact::ElementType::F32) {
  int ranks = static_cast<int>(cuts.size()) - 1, rank = test.spatial() + 2;
  Shape inputShape = test.inputShape(), weightsShape = test.weightsShape(), outputShape = test.outputShape();
  std::vector<float> input = rounded(randomFloats(random, volume(inputShape)), type),
                     weights = rounded(randomFloats(random, volume(weightsShape)), type);
  PlanBuilder builder({ranks});
  builder.floats = type;

  layout::DimSharding cut = split(0, cuts);
  // Windows that overlap: several ranks compute the same elements.
  if (draw(random, 0, 2) == 0)
    cut = withSlack(random, cut.pieces, outputShape[dim]);
  layout::Sharding outCut = sharding(rank, {{dim, cut}}), outHeld = sharding(rank, {{dim, cut}}),
                   inHeld = sharding(rank), weightsHeld = sharding(rank);
  outHeld.dims[dim] = withSlack(random, cut.pieces, outputShape[dim]);
  if (dim == 0) {
    inHeld.dims[0] = cut;
  } else if (dim == 1) {
    if (!test.transposed)
      weightsHeld.dims[0] = cut;
    else if (test.groups == 1)
      weightsHeld.dims[1] = cut;
  } else {
    std::vector<layout::Interval> needs;
    for (layout::Interval piece : cut.pieces)
      needs.push_back(needOf(test, dim - 2, piece));
    inHeld.dims[dim] = withSlack(random, needs, inputShape[dim]);
  }
  uint32_t in = builder.value(inputShape, inHeld, randomOrder(random, test.spatial()), "input");
  uint32_t kernel = builder.constantValue(weightsShape, weightsHeld, weights);
  uint32_t out =
      builder.tensor(builder.buffer(outputShape, outHeld, randomOrder(random, test.spatial())), outCut, "out");
  builder.input("input", in);
  builder.output("out", out);

  ConvolutionStep call;
  call.input = in;
  call.weights = kernel;
  call.output = out;
  call.strides = test.strides;
  call.dilations = test.dilations;
  call.pads = test.pads;
  call.groups = test.groups;
  call.transposed = test.transposed;
  // Kernels of the runtime's own do any form, on CPUs.
  if (type == artifact::ElementType::F32 && builder.plan.target == "cpu" && draw(random, 0, 1))
    call.algorithm = artifact::ConvolutionAlgorithm::Gathered;
  PostOpCase ops = randomPostOps(random, outputShape);
  roundOperands(ops, type);
  addPostOps(builder, ops, random, call.post_ops);
  builder.library(std::move(call));
  std::string description = "post-ops:";
  for (size_t i = 0; i < ops.ops.size(); ++i)
    description +=
        std::string(" ") + artifact::EnumNamePostOpKind(ops.ops[i].kind) + testing::PrintToString(ops.shapes[i]);
  SCOPED_TRACE(description);

  auto results = runFloats(builder.program(), {input}, divideCalls(random, builder));
  ASSERT_TRUE(results.ok()) << results.status();
  std::vector<double> expected = convolve(test, input, weights);
  double largest = applyPostOps(ops, outputShape, expected);
  if (type == artifact::ElementType::F32)
    EXPECT_TRUE(near(expected, (*results)[0]));
  else // Each operation may round its result; a slope of one is 1.13 at most.
    EXPECT_TRUE(near(expected, (*results)[0], 1.5 * roundingError(type) * (1 + ops.ops.size()), largest));
}

ConvolutionCase randomCase(std::mt19937_64 &random) {
  ConvolutionCase test;
  test.transposed = draw(random, 0, 2) == 0;
  int64_t spatial = draw(random, 1, 3);
  test.batch = draw(random, 1, 2);
  test.groups = std::vector<int64_t>{1, 1, 1, 2, 3, 8}[draw(random, 0, 5)];
  int64_t perIn = draw(random, 1, 5), perOut = draw(random, 1, 5);
  if (draw(random, 0, 3) == 0)
    perIn = perOut = 1;
  if (draw(random, 0, 5) == 0)
    perIn = 16, perOut = 32;
  test.in = test.groups * perIn;
  test.out = test.groups * perOut;
  // Windows side by side: each input gives a tile of results.
  bool tiles = test.transposed && draw(random, 0, 1) == 0;
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t limit = spatial == 3 ? 6 : 14;
    test.extents.push_back(draw(random, 1, limit));
    test.kernel.push_back(draw(random, 1, spatial == 3 ? 3 : 5));
    test.strides.push_back(draw(random, 1, 3));
    test.dilations.push_back(tiles ? 1 : draw(random, 1, 2));
    if (tiles)
      test.strides[i] = test.kernel[i];
    int64_t reach = (test.kernel[i] - 1) * test.dilations[i] + 1;
    // Sometimes more padding than kernel.
    int64_t padLo = draw(random, 0, draw(random, 0, 7) ? reach - 1 : reach + 3);
    int64_t padHi = draw(random, 0, draw(random, 0, 7) ? reach - 1 : reach + 3);
    if (tiles && draw(random, 0, 2))
      padLo = padHi = 0;
    test.pads.push_back(padLo);
    int64_t result = test.transposed ? (test.extents[i] - 1) * test.strides[i] + reach - padLo - padHi +
                                           draw(random, 0, test.strides[i] - 1)
                                     : layout::floorDiv(test.extents[i] + padLo + padHi - reach, test.strides[i]) + 1;
    test.results.push_back(std::max<int64_t>(1, result));
  }
  return test;
}

/// The case of a seed as one of single elements, which is a product of matrices.
ConvolutionCase randomCaseWithoutWindows(std::mt19937_64 &random) {
  ConvolutionCase test = randomCase(random);
  test.transposed = false;
  test.kernel.assign(test.spatial(), 1);
  test.pads.assign(test.spatial(), 0);
  if (draw(random, 0, 1))
    test.strides.assign(test.spatial(), 1);
  for (int i = 0; i < test.spatial(); ++i)
    test.results[i] = (test.extents[i] - 1) / test.strides[i] + 1;
  return test;
}

} // namespace

TEST(Convolution, KnownAwkwardCases) {
  struct Known {
    ConvolutionCase test;
    std::vector<int64_t> cuts; ///< Of the first spatial dimension of the result.
  };
  auto square = [](int64_t in, int64_t out, int64_t extent, int64_t kernel, int64_t stride, int64_t pad,
                   int64_t result) {
    ConvolutionCase test;
    test.in = in;
    test.out = out;
    test.extents = {extent, 9};
    test.kernel = {kernel, 1};
    test.strides = {stride, 1};
    test.dilations = {1, 1};
    test.pads = {pad, 0};
    test.results = {result, 9};
    return test;
  };
  ConvolutionCase transposed = square(4, 6, 8, 3, 2, 1, 17);
  transposed.transposed = true;
  ConvolutionCase gaps = square(2, 2, 5, 1, 3, 0, 15);
  gaps.transposed = true;
  ConvolutionCase tiles = square(4, 6, 8, 3, 3, 0, 24);
  tiles.transposed = true;
  tiles.kernel[1] = tiles.strides[1] = 2;
  tiles.results[1] = 18;
  std::vector<Known> cases = {{square(3, 5, 32, 3, 2, 1, 16), {0, 8, 16}},
                              {square(3, 5, 18, 3, 2, 1, 9), {0, 5, 9}},
                              {square(3, 5, 33, 2, 2, 0, 16), {0, 9, 16}},
                              {square(3, 5, 32, 7, 2, 3, 16), {0, 5, 9, 14, 16}},
                              {square(3, 5, 8, 1, 1, 1, 10), {0, 1, 9, 10}},
                              {square(3, 5, 4, 7, 1, 3, 4), {0, 1, 2, 3, 4}},
                              {square(3, 5, 4, 3, 1, 9, 20), {0, 2, 7, 7, 20}},
                              {transposed, {0, 1, 4, 16, 17}},
                              {gaps, {0, 1, 2, 3, 8, 14, 15}},
                              {tiles, {0, 6, 6, 15, 24}},
                              {tiles, {0, 5, 24}}};
  std::mt19937_64 random(7);
  for (const Known &known : cases)
    for (int repeat = 0; repeat < 4; ++repeat) {
      SCOPED_TRACE(known.test.str());
      check(known.test, 2, known.cuts, random);
    }
}

/// The case of a seed, with values of `type`.
static void checkSeed(int seed, artifact::ElementType type, bool hasWindows = true) {
  std::mt19937_64 random(seed);
  ConvolutionCase test = hasWindows ? randomCase(random) : randomCaseWithoutWindows(random);
  int dim = draw(random, 0, 3) ? 2 + draw(random, 0, test.spatial() - 1) : draw(random, 0, 1);
  std::vector<int64_t> cuts = randomCuts(random, test.outputShape()[dim], draw(random, 1, 4));
  SCOPED_TRACE(std::string(artifact::EnumNameElementType(type)) + ", seed " + std::to_string(seed) + " dim " +
               std::to_string(dim) + ": " + test.str());
  check(test, dim, cuts, random, type);
}

TEST(Convolution, RandomCases) {
  int cases = 600;
  if (const char *more = std::getenv("DOVETAIL_TEST_CASES"))
    cases = std::atoi(more);
  int first = 0;
  if (const char *seed = std::getenv("DOVETAIL_TEST_SEED"))
    first = std::atoi(seed);
  for (int seed = first; seed < first + cases && !testing::Test::HasFailure(); ++seed)
    checkSeed(seed, artifact::ElementType::F32);
}

TEST(Convolution, RandomCasesWithoutWindows) {
  int cases = 200;
  if (const char *more = std::getenv("DOVETAIL_TEST_CASES"))
    cases = std::atoi(more);
  std::vector<artifact::ElementType> types = halfTypes();
  types.push_back(artifact::ElementType::F32);
  for (artifact::ElementType type : types)
    for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed)
      checkSeed(seed, type, /*hasWindows=*/false);
}

TEST(Convolution, RandomCasesOf16Bits) {
  if (halfTypes().empty())
    GTEST_SKIP() << "the libraries have no type of 16 bits here";
  int cases = 300;
  if (const char *more = std::getenv("DOVETAIL_TEST_CASES"))
    cases = std::atoi(more);
  for (artifact::ElementType type : halfTypes())
    for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed)
      checkSeed(seed, type);
}

TEST(Convolution, SplitChannelsOfTheSum) {
  for (bool transposed : {false, true}) {
    std::mt19937_64 random(11);
    ConvolutionCase test;
    test.in = 10;
    test.out = 4;
    test.extents = {6, 5};
    test.kernel = {3, 3};
    test.strides = test.dilations = {1, 1};
    test.pads = {1, 1};
    test.results = test.extents;
    test.transposed = transposed;
    std::vector<float> input = randomFloats(random, volume(test.inputShape())),
                       weights = randomFloats(random, volume(test.weightsShape()));
    auto cut = split(0, {0, 3, 3, 10}); // One rank has no channels.
    // A rank adds up its channels, and no others that it holds.
    auto more = windows(0, {{0, 4}, {2, 9}, {0, 10}});
    const std::pair<layout::DimSharding, layout::DimSharding> holdings[] = {
        {cut, cut}, {more, cut}, {cut, more}, {{}, more}};
    for (const auto &[inHeld, weightsHeld] : holdings) {
      PlanBuilder builder({3});
      uint32_t in = builder.value(test.inputShape(), sharding(4, {{1, inHeld}}), {0, 2, 3, 1});
      uint32_t kernel =
          builder.constantValue(test.weightsShape(), sharding(4, {{transposed ? 0 : 1, weightsHeld}}), weights);
      uint32_t partial =
          builder.value(test.outputShape(), sharding(4, {}, {0}, layout::ReductionKind::Sum), {0, 2, 3, 1});
      uint32_t total = builder.value(test.outputShape(), sharding(4), {0, 2, 3, 1});
      builder.input("input", in);
      ConvolutionStep call;
      call.input = in;
      call.weights = kernel;
      call.output = partial;
      call.strides = test.strides;
      call.dilations = test.dilations;
      call.pads = test.pads;
      call.transposed = transposed;
      builder.library(std::move(call), /*inPrologue=*/false, cut);
      builder.exchange(partial, total);
      builder.output("out", total);
      auto results = runFloats(builder.program(), {input});
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_TRUE(near(convolve(test, input, weights), (*results)[0]));
    }
  }
}

// Threads divide tiles, or channels where there are few; what they compute does not depend on that, nor on a division
// of the plan, which is for libraries.
TEST(Convolution, ThreadsDivideWinogradsAlgorithm) {
  // All of them in `make verify-all`.
  int cases = std::getenv("DOVETAIL_ALL") ? 60 : 24;
  for (int seed = 0; seed < cases && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    ConvolutionCase test;
    test.in = draw(random, 1, 40);
    test.out = draw(random, 1, 80);
    test.batch = draw(random, 1, 2);
    test.kernel = {3, 3};
    test.strides = test.dilations = {1, 1};
    for (int dim = 0; dim < 2; ++dim) {
      test.pads.push_back(draw(random, 0, 2));
      test.extents.push_back(draw(random, 3, 30));
      test.results.push_back(test.extents[dim] + 2 * test.pads[dim] - 2);
    }
    std::vector<float> input = randomFloats(random, volume(test.inputShape())),
                       weights = randomFloats(random, volume(test.weightsShape()));
    PlanBuilder builder({2});
    if (builder.plan.target != "cpu")
      GTEST_SKIP() << "the algorithm is for CPUs";
    builder.callBytes = 8 << 20;
    layout::Sharding cut = sharding(4, {{2, split(0, {0, draw(random, 0, test.results[0]), test.results[0]})}});
    uint32_t in = builder.value(test.inputShape(), sharding(4), randomOrder(random, 2));
    uint32_t out = builder.value(test.outputShape(), cut, randomOrder(random, 2));
    builder.input("input", in);
    builder.output("out", out);
    ConvolutionStep call;
    call.input = in;
    call.weights = builder.constantValue(test.weightsShape(), sharding(4), weights);
    call.output = out;
    call.strides = test.strides;
    call.dilations = test.dilations;
    call.pads = test.pads;
    call.algorithm = artifact::ConvolutionAlgorithm::Winograd;
    PostOpCase ops = randomPostOps(random, test.outputShape());
    addPostOps(builder, ops, random, call.post_ops);
    builder.library(std::move(call));
    std::vector<double> expected = convolve(test, input, weights);
    double largest = applyPostOps(ops, test.outputShape(), expected);

    divideCalls(random, builder);
    auto program = builder.program();
    std::vector<float> single;
    for (int threads : {2, 5, 8, 14}) {
      auto results = runFloats(program, {input}, {.threads = threads});
      ASSERT_TRUE(results.ok()) << results.status();
      if (single.empty())
        single = (*results)[0];
      EXPECT_EQ(single, (*results)[0]) << threads << " threads of two ranks";
    }
    EXPECT_TRUE(near(expected, single, 1e-5, largest));
  }
}
