//===- EndingCallsTest.cpp - Calls that do as much as a run needs ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A run with all of the input comes first. A shorter run leaves elements that it does not compute as they were, bit by
// bit. So these tests count elements that are computed, and none of them measures time.
//
//===----------------------------------------------------------------------===//

#include "../Harness/Reference.h"

#include "dovetail/Layout/Arith.h"

using namespace dovetail;
using namespace dovetail::test;

namespace {

/// Where a loop ends: at `factor` times a count.
struct EndOf {
  size_t loop, count;
  int64_t factor, step;
};

class EndingProgram {
public:
  EndingProgram() : builder({1}) {}

  /// Bounds dimension `dim` of an input.
  void bound(uint32_t tensor, size_t dim, int64_t extent) {
    auto &count = builder.plan.counts.emplace_back(std::make_unique<artifact::CountT>());
    count->name = "n" + std::to_string(dim);
    count->bound = extent;
    count->tensor = builder.value({}, sharding(0), {}, count->name, artifact::ElementType::I64);
    count->given = true;
    auto &counts = builder.plan.tensors[tensor]->counts;
    counts.resize(builder.plan.buffers[builder.plan.tensors[tensor]->buffer]->shape.size(), -1);
    counts[dim] = static_cast<int32_t>(builder.plan.counts.size()) - 1;
  }

  void end(std::vector<std::unique_ptr<artifact::LoopT>> &loops, const std::vector<EndOf> &ends) {
    for (const EndOf &end : ends) {
      auto &own = loops[end.loop]->end = std::make_unique<artifact::LoopEndT>();
      own->factors.resize(end.count + 1);
      own->factors[end.count] = end.factor;
      own->step = end.step;
    }
  }

  /// Runs with all of `before`, and then with `after` up to `shape`. Returns the output's memory after each run. Makes
  /// `after` the input's memory after the second run.
  std::pair<std::vector<float>, std::vector<float>> run(const std::vector<float> &before, std::vector<float> &after,
                                                        const Shape &shape, int threads) {
    std::pair<std::vector<float>, std::vector<float>> results;
    auto program = builder.program();
    runtime::RunnerOptions options;
    options.threads = threads;
    options.trace = true;
    if (!program)
      return results;
    auto runner = runtime::ProgramRunner::create(program, options);
    EXPECT_TRUE(runner.ok()) << runner.status();
    if (!runner.ok())
      return results;
    const Shape &whole = program->getPlan().inputs[0].shape, &out = program->getPlan().outputs[0].shape;
    std::vector<float> part, all = before;
    forEachIndex(shape, [&](const Shape &index) {
      part.push_back(after[linear(whole, index)]);
      all[linear(whole, index)] = part.back();
    });
    for (auto [input, extents, result] :
         {std::tuple(before, whole, &results.first), std::tuple(part, shape, &results.second)}) {
      result->resize(volume(out));
      runtime::FullTensor in{const_cast<float *>(input.data()), runtime::ElementType::F32, extents};
      runtime::FullTensor written{result->data(), runtime::ElementType::F32, out};
      absl::Status status = (*runner)->run({in}, {written});
      EXPECT_TRUE(status.ok()) << status;
    }
    share = (*runner)->times(0).back().share;
    after = std::move(all);
    return results;
  }

  PlanBuilder builder;
  double share = 1; ///< Of the last step's iterations, in the second run.
};

/// Checks results of a run whose loops over dimensions of `shape` end at `ends`: they are `expected` up to there, and
/// as `before` behind it.
void expectEnds(const Shape &shape, const Shape &ends, const std::vector<double> &expected,
                const std::vector<float> &before, const std::vector<float> &actual) {
  std::vector<double> wanted = expected;
  int64_t kept = 0;
  forEachIndex(shape, [&](const Shape &index) {
    bool isDone = true;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      isDone &= index[dim] < ends[dim];
    int64_t place = linear(shape, index);
    if (isDone)
      return;
    wanted[place] = before[place];
    ++kept;
    EXPECT_EQ(before[place], actual[place]) << "at element " << place;
  });
  EXPECT_TRUE(near(wanted, actual));
  int64_t done = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    done *= std::min(shape[dim], ends[dim]);
  EXPECT_EQ(kept, volume(shape) - done);
}

/// The extents of `test` in a run, and what is to be computed of the result.
void checkConvolution(const ConvolutionCase &test, artifact::ConvolutionAlgorithm algorithm, const Shape &sizes,
                      int threads) {
  SCOPED_TRACE(test.str() + ", " + testing::PrintToString(sizes) + ", threads " + std::to_string(threads));
  std::mt19937_64 random(5);
  std::vector<float> before = randomFloats(random, volume(test.inputShape())),
                     after = randomFloats(random, volume(test.inputShape())),
                     weights = randomFloats(random, volume(test.weightsShape()));
  EndingProgram program;
  PlanBuilder &builder = program.builder;
  ConvolutionStep call;
  call.input = builder.value(test.inputShape(), sharding(4), {0, 2, 3, 1});
  call.weights = builder.constantValue(test.weightsShape(), sharding(4), weights);
  call.output = builder.value(test.outputShape(), sharding(4), {0, 2, 3, 1});
  call.strides = test.strides;
  call.dilations = test.dilations;
  call.pads = test.pads;
  call.groups = test.groups;
  call.transposed = test.transposed;
  call.algorithm = algorithm;
  builder.input("input", call.input);
  builder.output("out", call.output);
  for (size_t dim : {2, 3})
    program.bound(call.input, dim, test.inputShape()[dim]);
  builder.library(std::move(call));
  builder.divide(/*loop=*/2, test.transposed ? 2 : 1);
  auto &loops = builder.plan.steps.back()->action.AsLibraryStep()->call.AsConvolution()->loops;
  int64_t factor = test.transposed ? 2 : 1;
  const int64_t steps[] = {4, 8};
  program.end(loops, {{2, 0, factor, steps[0]}, {3, 1, factor, steps[1]}});
  Shape shape = {test.batch, test.in, sizes[0], sizes[1]};
  auto [first, second] = program.run(before, after, shape, threads);
  Shape ends = test.outputShape();
  for (int dim : {0, 1})
    ends[2 + dim] = std::min(ends[2 + dim], layout::ceilDiv(factor * sizes[dim], steps[dim]) * steps[dim]);
  EXPECT_TRUE(near(convolve(test, before, weights), first));
  std::vector<double> expected = convolve(test, after, weights);
  if (sizes[0] == 0 || sizes[1] == 0)
    ends[0] = 0;
  expectEnds(test.outputShape(), ends, expected, first, second);
  EXPECT_NEAR(program.share, double(volume(ends)) / double(volume(test.outputShape())), 1e-9);
}

ConvolutionCase makeCase(int64_t in, int64_t out, int64_t kernel, int64_t stride, bool transposed = false) {
  ConvolutionCase test;
  test.in = in;
  test.out = out;
  test.extents = {22, 27};
  test.kernel = {kernel, kernel};
  test.strides = {stride, stride};
  test.dilations = {1, 1};
  test.pads = {transposed ? 0 : kernel / 2, transposed ? 0 : kernel / 2};
  test.transposed = transposed;
  for (int64_t extent : test.extents)
    test.results.push_back(transposed ? (extent - 1) * stride + kernel : (extent - 1) / stride + 1);
  return test;
}

const std::vector<Shape> sizes = {{22, 27}, {22, 3}, {3, 27}, {9, 17}, {4, 8}, {21, 24}, {1, 1}, {0, 5}};

} // namespace

TEST(EndingCalls, Convolutions) {
  for (int threads : {1, 3})
    for (const Shape &size : threads == 1 ? sizes : std::vector<Shape>{{22, 27}, {9, 17}}) {
      checkConvolution(makeCase(3, 16, 3, 1), artifact::ConvolutionAlgorithm::Library, size, threads);
      checkConvolution(makeCase(16, 32, 1, 1), artifact::ConvolutionAlgorithm::Library, size, threads);
      checkConvolution(makeCase(16, 16, 3, 1), artifact::ConvolutionAlgorithm::Winograd, size, threads);
      checkConvolution(makeCase(8, 16, 5, 1), artifact::ConvolutionAlgorithm::Gathered, size, threads);
      checkConvolution(makeCase(16, 8, 2, 2, /*transposed=*/true), artifact::ConvolutionAlgorithm::Library, size,
                       threads);
      checkConvolution(makeCase(16, 8, 2, 2, /*transposed=*/true), artifact::ConvolutionAlgorithm::Gathered, size,
                       threads);
    }
}

TEST(EndingCalls, Pools) {
  for (artifact::PoolKind kind : {artifact::PoolKind::Max, artifact::PoolKind::AverageIncludePad})
    for (const Shape &size : sizes) {
      SCOPED_TRACE(testing::PrintToString(size));
      ConvolutionCase test = makeCase(16, 16, 2, 2);
      test.pads = {0, 0};
      test.results = {11, 13};
      std::mt19937_64 random(7);
      std::vector<float> before = randomFloats(random, volume(test.inputShape())),
                         after = randomFloats(random, volume(test.inputShape()));
      EndingProgram program;
      PlanBuilder &builder = program.builder;
      PoolStep call;
      call.kind = kind;
      call.input = builder.value(test.inputShape(), sharding(4), {0, 2, 3, 1});
      call.output = builder.value(test.outputShape(), sharding(4), {0, 2, 3, 1});
      call.kernel = test.kernel;
      call.strides = test.strides;
      call.dilations = test.dilations;
      call.pads = test.pads;
      builder.input("input", call.input);
      builder.output("out", call.output);
      for (size_t dim : {2, 3})
        program.bound(call.input, dim, test.inputShape()[dim]);
      builder.library(std::move(call));
      auto &loops = builder.plan.steps.back()->action.AsLibraryStep()->call.AsPool()->loops;
      program.end(loops, {{2, 0, 1, 4}, {3, 1, 1, 4}});
      for (size_t dim : {2, 3})
        loops[dim]->end->divisor = 2;
      auto [first, second] = program.run(before, after, {1, 16, size[0], size[1]}, 1);
      Shape ends = test.outputShape();
      for (int dim : {0, 1})
        ends[2 + dim] = std::min(ends[2 + dim], layout::ceilDiv(size[dim] / 2, 4) * 4);
      expectEnds(test.outputShape(), ends, pool(test, kind, after), first, second);
    }
}

TEST(EndingCalls, Products) {
  constexpr int64_t rows = 50, terms = 24, columns = 20, step = 16;
  for (int threads : {1, 2})
    for (int64_t count : {50, 49, 33, 32, 5, 0}) {
      SCOPED_TRACE(count);
      std::mt19937_64 random(9);
      std::vector<float> before = randomFloats(random, 2 * rows * terms),
                         after = randomFloats(random, 2 * rows * terms),
                         weights = randomFloats(random, terms * columns);
      EndingProgram program;
      PlanBuilder &builder = program.builder;
      MatMulStep call;
      call.a = builder.value({2, rows, terms}, sharding(3));
      call.b = builder.constantValue({terms, columns}, sharding(2), weights);
      call.output = builder.value({2, rows, columns}, sharding(3));
      builder.input("input", call.a);
      builder.output("out", call.output);
      program.bound(call.a, 1, rows);
      builder.library(std::move(call));
      program.end(builder.plan.steps.back()->action.AsLibraryStep()->call.AsMatMul()->loops, {{1, 0, 1, step}});
      auto [first, second] = program.run(before, after, {2, count, terms}, threads);
      std::vector<double> expected;
      for (int64_t row = 0; row < 2 * rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          double sum = 0;
          for (int64_t term = 0; term < terms; ++term)
            sum += double(after[row * terms + term]) * double(weights[term * columns + column]);
          expected.push_back(sum);
        }
      expectEnds({2, rows, columns}, {2, std::min(rows, layout::ceilDiv(count, step) * step), columns}, expected, first,
                 second);
    }
}
