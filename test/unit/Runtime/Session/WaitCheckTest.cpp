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
using testing::HasSubstr;

namespace {

using Positions = std::vector<uint32_t>;

/// A plan whose waits are those of the test. Two ranks gather `parts` in step 0; what comes then is the test's.
struct Gather : PlanBuilder {
  Gather() : PlanBuilder({2}) {
    placesWaits = false;
    input("in", parts);
    exchange(parts, all);
  }

  void wait(Positions complete, Positions read) {
    artifact::WaitStepT call;
    call.complete = std::move(complete);
    call.read = std::move(read);
    auto step = std::make_unique<artifact::StepT>();
    step->name = "wait";
    step->action.Set(std::move(call));
    plan.steps.push_back(std::move(step));
  }
  void increment(uint32_t from, uint32_t to, layout::DimSharding split = {}) {
    kernel("increment", {from}, {to}, {{6, std::move(split)}});
  }

  layout::DimSharding halves = split(0, {0, 2, 6});
  uint32_t parts = value({6}, sharding(1, {{0, halves}})), all = value({6}, sharding(1)),
           more = value({6}, sharding(1));
};

/// What starting a session says.
absl::Status start(const Gather &builder) { return runtime::ProgramRunner::create(builder.program()).status(); }

void expectRefused(const Gather &builder, const char *what) {
  absl::Status status = start(builder);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("rank "), HasSubstr(what)));
}

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
  expectRefused(builder,
                "kernel 'increment' does not wait for exchange 'exchange0' in step 0, and reads what it brings");
}

TEST(WaitCheck, WhatIsWrittenOverMustBeReadByOthers) {
  Gather builder;
  builder.wait({0}, {});
  builder.increment(builder.parts, builder.parts, builder.halves);
  builder.wait({}, {0});
  builder.output("out", builder.all);
  expectRefused(builder,
                "kernel 'increment' does not wait for exchange 'exchange0' in step 0, and writes to what other "
                "ranks read");
}

TEST(WaitCheck, WhatIsUnderWayMustNotBeWritten) {
  Gather builder;
  uint32_t other = builder.value({6}, sharding(1));
  builder.input("other", other);
  builder.increment(other, builder.all);
  builder.wait({0}, {0});
  builder.output("out", builder.all);
  expectRefused(builder,
                "kernel 'increment' does not wait for exchange 'exchange0' in step 0, and writes to its memory");
}

TEST(WaitCheck, MemoryIsNotPassedOnBefore) {
  // `parts` is not needed behind the exchange, so `more` lies where it was.
  Gather builder;
  builder.wait({0}, {});
  builder.increment(builder.all, builder.more);
  builder.wait({}, {0});
  builder.output("out", builder.more);
  expectRefused(builder, "and writes to what other ranks read");
}

TEST(WaitCheck, NothingIsUnderWayAtTheEnd) {
  for (bool completes : {false, true}) {
    Gather builder;
    if (completes)
      builder.wait({0}, {});
    builder.output("out", builder.all);
    expectRefused(builder, "the end of its steps does not wait for exchange 'exchange0' in step 0");
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
                                                         ", which is no exchange before it"));
  }
}
