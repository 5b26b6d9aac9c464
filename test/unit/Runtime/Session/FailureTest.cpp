//===- FailureTest.cpp - Ranks that fail, hang or are misused -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/PlanBuilder.h"

#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

using namespace dovetail;
using namespace dovetail::test;
using testing::AllOf;
using testing::HasSubstr;

namespace {

/// Rank r sleeps as many seconds as element r of the input says; then all exchange.
std::shared_ptr<const runtime::Program> makeSleepers(int ranks) {
  PlanBuilder builder({ranks});
  std::vector<int64_t> cuts;
  for (int i = 0; i <= ranks; ++i)
    cuts.push_back(i);
  auto cut = split(0, cuts);
  uint32_t in = builder.value({ranks}, sharding(1, {{0, cut}})), out = builder.value({ranks}, sharding(1, {{0, cut}}));
  uint32_t all = builder.value({ranks}, sharding(1));
  builder.input("in", in);
  builder.kernel("sleepInput", {in}, {out}, {{ranks, cut}});
  builder.exchange(out, all);
  builder.output("out", all);
  return builder.program();
}

} // namespace

TEST(Failure, ARankThatHangsIsNamed) {
  auto program = makeSleepers(4);
  runtime::RunnerOptions options;
  options.timeout = std::chrono::milliseconds(300);
  auto runner = runtime::ProgramRunner::create(program, options);
  ASSERT_TRUE(runner.ok()) << runner.status();
  std::vector<float> in = {0, 0, 4, 0}, out(4);
  std::vector<runtime::FullTensor> inputs = {{in.data(), runtime::ElementType::F32, {4}, {}}},
                                   outputs = {{out.data(), runtime::ElementType::F32, {4}, {}}};
  auto begin = std::chrono::steady_clock::now();
  absl::Status status = (*runner)->run(inputs, outputs);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("rank 2"), HasSubstr("sleepInput")));
  // Nothing more can be done with it, and it says so at once.
  EXPECT_EQ((*runner)->run(inputs, outputs).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Failure, ASlowRankIsWaitedFor) {
  auto program = makeSleepers(3);
  runtime::RunnerOptions options;
  options.timeout = std::chrono::milliseconds(1500);
  auto results = runFloats(program, {{0, 0.5f, 0.25f}}, options);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0], (std::vector<float>{0, 0.5f, 0.25f}));
}

TEST(Failure, AProgramOfOneRankThatHangsEnds) {
  auto program = makeSleepers(1);
  runtime::RunnerOptions options;
  options.timeout = std::chrono::milliseconds(200);
  EXPECT_EQ(runFloats(program, {{3}}, options).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(Failure, ARankThatCannotStartEndsTheOthers) {
  // Rank 1 alone has a window without elements to pool.
  PlanBuilder builder({3});
  Shape shape = {1, 1, 9, 4};
  uint32_t in = builder.value(shape, sharding(4));
  uint32_t out = builder.value({1, 1, 3, 4}, sharding(4, {{2, split(0, {0, 1, 2, 3})}}));
  uint32_t all = builder.value({1, 1, 3, 4}, sharding(4));
  builder.input("in", in);
  PoolStep call;
  call.input = in;
  call.output = out;
  call.kernel = {2, 1};
  call.strides = {9, 1};
  call.dilations = {1, 1};
  call.pads = {0, 0};
  builder.library(std::move(call));
  builder.exchange(out, all);
  builder.output("out", all);
  absl::Status status = runtime::ProgramRunner::create(builder.program()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("rank"), HasSubstr("pool 'library0'")));
}

TEST(Failure, AStepThatNeedsMoreThanTheRankHolds) {
  PlanBuilder builder({2});
  Shape shape = {1, 1, 8, 4};
  auto cut = split(0, {0, 4, 8});
  uint32_t in = builder.value(shape, sharding(4, {{2, cut}}), {}, "narrow");
  uint32_t weights = builder.constantValue({1, 1, 3, 1}, sharding(4), {1, 2, 3});
  uint32_t out = builder.value(shape, sharding(4, {{2, cut}}));
  builder.input("in", in);
  ConvolutionStep call;
  call.input = in;
  call.weights = weights;
  call.output = out;
  call.strides = call.dilations = {1, 1};
  call.pads = {1, 0};
  builder.library(std::move(call));
  builder.output("out", out);
  absl::Status status = runtime::ProgramRunner::create(builder.program()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("narrow"));
}

TEST(Failure, LibraryCallsThatNoLibraryHas) {
  auto expect = [](PlanBuilder &builder, uint32_t in, uint32_t out, const char *message) {
    builder.input("in", in);
    builder.output("out", out);
    absl::StatusOr<std::shared_ptr<const runtime::Program>> program = runtime::Program::load(builder.artifact());
    absl::Status status = program.ok() ? runtime::ProgramRunner::create(*program).status() : program.status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  {
    PlanBuilder builder({1});
    PoolStep call;
    call.input = builder.value({1, 1, 2, 2, 2, 2}, sharding(6));
    call.output = builder.value({1, 1, 2, 2, 2, 2}, sharding(6));
    call.kernel = call.strides = call.dilations = {1, 1, 1, 1};
    call.pads = {0, 0, 0, 0};
    uint32_t in = call.input, out = call.output;
    builder.library(std::move(call));
    expect(builder, in, out, "windows in 4 dimensions");
  }
  {
    PlanBuilder builder({1});
    MatMulStep call;
    call.a = builder.value({2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 4}, sharding(13));
    call.b = builder.constantValue({4, 2}, sharding(2), {1, 2, 3, 4, 5, 6, 7, 8});
    call.output = builder.value({2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 2}, sharding(13));
    uint32_t in = call.a, out = call.output;
    builder.library(std::move(call));
    expect(builder, in, out, "a product of more than 12 dimensions");
  }
  {
    // Of each window one corner is in the input, and 2^21 positions are in each dimension of what it spans.
    PlanBuilder builder({1});
    ConvolutionStep call;
    call.input = builder.value({1, 1, 1, 1, 1}, sharding(5));
    call.weights = builder.constantValue({1, 1, 2, 2, 2}, sharding(5), {1, 2, 3, 4, 5, 6, 7, 8});
    call.output = builder.value({1, 1, 2, 2, 2}, sharding(5));
    call.strides = Shape(3, int64_t(1) << 20);
    call.dilations = Shape(3, (int64_t(1) << 20) - 1);
    call.pads = {0, 0, 0};
    uint32_t in = call.input, out = call.output;
    builder.library(std::move(call));
    expect(builder, in, out, "takes a box of");
  }
}

TEST(Failure, LibraryCallsWithWrongLoops) {
  auto load = [](auto change) {
    PlanBuilder builder({2});
    auto cut = split(0, {0, 3, 8});
    MatMulStep call;
    call.a = builder.value({4, 8}, sharding(2, {{1, cut}}));
    call.b = builder.value({8, 5}, sharding(2, {{0, cut}}));
    call.output = builder.value({4, 5}, sharding(2, {}, {0}, layout::ReductionKind::Sum));
    builder.input("a", call.a);
    builder.input("b", call.b);
    uint32_t partial = call.output, total = builder.value({4, 5}, sharding(2));
    builder.library(std::move(call), /*inPrologue=*/false, cut);
    builder.exchange(partial, total);
    builder.output("out", total);
    change(builder, builder.plan.steps[0]->action.AsLibraryStep()->call.AsMatMul()->loops);
    return runtime::Program::load(builder.artifact()).status();
  };
  using Loops = std::vector<std::unique_ptr<artifact::LoopT>>;
  auto expect = [&](auto change, const char *message) {
    absl::Status status = load(change);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  EXPECT_TRUE(load([](PlanBuilder &, Loops &) {}).ok());
  expect([](PlanBuilder &, Loops &loops) { loops.pop_back(); }, "reads at an index of loop 2 of 2");
  expect([](PlanBuilder &, Loops &loops) { loops[1]->extent = 6; },
         "has loops of [4, 6, 8], which do not go through its result, [4, 5]");
  expect([](PlanBuilder &, Loops &loops) { loops[2]->extent = 7, loops[2]->dim->pieces[1] = {3, 7}; },
         "reads a tensor of [4, 8] as one of other extents");
  expect([](PlanBuilder &, Loops &loops) { loops[2]->dim->pieces[1] = {2, 8}; },
         "does not count each term of its sum once");
  expect([](PlanBuilder &, Loops &loops) { loops[2]->dim->pieces[1] = {3, 9}; }, "reaches outside of");
  expect(
      [](PlanBuilder &, Loops &loops) {
        loops[0]->dim->axes = {0};
        loops[0]->dim->pieces = {{0, 2}, {2, 4}};
      },
      "is used twice");
  expect([](PlanBuilder &builder, Loops &) { builder.plan.tensors[2]->partial_kind = artifact::Reduction::Max; },
         "is not a partial sum");
  // The result has room for the rank's own part only.
  expect(
      [](PlanBuilder &builder, Loops &loops) {
        std::swap(loops[1]->dim, loops[2]->dim);
        loops[1]->dim->pieces = {{0, 3}, {2, 5}};
        for (auto *dims : {&builder.plan.tensors[2]->dims, &builder.plan.buffers[2]->dims}) {
          (*dims)[1]->axes = {0};
          (*dims)[1]->pieces = {{0, 3}, {3, 5}};
        }
        builder.plan.tensors[2]->partial_axes.clear();
        builder.plan.tensors[2]->partial_kind = artifact::Reduction::None;
      },
      "computes elements that are outside of its result on rank 1");
}

TEST(Failure, LibraryCallsWithWrongAccesses) {
  auto load = [](auto change) {
    PlanBuilder builder({2});
    ConvolutionStep call;
    call.input = builder.value({1, 4, 8, 6}, sharding(4));
    call.weights = builder.constantValue({6, 2, 3, 1}, sharding(4), std::vector<float>(36));
    call.output = builder.value({1, 6, 4, 6}, sharding(4));
    call.strides = {2, 1};
    call.dilations = {1, 1};
    call.pads = {1, 0};
    call.groups = 2;
    builder.input("in", call.input);
    builder.output("out", call.output);
    builder.library(std::move(call));
    change(*builder.plan.steps[0]->action.AsLibraryStep()->call.AsConvolution());
    return runtime::Program::load(builder.artifact()).status();
  };
  using Call = artifact::ConvolutionT;
  auto expect = [&](auto change, const char *message) {
    absl::Status status = load(change);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("step 0 'library0'"), HasSubstr(message)));
  };
  auto rows = [](Call &call) -> artifact::IndexExprT & { return *call.input_access->dims[2]->index; };
  EXPECT_TRUE(load([](Call &) {}).ok());
  // Another window is right as well: nothing says what its input has to be, but for what ranks hold.
  EXPECT_TRUE(load([&](Call &call) { rows(call).constant = -2; }).ok());
  const char *none = "reads its operands as no convolution does";
  expect([](Call &call) { call.input_access->dims.pop_back(); }, none);
  expect([](Call &call) { std::swap(call.input_access, call.weights_access); }, none);
  expect([](Call &call) { std::swap(call.weights_access->dims[0], call.weights_access->dims[1]); }, none);
  expect([](Call &call) { call.input_access->dims[2]->divisor = 2; }, none);
  expect([&](Call &call) { rows(call).terms[0]->loop = 3; }, none);
  expect([&](Call &call) { rows(call).terms.pop_back(); }, none);
  expect([&](Call &call) { rows(call).terms[0]->factor = -2; }, none);
  expect([&](Call &call) { rows(call).terms[0]->factor = 0; }, none);
  expect([](Call &call) { call.loops.back()->extent = 0; }, none);
  expect([](Call &call) { call.algorithm = artifact::ConvolutionAlgorithm::Winograd; },
         "is by algorithm 'winograd', but no convolution of 3 x 3 with stride 1 and one group");
  expect([](Call &call) { call.algorithm = static_cast<artifact::ConvolutionAlgorithm>(200); },
         "has algorithm number 200, which does not exist");
  // Groups that are three channels apart, and three groups where the input has channels for two.
  expect([](Call &call) { call.input_access->dims[1]->index->terms.back()->factor = 3; }, none);
  expect([](Call &call) { call.input_access->dims[1]->index->terms.back()->divisor = 2; },
         "reads a tensor of [1, 4, 8, 6] as one of other extents");
  expect([](Call &call) { call.loops[4]->extent = 1; }, none);
  expect([&](Call &call) { rows(call).terms[1]->loop = 7; }, "reads at an index of loop 7 of 7");
  expect([&](Call &call) { rows(call).constant = std::numeric_limits<int64_t>::min(); }, "an impossible index");
  expect([&](Call &call) { rows(call).terms[0]->factor = int64_t(1) << 41; }, "an impossible factor");
  expect([&](Call &call) { rows(call).terms[0]->factor = (int64_t(1) << 20) + 1; }, "windows of an impossible stride");
  expect([&](Call &call) { rows(call).constant = -((int64_t(1) << 20) + 1); }, "windows of an impossible stride");
  expect([](Call &call) { call.input_access->dims[2]->divisor = 0; }, "an impossible divisor 0");
  expect([](Call &call) { call.input_access->dims[1]->index->terms.back()->divisor = -3; }, "or divisor -3");
  expect([&](Call &call) { rows(call).terms[0]->kind = static_cast<artifact::IndexTermKind>(7); }, "an unknown term");
  expect([&](Call &call) { rows(call).terms[0]->kind = artifact::IndexTermKind::Remainder; }, "an unknown term");
  expect(
      [&](Call &call) {
        for (int i = 0; i < 1001; ++i)
          rows(call).terms.push_back(std::make_unique<artifact::IndexTermT>());
      },
      "more than 1000 terms");
  expect([](Call &call) { call.loops[5]->extent = 2; }, "reads a tensor of [6, 2, 3, 1] as one of other extents");
  expect([](Call &call) { call.loops.push_back(std::make_unique<artifact::LoopT>(*call.loops.back())); }, none);
  expect(
      [](Call &call) {
        call.loops[5]->dim->axes = {0};
        call.loops[5]->dim->pieces = {{0, 1}, {1, 3}};
      },
      "splits loop 5, which is a tap");
}

TEST(Failure, WrongTensorsAreNamed) {
  auto program = makeSleepers(2);
  auto runner = runtime::ProgramRunner::create(program);
  ASSERT_TRUE(runner.ok());
  std::vector<float> data(8);
  using runtime::ElementType;
  runtime::FullTensor good{data.data(), ElementType::F32, {2}, {}};
  auto expect = [&](std::vector<runtime::FullTensor> in, std::vector<runtime::FullTensor> out, const char *words) {
    absl::Status status = (*runner)->run(in, out);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  expect({}, {good}, "1 inputs");
  expect({{data.data(), ElementType::F64, {2}, {}}}, {good}, "'in' has element type float32");
  expect({{data.data(), ElementType::F32, {2, 1}, {}}}, {good}, "'in' has shape [2]");
  expect({good}, {{data.data(), ElementType::F32, {3}, {}}}, "'out' has shape [2]");
  expect({{nullptr, ElementType::F32, {2}, {}}}, {good}, "without data");
  EXPECT_TRUE((*runner)->run({good}, {good}).ok());
  runtime::RunnerOptions none;
  none.threads = 0;
  EXPECT_EQ(runtime::ProgramRunner::create(program, none).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Failure, WaitingCostsNoProcessorTime) {
  auto program = makeSleepers(4);
  auto runner = runtime::ProgramRunner::create(program);
  ASSERT_TRUE(runner.ok());
  std::vector<float> in = {0, 0, 0, 1}, out(4);
  std::clock_t before = std::clock();
  ASSERT_TRUE(
      (*runner)
          ->run({{in.data(), runtime::ElementType::F32, {4}, {}}}, {{out.data(), runtime::ElementType::F32, {4}, {}}})
          .ok());
  // Three ranks wait for a second.
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.2);
}
