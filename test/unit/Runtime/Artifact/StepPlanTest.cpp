//===- StepPlanTest.cpp - Parts, repeats and choices in artifacts ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests that steps which do not fit each other are rejected: parts of launches, repeats and choices.
//
//===----------------------------------------------------------------------===//

#include "../Harness/DevicePlan.h"

#include <string>
#include <utility>

using namespace dovetail;
using namespace dovetail::test;
using runtime::Program;
using testing::HasSubstr;

TEST(Artifact, PartsOfLaunchesThatDoNotFitAreRefused) {
  auto load = [](const layout::DimSharding &first, const layout::DimSharding &second) {
    absl::Status status;
    // A wait between the parts makes no difference.
    for (bool waits : {false, true}) {
      PlanBuilder builder = hostBuilder({2});
      builder.placesWaits = false;
      uint32_t in = builder.value({8, 6}, sharding(2));
      uint32_t value = builder.value({8, 6}, sharding(2, {{0, split(0, {0, 4, 8})}}));
      builder.input("in", in);
      builder.exchange(in, in);
      builder.kernel("increment", {}, {value}, {{8, first}, {6, {}}});
      if (waits)
        builder.wait({0}, {0});
      builder.kernel("increment", {}, {value}, {{8, second}, {6, {}}});
      builder.output("value", value);
      absl::Status loaded = Program::load(builder.artifact()).status();
      if (waits)
        EXPECT_EQ(loaded.code(), status.code());
      status = loaded;
    }
    return status;
  };
  // The interior, then a boundary; rank 1 has none in the second case.
  EXPECT_TRUE(load(windows(0, {{0, 3}, {5, 8}}), windows(0, {{3, 4}, {4, 5}})).ok());
  EXPECT_TRUE(load(windows(0, {{0, 3}, {4, 8}}), windows(0, {{3, 4}, {8, 8}})).ok());
  for (auto second : {windows(0, {{3, 4}, {4, 6}}), windows(0, {{3, 4}, {0, 0}}), windows(0, {{3, 4}, {3, 5}})}) {
    absl::Status status = load(windows(0, {{0, 3}, {5, 8}}), second);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("do not compute each element once on rank 1"));
  }
}

TEST(Artifact, PartsThatAreSentBeforeTheyAreComputedAreRefused) {
  // Ranks compute what they send, then the rest. Rank 0 sends row 3, and rank 1 row 4.
  enum class Kind { Kernel, Pool };
  auto load = [](Kind kind, const layout::DimSharding &first, const layout::DimSharding &second, bool waits,
                 bool isWithin = true) {
    PlanBuilder builder = hostBuilder({2});
    builder.placesWaits = false;
    Shape shape = {1, 1, 8};
    layout::DimSharding rows = split(0, {0, 4, 8}), held = windows(0, {{0, 5}, {3, 8}});
    uint32_t in = builder.value(shape, sharding(3, {{2, rows}})),
             memory = builder.buffer(shape, sharding(3, {{2, held}}));
    uint32_t own = builder.tensor(memory, sharding(3, {{2, rows}})),
             wide = builder.tensor(memory, sharding(3, {{2, held}}));
    if (!isWithin)
      wide = builder.value(shape, sharding(3, {{2, held}}));
    builder.input("in", in);
    auto compute = [&](const layout::DimSharding &part) {
      if (kind == Kind::Kernel)
        return builder.kernel("increment", {in}, {own}, {{1, {}}, {1, {}}, {8, part}});
      PoolStep step;
      step.input = in;
      step.output = own;
      step.kernel = step.strides = step.dilations = {1};
      step.pads = {0};
      builder.library(std::move(step));
      auto &pieces = builder.plan.steps.back()->action.AsLibraryStep()->call.AsPool()->loops[2]->dim->pieces;
      pieces.clear();
      for (layout::Interval piece : part.pieces)
        pieces.emplace_back(piece.lo, piece.hi);
    };
    compute(first);
    builder.exchange(own, wide);
    if (waits)
      builder.wait({1}, {1});
    compute(second);
    if (!waits)
      builder.wait({1}, {1});
    builder.output("own", own);
    builder.output("wide", wide);
    return Program::load(builder.artifact()).status();
  };
  layout::DimSharding borders = windows(0, {{3, 4}, {4, 5}}), interior = windows(0, {{0, 3}, {5, 8}});
  for (Kind kind : {Kind::Kernel, Kind::Pool})
    for (bool waits : {false, true}) {
      absl::Status status = load(kind, borders, interior, waits);
      EXPECT_TRUE(status.ok()) << status;
      auto refuse = [&](const layout::DimSharding &first, const layout::DimSharding &second, const std::string &what) {
        absl::Status status = load(kind, first, second, waits);
        EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr(what));
      };
      // Rank 1 sends what comes later; it computes an element twice, or never.
      std::string sent = "between it and other parts of the same step, sends or receives on rank 1";
      refuse(windows(0, {{3, 4}, {5, 8}}), windows(0, {{0, 3}, {4, 5}}), sent);
      refuse(borders, windows(0, {{0, 3}, {4, 8}}), "do not compute each element once on rank 1");
      refuse(borders, windows(0, {{0, 3}, {6, 8}}), "do not compute each element once on rank 1");
      // What is complete may be written once more.
      layout::DimSharding rows = split(0, {0, 4, 8});
      status = load(kind, rows, rows, waits);
      EXPECT_TRUE(status.ok()) << status;
      // An exchange into another buffer copies the rank's own part, too.
      status = load(kind, borders, interior, waits, /*isWithin=*/false);
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("sends or receives on rank 0"));
    }
}

TEST(Artifact, RepeatsThatDoNotFitAreRefused) {
  // As many halos as there are iterations.
  auto build = [](auto change) {
    PlanBuilder builder = hostBuilder({2});
    builder.placesWaits = false;
    auto add = [&](auto step) {
      auto &entry = builder.plan.steps.emplace_back(std::make_unique<artifact::StepT>());
      entry->name = "repeat";
      entry->action.Set(std::move(step));
    };
    uint32_t halo = builder.buffer({8, 6}, sharding(2, {{0, windows(0, {{0, 5}, {3, 8}})}}));
    uint32_t own = builder.tensor(halo, sharding(2, {{0, split(0, {0, 4, 8})}})),
             wide = builder.tensor(halo, sharding(2, {{0, windows(0, {{0, 5}, {3, 8}})}}));
    uint32_t on = builder.value({}, sharding(0), {}, "on", artifact::ElementType::Bool);
    uint32_t result = builder.value({8, 6}, sharding(2, {{0, split(0, {0, 4, 8})}}));
    builder.input("on", on);
    builder.input("own", own);
    artifact::RepeatStepT repeat;
    repeat.condition = on;
    add(repeat);
    add(repeat);
    builder.exchange(own, wide);
    builder.wait({2}, {2});
    builder.kernel("increment", {}, {result}, {{8, split(0, {0, 4, 8})}, {6, {}}});
    add(artifact::EndStepT());
    add(artifact::EndStepT());
    builder.output("own", own);
    change(builder, result);
    return Program::load(builder.artifact()).status();
  };
  EXPECT_TRUE(build([](PlanBuilder &, uint32_t) {}).ok());
  auto expect = [&](const char *words, auto change) {
    absl::Status status = build(change);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  expect("step 0 'repeat' repeats or chooses steps without an end",
         [](PlanBuilder &b, uint32_t) { b.plan.steps.pop_back(); });
  expect("step 7 'repeat' ends no steps", [](PlanBuilder &b, uint32_t) {
    b.plan.steps.push_back(std::make_unique<artifact::StepT>(*b.plan.steps.back()));
  });
  expect("step 0 'repeat' uses tensor 99",
         [](PlanBuilder &b, uint32_t) { b.plan.steps[0]->action.AsRepeatStep()->condition = 99; });
  expect("step 1 'repeat' has a condition that is not a scalar of Bool", [](PlanBuilder &b, uint32_t) {
    uint32_t other = b.value({1}, sharding(1), {}, "other", artifact::ElementType::Bool);
    b.input("other", other);
    b.plan.steps[1]->action.AsRepeatStep()->condition = other;
  });
  expect("step 1 'repeat' has a condition that is not a scalar of Bool", [](PlanBuilder &b, uint32_t) {
    uint32_t other = b.value({}, sharding(0), {}, "other", artifact::ElementType::U8);
    b.input("other", other);
    b.plan.steps[1]->action.AsRepeatStep()->condition = other;
  });
  expect("step 1 'repeat' reads tensor", [](PlanBuilder &b, uint32_t) {
    b.plan.steps[1]->action.AsRepeatStep()->condition =
        b.value({}, sharding(0), {}, "other", artifact::ElementType::Bool);
  });
  // There may be no iteration.
  expect("no step writes output 'result'", [](PlanBuilder &b, uint32_t result) { b.output("result", result); });
  expect("waits for step 2 of another iteration", [](PlanBuilder &b, uint32_t) {
    std::swap(b.plan.steps[3], b.plan.steps[4]);
    std::swap(b.plan.steps[4], b.plan.steps[5]);
  });
  expect("prologue step 1 'repeat' repeats or chooses steps, but not of a run", [](PlanBuilder &b, uint32_t) {
    uint32_t constant = b.buffer({}, sharding(0), {}, artifact::BufferKind::Persistent, artifact::ElementType::Bool);
    uint32_t on = b.tensor(constant, sharding(0));
    b.kernel("increment", {}, {on}, {}, -1, /*inPrologue=*/true);
    b.plan.prologue.push_back(std::make_unique<artifact::StepT>(*b.plan.steps[0]));
    b.plan.prologue.push_back(std::make_unique<artifact::StepT>(*b.plan.steps.back()));
    b.plan.prologue[1]->action.AsRepeatStep()->condition = on;
  });
}

TEST(Artifact, WhatIsChosenIsReadByKernelsAlone) {
  auto build = [](auto change) {
    PlanBuilder builder = hostBuilder({1});
    builder.placesWaits = false;
    auto add = [&](auto step) {
      auto &entry = builder.plan.steps.emplace_back(std::make_unique<artifact::StepT>());
      entry->name = "choose";
      entry->action.Set(std::move(step));
    };
    std::vector<std::pair<int64_t, layout::DimSharding>> loops = {{8, {}}};
    uint32_t on = builder.value({}, sharding(0), {}, "on", artifact::ElementType::Bool);
    uint32_t chosen = builder.value({8}, sharding(1), {}, "chosen"), result = builder.value({8}, sharding(1));
    builder.input("on", on);
    artifact::ChooseStepT choose;
    choose.condition = on;
    add(choose);
    builder.kernel("increment", {}, {chosen}, loops);
    add(artifact::EndStepT());
    builder.kernel("increment", {chosen}, {result}, loops);
    builder.output("result", result);
    change(builder, chosen, result);
    return Program::load(builder.artifact()).status();
  };
  EXPECT_TRUE(build([](PlanBuilder &, uint32_t, uint32_t) {}).ok());
  auto expect = [&](const char *words, auto change) {
    absl::Status status = build(change);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  expect("'chosen', which is written only if a condition holds", [](PlanBuilder &b, uint32_t chosen, uint32_t result) {
    artifact::ReorderT reorder;
    reorder.source = chosen;
    reorder.target = result;
    b.library(reorder);
  });
  expect("no step writes output 'chosen'",
         [](PlanBuilder &b, uint32_t chosen, uint32_t) { b.output("chosen", chosen); });
}
