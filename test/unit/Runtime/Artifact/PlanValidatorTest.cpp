//===- PlanValidatorTest.cpp - Plans that make no sense -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests that plans which make no sense are rejected, those with some other bytes among them.
//
//===----------------------------------------------------------------------===//

#include "../Harness/DevicePlan.h"
#include "ArtifactPrograms.h"
#include "DamagedPlans.h"

#include "dovetail/runtime/ArtifactFormat.h"

#include <cstring>
#include <limits>

using namespace dovetail;
using namespace dovetail::test;
using runtime::Program;
using testing::HasSubstr;

TEST(Artifact, PlansThatMakeNoSenseAreRefused) {
  auto expect = [](const char *words, auto change) {
    PlanBuilder builder = makeProgram();
    change(builder);
    absl::Status status = Program::load(builder.artifact()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  auto expectBounded = [&](const char *words, auto change) {
    expect(words, [&](PlanBuilder &b) {
      b = boundedProgram();
      change(b);
    });
  };
  auto loop = [](PlanBuilder &b) -> artifact::LoopT & { return *b.plan.steps[3]->action.AsKernelStep()->loops[0]; };
  expectBounded("count 'boxes' has an impossible bound -1", [](PlanBuilder &b) { b.plan.counts[0]->bound = -1; });
  expectBounded("count 'boxes' uses tensor 99", [](PlanBuilder &b) { b.plan.counts[0]->tensor = 99; });
  expectBounded("count 'lines' is not a scalar of I64", [](PlanBuilder &b) { b.plan.counts[1]->tensor = 0; });
  expectBounded("has counts for 1 of 4 dimensions", [](PlanBuilder &b) { b.plan.tensors[0]->counts = {0}; });
  expectBounded("dimension 2 is bounded by count 2 of 2", [](PlanBuilder &b) { b.plan.tensors[0]->counts[2] = 2; });
  expectBounded("dimension 2 is bounded by count -2 of 2", [](PlanBuilder &b) { b.plan.tensors[0]->counts[2] = -2; });
  expectBounded("dimension 1 of extent 4 is bounded by count 'lines' of bound 8",
                [](PlanBuilder &b) { b.plan.tensors[0]->counts[1] = 1; });
  expectBounded("count 'boxes' bounds inputs, but is computed",
                [](PlanBuilder &b) { b.plan.counts[0]->given = false; });
  expectBounded("count 'lines' is neither computed nor given by an input",
                [](PlanBuilder &b) { b.plan.counts[1]->given = true; });
  auto expectEnd = [&](auto change) {
    expectBounded("loop 0 has an impossible end", [&](PlanBuilder &b) {
      loop(b).end = std::make_unique<artifact::LoopEndT>();
      change(*loop(b).end);
    });
  };
  expectEnd([](artifact::LoopEndT &end) { end.divisor = 0; });
  expectEnd([](artifact::LoopEndT &end) { end.step = 0; });
  expectEnd([](artifact::LoopEndT &end) { end.least = -1; });
  expectEnd([](artifact::LoopEndT &end) { end.beyond = -1; });
  expectEnd([](artifact::LoopEndT &end) { end.factors = {-1}; });
  // The second count is computed, and there is no third one.
  expectEnd([](artifact::LoopEndT &end) { end.factors = {1, 1}; });
  expectEnd([](artifact::LoopEndT &end) { end.factors = {1, 0, 0}; });
  expectEnd([](artifact::LoopEndT &end) { end.factors = {int64_t(1) << 61}; });
  expectEnd([](artifact::LoopEndT &end) { end.added = std::numeric_limits<int64_t>::min() + 1; });
  // An input of which the length varies may be fed an output that always has as much.
  auto feedImage = [](PlanBuilder &b) {
    b.plan.inputs[0]->fed_by = 0;
    b.plan.inputs[0]->next = b.plan.inputs[0]->tensor;
  };
  expectBounded("of the inputs with length 'boxes' some are fed back, but 'matrix' is not", [&](PlanBuilder &b) {
    feedImage(b);
    b.plan.tensors[b.plan.inputs[1]->tensor]->counts = {0, -1};
  });
  expectBounded("input 'matrix' is fed by output 'placed', which has another type or shape", [&](PlanBuilder &b) {
    feedImage(b);
    b.plan.tensors[b.plan.outputs[1]->tensor]->counts = {1, -1};
    b.plan.inputs[1]->fed_by = 1;
    b.plan.inputs[1]->next = b.plan.inputs[1]->tensor;
  });
  expectBounded("loop 0 is bounded by count 7 of 2", [&](PlanBuilder &b) { loop(b).count = 7; });
  expectBounded("loop 0 of extent 8 is bounded by count 'lines' of bound 9",
                [&](PlanBuilder &b) { b.plan.counts[1]->bound = 9; });
  expect("dimension 2 is bounded by count 0 of 0", [](PlanBuilder &b) { b.plan.tensors[0]->counts = {-1, -1, 0, -1}; });
  expect("uses tensor 99", [](PlanBuilder &b) {
    auto &check =
        b.plan.steps[3]->action.AsKernelStep()->checks.emplace_back(std::make_unique<artifact::IndexCheckT>());
    check->node = "gather";
    check->extent = 1;
    check->tensor = 99;
  });
  expect("tensor 0", [](PlanBuilder &b) { b.plan.tensors[0]->buffer = 77; });
  expect("uses tensor 99", [](PlanBuilder &b) { b.plan.inputs[0]->tensor = 99; });
  expect("no kernel 'absent'", [](PlanBuilder &b) { b.kernel("absent", {}, {}, {}); });
  expect("two inputs called", [](PlanBuilder &b) { b.plan.inputs[1]->name = "image"; });
  expect("impossible extent", [](PlanBuilder &b) { b.plan.buffers[0]->shape[2] = int64_t(1) << 50; });
  expect("impossible extent", [](PlanBuilder &b) { b.plan.buffers[0]->shape[2] = -1; });
  expect("unknown precision", [](PlanBuilder &b) { b.plan.math = static_cast<artifact::MathMode>(4); });
  expect("size 0", [](PlanBuilder &b) { b.plan.mesh[0]->size = 0; });
  expect("ranks", [](PlanBuilder &b) { b.plan.mesh[0]->size = int64_t(1) << 40; });
  expect("permutation", [](PlanBuilder &b) { b.plan.buffers[0]->format->order[0] = 1; });
  expect("outside of its buffer", [](PlanBuilder &b) { b.plan.buffers[0]->dims[2]->pieces[0] = {0, 2}; });
  expect("bytes of data", [](PlanBuilder &b) { b.plan.buffers[1]->data_size += 4; });
  expect("outside of the weights", [](PlanBuilder &b) { b.plan.buffers[1]->data_offset = 1u << 30; });
  expect("misaligned", [](PlanBuilder &b) { b.plan.buffers[1]->data_offset += 1; });
  expect("before anything is written", [](PlanBuilder &b) { b.plan.steps.erase(b.plan.steps.begin() + 1); });
  expect("divides loop 5", [](PlanBuilder &b) { b.plan.steps[3]->action.AsKernelStep()->parallel_loop = 5; });
  expect("reads a tensor of [1, 4, 8, 6] as one of other extents",
         [](PlanBuilder &b) { b.plan.steps[1]->action.AsLibraryStep()->call.AsConvolution()->loops[4]->extent = 3; });
  expect("impossible divisor", [](PlanBuilder &b) {
    b.plan.steps[1]->action.AsLibraryStep()->call.AsConvolution()->input_access->dims[2]->divisor = 0;
  });
  expect("without its tensor", [](PlanBuilder &b) {
    b.plan.steps[1]->action.AsLibraryStep()->call.AsConvolution()->post_ops[0]->tensor = -1;
  });
  expect("writes over its own operand",
         [](PlanBuilder &b) { b.plan.steps[1]->action.AsLibraryStep()->call.AsConvolution()->output = 0; });
  expect("constant", [](PlanBuilder &b) { b.plan.steps[3]->action.AsKernelStep()->writes[0] = 2; });
  auto blocksOf = [](PlanBuilder &b) -> artifact::BlocksT & {
    b.plan.target = "device";
    auto &blocks = b.plan.steps[3]->action.AsKernelStep()->blocks;
    blocks = std::make_unique<artifact::BlocksT>();
    blocks->threads = 32;
    blocks->tiles.push_back(std::make_unique<artifact::TileLoopT>());
    return *blocks;
  };
  PlanBuilder device = makeProgram();
  blocksOf(device);
  EXPECT_TRUE(Program::load(device.artifact()).ok());
  expect("has blocks on target 'cpu'", [&](PlanBuilder &b) {
    blocksOf(b);
    b.plan.target = "cpu";
  });
  expect("not the name of a target", [&](PlanBuilder &b) {
    blocksOf(b);
    b.plan.target = "../device";
  });
  expect("blocks of 0 threads", [&](PlanBuilder &b) { blocksOf(b).threads = 0; });
  expect("blocks of 1025 threads", [&](PlanBuilder &b) { blocksOf(b).threads = 1025; });
  expect("blocks of 0 tiles", [&](PlanBuilder &b) { blocksOf(b).tiles_per_block = 0; });
  expect("-8 bytes of shared memory", [&](PlanBuilder &b) { blocksOf(b).shared_bytes = -8; });
  auto unbounded = [](PlanBuilder &b) { b.plan.steps[1]->action.AsLibraryStep()->memory.reset(); };
  expect("does not bound its memory", unbounded);
  expect("does not bound its memory", [&](PlanBuilder &b) {
    blocksOf(b);
    unbounded(b);
  });
  auto packed = [](PlanBuilder &b) -> std::vector<int64_t> & {
    return b.plan.steps[1]->action.AsLibraryStep()->memory->packed;
  };
  expect("has bounds of its memory for 5 ranks", [&](PlanBuilder &b) { packed(b).resize(5); });
  expect("bounds its memory by an impossible number of bytes, -8", [&](PlanBuilder &b) { packed(b)[0] = -8; });
  expect("bounds its memory by an impossible number of bytes, 1099511627777",
         [&](PlanBuilder &b) { packed(b)[0] = (int64_t(1) << 40) + 1; });
  auto divided = [](PlanBuilder &b) -> artifact::DivisionT & {
    auto &division = b.plan.steps[1]->action.AsLibraryStep()->division;
    return *(division = std::make_unique<artifact::DivisionT>());
  };
  expect("divides loop 9, which is not a dimension of its output", [&](PlanBuilder &b) { divided(b).loop = 9; });
  expect("parts of 1 iterations at multiples of 0", [&](PlanBuilder &b) { divided(b).step = 0; });
  expect("parts of 1 iterations at multiples of 2", [&](PlanBuilder &b) { divided(b).step = 2; });
  expect("bounds its memory by an impossible number of bytes, -1",
         [](PlanBuilder &b) { b.plan.steps[1]->action.AsLibraryStep()->memory->thread_packed[0] = -1; });
  expect("tiles over loop 2 of 2", [&](PlanBuilder &b) { blocksOf(b).tiles[0]->loop = 2; });
  expect("tiles over loop 0 of 2 twice",
         [&](PlanBuilder &b) { blocksOf(b).tiles.push_back(std::make_unique<artifact::TileLoopT>()); });
  expect("in steps of 0", [&](PlanBuilder &b) { blocksOf(b).tiles[0]->step = 0; });
  expect("no step writes output", [](PlanBuilder &b) { b.plan.steps.clear(); });
}

TEST(ArtifactFuzz, DamagedPlansWithGoodChecksumsNeverCrash) {
  auto [loaded, started] = damagePlans(makeProgram().artifact(), 4000);
  EXPECT_GT(loaded, 100);
  EXPECT_GT(started, 50);
}

TEST(ArtifactFuzz, DamagedBlocksNeverCrash) {
  PlanBuilder builder = deviceBuilder({2});
  auto dim = split(0, {0, 3, 8});
  uint32_t in = builder.value({8}, sharding(1, {{0, dim}})), out = builder.value({8}, sharding(1, {{0, dim}}));
  builder.input("in", in);
  builder.kernel("incrementBlocks", {in}, {out}, {{8, dim}});
  setBlocks(builder, 32, {0}, 4, 64);
  builder.output("out", out);
  Bytes good = builder.artifact();
  auto sections = runtime::parseArtifact(good);
  ASSERT_TRUE(sections.ok());
  int loaded = 0, refused = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    Bytes plan(sections->plan.begin(), sections->plan.end());
    size_t at = random() % (plan.size() / 4) * 4;
    uint32_t value = random() % 2 ? random() % 16 : random();
    std::memcpy(plan.data() + at, &value, 4);
    auto decoded = runtime::decodePlan(plan, 0);
    if (!decoded.ok()) {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << decoded.status();
      ++refused;
      continue;
    }
    ++loaded;
    for (const runtime::StepInfo &step : decoded->steps)
      if (const auto *call = std::get_if<runtime::KernelCall>(&step.action); call && call->blocks) {
        std::vector<layout::Interval> ranges;
        for (const runtime::LoopInfo &loop : call->loops)
          ranges.push_back({0, loop.extent});
        int64_t blocks = call->blocks->blockCount(ranges, 1000);
        EXPECT_TRUE(blocks >= 1 && blocks <= 1000) << blocks;
      }
  }
  EXPECT_GT(loaded, 100);
  EXPECT_GT(refused, 100);
}
