//===- WaitCheckTest.cpp - Plans that do not wait for exchanges -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/PlanBuilder.h"

using namespace dovetail;
using namespace dovetail::test;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;

namespace {

/// A plan whose waits are those of the test. Two ranks gather `parts` in step 0; what comes then is the test's.
struct Gather : PlanBuilder {
  Gather() : PlanBuilder({2}) {
    placesWaits = false;
    input("in", parts);
    exchange(parts, all);
  }

  void increment(uint32_t from, uint32_t to, layout::DimSharding split = {}) {
    kernel("increment", {from}, {to}, {{6, std::move(split)}});
  }

  layout::DimSharding halves = split(0, {0, 2, 6});
  uint32_t parts = value({6}, sharding(1, {{0, halves}})), all = value({6}, sharding(1)),
           more = value({6}, sharding(1));
};

/// What starting a session says.
absl::Status start(const PlanBuilder &builder) { return runtime::ProgramRunner::create(builder.program()).status(); }

void expectRefused(const PlanBuilder &builder, const std::string &what) {
  absl::Status status = start(builder);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(ContainsRegex("^rank [01]: damaged plan: "), HasSubstr(what),
                                                   EndsWith("; compile the model again")));
}

/// Expects that the plan's kernel comes too early, as it does `what` while the exchange in `list` may be under way.
void expectTooEarly(const PlanBuilder &builder, const std::string &what, const std::string &list = "step 0") {
  expectRefused(builder, "kernel 'increment' does not wait for exchange 'exchange0' in " + list + ", and " + what);
}

/// A plan in which two ranks exchange halos in step 0, within one buffer, and then read their own part, some of it, or
/// more.
struct Halo : PlanBuilder {
  Halo() : PlanBuilder({2}) {
    placesWaits = false;
    input("in", own);
    exchange(own, wide);
  }

  /// Reads `from` while the exchange may be under way.
  Halo &read(uint32_t from, const layout::DimSharding &loop) {
    kernel("increment", {from}, {result}, {{6, loop}});
    wait({0}, {0});
    output("out", result);
    return *this;
  }

  layout::DimSharding halves = split(0, {0, 2, 6}), held = windows(0, {{0, 3}, {1, 6}});
  uint32_t memory = buffer({6}, sharding(1, {{0, held}}));
  uint32_t own = tensor(memory, sharding(1, {{0, halves}})), wide = tensor(memory, sharding(1, {{0, held}}));
  uint32_t inner = tensor(memory, sharding(1, {{0, windows(0, {{0, 1}, {3, 6}})}}));
  uint32_t beyond = tensor(memory, sharding(1, {{0, windows(0, {{0, 2}, {1, 6}})}}));
  uint32_t result = value({6}, sharding(1, {{0, halves}}));
};

} // namespace

TEST(WaitCheck, APlanThatWaits) {
  Gather builder;
  builder.wait({0}, {});
  builder.increment(builder.all, builder.more);
  builder.wait({}, {0});
  builder.output("out", builder.more);
  builder.output("parts", builder.parts);
  auto results = runFloats(builder.program(), {{1, 2, 3, 4, 5, 6}});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0], (std::vector<float>{2, 3, 4, 5, 6, 7}));
}

TEST(WaitCheck, WhatIsReadMustBeComplete) {
  Gather builder;
  builder.increment(builder.all, builder.more);
  builder.wait({0}, {0});
  builder.output("out", builder.more);
  builder.output("parts", builder.parts);
  expectTooEarly(builder, "reads elements that it receives");
}

TEST(WaitCheck, WhatIsWrittenOverMustBeReadByOthers) {
  Gather builder;
  builder.wait({0}, {});
  builder.increment(builder.parts, builder.parts, builder.halves);
  builder.wait({}, {0});
  builder.output("out", builder.all);
  expectTooEarly(builder, "overwrites elements that other ranks read");
}

TEST(WaitCheck, WhatIsUnderWayMustNotBeWritten) {
  Gather builder;
  uint32_t other = builder.value({6}, sharding(1));
  builder.input("other", other);
  builder.increment(other, builder.all);
  builder.wait({0}, {0});
  builder.output("out", builder.all);
  expectTooEarly(builder, "writes to its memory");
}

TEST(WaitCheck, MemoryIsNotPassedOnBefore) {
  // `parts` is not needed behind the exchange, so `more` lies where it was.
  Gather builder;
  builder.wait({0}, {});
  builder.increment(builder.all, builder.more);
  builder.wait({}, {0});
  builder.output("out", builder.more);
  expectTooEarly(builder, "overwrites elements that other ranks read");
}

TEST(WaitCheck, ScratchMemoryIsNotTakenBefore) {
  // A call that writes to memory of its own alone, as its output is an input, too.
  auto pool = [](Gather &builder, int64_t bytes) {
    uint32_t in = builder.value({1, 1, 6}, sharding(3)), out = builder.value({1, 1, 6}, sharding(3));
    builder.input("pooled", in);
    builder.input("old", out);
    builder.output("pool", out);
    PoolStep step;
    step.input = in;
    step.output = out;
    step.kernel = step.strides = step.dilations = {1};
    step.pads = {0};
    builder.callBytes = bytes;
    builder.library(std::move(step));
  };
  for (int64_t bytes : {0, 1 << 20}) {
    // Nobody needs `parts` behind the exchange.
    Gather source;
    source.wait({0}, {});
    pool(source, bytes);
    source.wait({}, {0});
    source.output("all", source.all);
    // Nobody needs `all`.
    Gather target;
    pool(target, bytes);
    target.wait({0}, {0});
    target.output("parts", target.parts);
    if (bytes == 0) {
      for (const Gather *builder : {&source, &target})
        EXPECT_TRUE(start(*builder).ok()) << start(*builder);
      continue;
    }
    expectRefused(source, "pool 'library2' does not wait for exchange 'exchange0' in step 0, and overwrites elements "
                          "that other ranks read");
    expectRefused(target, "pool 'library1' does not wait for exchange 'exchange0' in step 0, and writes to its memory");
  }
}

TEST(WaitCheck, NothingIsUnderWayAtTheEnd) {
  for (bool completes : {false, true}) {
    Gather builder;
    if (completes)
      builder.wait({0}, {});
    builder.output("out", builder.all);
    expectRefused(builder, "the end after the last step does not wait for exchange 'exchange0' in step 0");
  }
}

TEST(WaitCheck, NothingIsUnderWayWhereIterationsBegin) {
  for (bool completes : {false, true}) {
    Gather builder;
    uint32_t on = builder.value({}, sharding(0), {}, "on", artifact::ElementType::Bool);
    builder.input("on", on);
    if (completes)
      builder.wait({0}, {});
    auto add = [&](auto action) {
      builder.plan.steps.push_back(std::make_unique<artifact::StepT>());
      builder.plan.steps.back()->name = "again";
      builder.plan.steps.back()->action.Set(std::move(action));
    };
    artifact::RepeatStepT repeat;
    repeat.condition = on;
    add(repeat);
    add(artifact::EndStepT());
    builder.output("out", builder.all);
    expectRefused(builder, "step " + std::to_string(completes ? 2 : 1) +
                               ", where an iteration begins or ends, does not wait for exchange 'exchange0' in step 0");
  }
}

TEST(WaitCheck, WhatOthersHaveReadIsComplete) {
  Gather builder;
  builder.wait({}, {0});
  builder.wait({0}, {});
  builder.output("out", builder.all);
  expectRefused(builder,
                "step 1 does not wait for exchange 'exchange0' in step 0, but for others to have read its sources");
}

TEST(WaitCheck, WaitsAreForExchangesBefore) {
  for (uint32_t position : {1u, 2u, 3u}) {
    Gather builder;
    builder.wait({0}, {0});
    builder.wait({}, {position});
    builder.output("out", builder.all);
    absl::Status status = runtime::Program::load(builder.artifact()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("step 2 'wait' waits for step " + std::to_string(position) +
                                                         ", which is not an exchange before it"));
  }
}

TEST(WaitCheck, ExchangesAreWaitedForOnce) {
  auto refuse = [](auto &&addWaits, const std::string &what) {
    Gather builder;
    addWaits(builder);
    builder.output("out", builder.all);
    absl::Status status = runtime::Program::load(builder.artifact()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("step " + what));
  };
  refuse([](Gather &builder) { builder.wait({0, 0}, {0}); }, "1 'wait' waits for step 0 a second time");
  refuse([](Gather &builder) { builder.wait({0}, {0, 0}); }, "1 'wait' waits for step 0 a second time");
  refuse(
      [](Gather &builder) {
        builder.wait({0}, {});
        builder.wait({0}, {0});
      },
      "2 'wait' waits for step 0 a second time");
  refuse(
      [](Gather &builder) {
        builder.wait({0}, {0});
        builder.wait({}, {0});
      },
      "2 'wait' waits for step 0 a second time");
  refuse(
      [](Gather &builder) {
        builder.wait({}, {});
        builder.wait({0}, {0});
      },
      "1 'wait' waits for nothing");
}

TEST(WaitCheck, WhatIsTheRanksOwnIsReadDuringTheExchange) {
  {
    Halo builder;
    auto results = runFloats(builder.read(builder.own, builder.halves).program(), {{1, 2, 3, 4, 5, 6}});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[0], (std::vector<float>{2, 3, 4, 5, 6, 7}));
  }
  {
    Halo builder;
    absl::Status status = start(builder.read(builder.inner, windows(0, {{0, 1}, {3, 6}})));
    EXPECT_TRUE(status.ok()) << status;
  }
  {
    // Rank 1 reads one element that is not its own.
    Halo builder;
    expectTooEarly(builder.read(builder.beyond, builder.halves), "reads elements that it receives");
  }
}

TEST(WaitCheck, WhatIsNotSentIsWrittenDuringTheExchange) {
  // Of its own part rank 0 sends element 1, and rank 1 element 2.
  layout::DimSharding inner = windows(0, {{0, 1}, {3, 6}});
  auto write = [&](uint32_t Halo::*to, const layout::DimSharding &loop, std::vector<uint32_t> complete,
                   std::vector<uint32_t> read) {
    auto builder = std::make_unique<Halo>();
    uint32_t more = builder->value({6}, sharding(1, {{0, builder->halves}}));
    builder->input("more", more);
    if (!complete.empty() || !read.empty())
      builder->wait(complete, read);
    builder->kernel("increment", {more}, {(*builder).*to}, {{6, loop}});
    std::vector<uint32_t> all = {0};
    if (read.empty())
      builder->wait(complete.empty() ? all : std::vector<uint32_t>(), all);
    builder->output("more", more);
    builder->output("out", builder->own);
    builder->output("wide", builder->wide);
    return builder;
  };
  // Where a step writes, its loops say, or the part of the buffer that it has.
  for (uint32_t Halo::*to : {&Halo::own, &Halo::inner}) {
    auto results = runFloats(write(to, inner, {}, {})->program(), {{1, 2, 3, 4, 5, 6}, {10, 20, 30, 40, 50, 60}});
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)[1], (std::vector<float>{11, 2, 3, 41, 51, 61}));
  }
  // One element more, on one rank alone.
  for (const layout::DimSharding &loop : {windows(0, {{0, 2}, {3, 6}}), windows(0, {{0, 1}, {2, 6}})}) {
    expectTooEarly(*write(&Halo::own, loop, {}, {}), "writes to its memory");
    expectTooEarly(*write(&Halo::own, loop, {0}, {}), "overwrites elements that other ranks read");
    absl::Status status = start(*write(&Halo::own, loop, {0}, {0}));
    EXPECT_TRUE(status.ok()) << status;
  }
  // What comes lies outside of a rank's own part.
  expectTooEarly(*write(&Halo::wide, windows(0, {{0, 1}, {1, 2}}), {}, {}), "writes to its memory");
}

TEST(WaitCheck, ACollectiveLeavesNothingAlone) {
  PlanBuilder builder({2});
  builder.placesWaits = false;
  layout::DimSharding halves = split(0, {0, 3, 6});
  uint32_t memory = builder.buffer({6}, sharding(1)), own = builder.tensor(memory, sharding(1, {{0, halves}})),
           all = builder.tensor(memory, sharding(1)), result = builder.value({6}, sharding(1, {{0, halves}}));
  builder.input("in", own);
  builder.exchange(own, all);
  ASSERT_EQ(builder.plan.steps[0]->action.AsExchangeStep()->kind, artifact::ExchangeKind::AllGather);
  builder.kernel("increment", {own}, {result}, {{6, halves}});
  builder.wait({0}, {0});
  builder.output("out", result);
  builder.output("all", all);
  expectTooEarly(builder, "reads elements that it receives");
}

TEST(WaitCheck, OtherMovesOfAnExchangeAreNotOwn) {
  // What comes in the second move is not the rank's own, though the first is within one buffer.
  Halo builder;
  uint32_t part = builder.value({6}, sharding(1, {{0, builder.halves}})), all = builder.value({6}, sharding(1));
  builder.input("part", part);
  builder.addMove(part, all);
  // Nobody is given the memory of these.
  builder.output("part", part);
  builder.output("own", builder.own);
  expectTooEarly(builder.read(all, builder.halves), "reads elements that it receives");
}

TEST(WaitCheck, TheProloguesMemoryIsChecked) {
  PlanBuilder builder({2});
  builder.placesWaits = false;
  layout::DimSharding halves = split(0, {0, 2, 6});
  layout::Sharding cut = sharding(1, {{0, halves}});
  auto persistent = [&](const layout::Sharding &held) {
    return builder.tensor(builder.buffer({6}, held, {}, artifact::BufferKind::Persistent), held);
  };
  uint32_t one = builder.constantValue({6}, cut, {1, 2, 3, 4, 5, 6}), part = persistent(cut),
           all = persistent(sharding(1)), out = builder.value({6}, sharding(1));
  builder.kernel("increment", {one}, {part}, {{6, halves}}, -1, /*inPrologue=*/true);
  builder.exchange(part, all, /*inPrologue=*/true);
  builder.kernel("increment", {one}, {part}, {{6, halves}}, -1, /*inPrologue=*/true);
  builder.kernel("increment", {all}, {out}, {{6, {}}});
  builder.output("out", out);
  expectTooEarly(builder, "writes to its memory", "prologue step 1");
}
