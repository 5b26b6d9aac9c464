//===- PlanDecoderTest.cpp - Plans as they are read from artifacts --------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests that programs have what their plans say: names, blocks of launches, and dimensions that counts bound.
//
//===----------------------------------------------------------------------===//

#include "ArtifactPrograms.h"

#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/runtime/ExitCode.h"

#include <array>
#include <string>
#include <utility>

using namespace dovetail;
using namespace dovetail::test;
using runtime::Program;
using testing::HasSubstr;

TEST(Artifact, BlocksOfALaunch) {
  runtime::BlockShape shape;
  shape.tiles = {{0, 1}, {2, 4}};
  shape.tilesPerBlock = 3;
  // 5 times ceil(9 / 4) tiles.
  EXPECT_EQ(shape.blockCount({{2, 7}, {0, 100}, {1, 10}}, 1000), 5);
  EXPECT_EQ(shape.blockCount({{2, 7}, {0, 100}, {1, 10}}, 4), 4);
  EXPECT_EQ(shape.blockCount({{2, 2}, {0, 100}, {1, 10}}, 4), 1);
  int64_t large = int64_t(1) << 40;
  EXPECT_EQ(shape.blockCount({{0, large}, {}, {0, large}}, 1 << 20), 1 << 20);
  shape.tilesPerBlock = large;
  EXPECT_EQ(shape.blockCount({{0, large}, {}, {0, 8}}, 1 << 30), 2);
}

TEST(Artifact, BoundedDimensionsAreDecoded) {
  Bytes bytes = boundedProgram().artifact();
  auto sections = runtime::parseArtifact(bytes);
  ASSERT_TRUE(sections.ok()) << sections.status();
  auto plan = runtime::decodePlan(sections->plan, sections->weights.getBytes().size());
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->counts.size(), 2u);
  EXPECT_EQ(plan->counts[0].name, "boxes");
  EXPECT_EQ(plan->counts[1].bound, 8);
  EXPECT_TRUE(plan->counts[0].isGiven);
  EXPECT_FALSE(plan->counts[1].isGiven);
  EXPECT_EQ(plan->tensors[0].counts, (std::vector<int32_t>{-1, -1, 0, -1}));
  EXPECT_TRUE(plan->tensors[1].counts.empty());
  const auto &kernel = std::get<runtime::KernelCall>(plan->steps[3].action);
  EXPECT_EQ(kernel.loops[0].count, 1);
  EXPECT_EQ(kernel.loops[1].count, -1);
}

TEST(Artifact, EndsOfLoopsAreDecoded) {
  PlanBuilder builder = boundedProgram();
  auto &loop = *builder.plan.steps[3]->action.AsKernelStep()->loops[0];
  loop.count = -1;
  loop.end = std::make_unique<artifact::LoopEndT>();
  loop.end->factors = {2};
  loop.end->added = 1;
  loop.end->divisor = 3;
  loop.end->least = 2;
  loop.end->step = 4;
  loop.end->beyond = 1;
  auto sections = runtime::parseArtifact(builder.artifact());
  ASSERT_TRUE(sections.ok()) << sections.status();
  auto plan = runtime::decodePlan(sections->plan, sections->weights.getBytes().size());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto &kernel = std::get<runtime::KernelCall>(plan->steps[3].action);
  ASSERT_TRUE(kernel.loops[0].end.has_value());
  EXPECT_FALSE(kernel.loops[1].end.has_value());
  // (2 n + 1) / 3, at least 2, up to a multiple of 4, and 1 more.
  for (auto [count, end] : {std::pair<int64_t, int64_t>(0, 5), {3, 5}, {6, 5}, {7, 9}, {8, 9}})
    EXPECT_EQ(kernel.loops[0].end->evaluate(std::array<int64_t, 2>{count, 99}.data()), end) << count;
}

/// The compiler writes no such names, but others may.
TEST(Artifact, SourceNamesAreClean) {
  PlanBuilder builder = boundedProgram();
  builder.plan.steps[0]->source = "a\x1b[2J\xff (net.py:8)";
  builder.plan.steps[1]->source = std::string(100000, 'a') + ".conv (net.py:8)";
  Bytes bytes = builder.artifact();
  auto sections = runtime::parseArtifact(bytes);
  ASSERT_TRUE(sections.ok()) << sections.status();
  auto plan = runtime::decodePlan(sections->plan, sections->weights.getBytes().size());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->steps[0].title(), "a\\x1b[2J\\xff (net.py:8)");
  EXPECT_EQ(plan->steps[1].title().size(), 120u);
  EXPECT_TRUE(plan->steps[1].title().ends_with(".conv (net.py:8)"));
  // A step without one has the name of its node.
  EXPECT_EQ(plan->steps[2].title(), builder.plan.steps[2]->name);
}

TEST(Artifact, OutputsHaveTheExtentsThatCountsSay) {
  PlanBuilder builder = makeProgram();
  addCount(builder, "rows", 8);
  builder.plan.tensors[builder.plan.outputs[1]->tensor]->counts = {0, -1};
  auto program = Program::load(builder.artifact());
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ((*program)->getPlan().outputs.size(), 2u);
  auto runner = runtime::ProgramRunner::create(*program);
  ASSERT_TRUE(runner.ok()) << runner.status();
  std::vector<float> image(192), matrix(48, 1), pooled(192), placed(48);
  int64_t rows = 5;
  std::vector<runtime::FullTensor> inputs = {{image.data(), runtime::ElementType::F32, {1, 4, 8, 6}},
                                             {matrix.data(), runtime::ElementType::F32, {8, 6}},
                                             {&rows, runtime::ElementType::I64, {}}};
  std::vector<runtime::FullTensor> outputs = {{pooled.data(), runtime::ElementType::F32, {1, 4, 8, 6}},
                                              {placed.data(), runtime::ElementType::F32, {8, 6}}};
  EXPECT_EQ((*runner)->getOutputShape(1), (Shape{8, 6}));
  for (rows = 5; rows >= 0; rows -= 5) {
    ASSERT_TRUE((*runner)->run(inputs, outputs).ok());
    EXPECT_EQ((*runner)->getOutputShape(0), (Shape{1, 4, 8, 6}));
    EXPECT_EQ((*runner)->getOutputShape(1), (Shape{rows, 6}));
  }
  rows = 9;
  absl::Status status = (*runner)->run(inputs, outputs);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("count 'rows' is 9, but at most 8"));
}

TEST(Artifact, ProgramsWithBoundedLoopsAreRefused) {
  for (bool executable : {true, false}) {
    absl::Status status = Program::load(boundedProgram().artifact(), {executable}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(runtime::exitCodeOf(status), 7);
    EXPECT_THAT(std::string(status.message()), HasSubstr("runtime does not support: 'lines' (at most 8);"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("newer compiler"));
  }
}

// Compilers of earlier commits wrote them with `--channel-blocks`.
TEST(Artifact, ValuesInBlocksOfChannelsAreRefused) {
  for (bool executable : {true, false}) {
    PlanBuilder builder = makeProgram();
    builder.plan.buffers[3]->format->block_dim = 1;
    builder.plan.buffers[3]->format->block = 16;
    absl::Status status = Program::load(builder.artifact(), {executable}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(runtime::exitCodeOf(status), 7);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("buffer 3 is in blocks of channels (--channel-blocks), which Dovetail"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("compile the model again with this version"));
  }
}
