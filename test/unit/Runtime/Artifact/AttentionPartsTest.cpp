//===- AttentionPartsTest.cpp - Plans with parts of attention -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests that plans have what parts of the keys of attention come to, and that what makes no sense is refused.
//
//===----------------------------------------------------------------------===//

#include "../Harness/PlanBuilder.h"
#include "DamagedPlans.h"

using namespace dovetail;
using namespace dovetail::test;
using runtime::Program;
using testing::HasSubstr;

namespace {

/// Attention of 3 queries and 9 keys, of which three of four ranks have a part; values of `columns`.
PlanBuilder attentionProgram(int64_t columns) {
  PlanBuilder builder({4});
  auto keys = split(0, {0, 2, 2, 5, 9});
  layout::Sharding rows = sharding(2, {{0, keys}}), parts = sharding(3, {{0, split(0, {0, 1, 1, 2, 3})}});
  AttentionPartsStep step;
  step.query = builder.value({3, 4}, sharding(2));
  step.key = builder.value({9, 4}, rows);
  step.value = builder.value({9, columns}, rows);
  step.output = builder.value({3, 3, columns + 2}, parts);
  step.keys = keys;
  builder.input("query", step.query);
  builder.input("key", step.key);
  builder.input("value", step.value);
  builder.library(step);
  builder.output("parts", step.output);
  return builder;
}

artifact::AttentionT &attentionOf(PlanBuilder &builder) {
  return *builder.plan.steps[0]->action.AsLibraryStep()->call.AsAttention();
}

} // namespace

TEST(Artifact, PartsOfKeysAreSumsScoresAndWeights) {
  auto program = Program::load(attentionProgram(2).artifact());
  ASSERT_TRUE(program.ok()) << program.status();
  // All scores are 0: weights are 1.
  std::vector<float> query(12), key(36, 1), value(18, 1);
  auto results = runFloats(*program, {query, key, value});
  ASSERT_TRUE(results.ok()) << results.status();
  for (int part = 0; part < 3; ++part)
    for (int row = 0; row < 3; ++row)
      for (int column = 0; column < 4; ++column)
        EXPECT_EQ((*results)[0][(part * 3 + row) * 4 + column], column == 2 ? 0 : part + 2);
}

TEST(ArtifactFuzz, DamagedAttentionNeverCrashes) {
  auto [loaded, started] = damagePlans(attentionProgram(6).artifact(), 4000);
  EXPECT_GT(loaded, 100);
  EXPECT_GT(started, 50);
}

TEST(Artifact, PartsOfKeysThatDoNotFitAreRefused) {
  auto expect = [](const char *words, auto change, int64_t columns = 6) {
    PlanBuilder builder = attentionProgram(columns);
    change(attentionOf(builder));
    absl::Status status = Program::load(builder.artifact()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  // The columns of values are divided by that of a head.
  auto divide = [](int64_t columns) {
    return [columns](artifact::AttentionT &call) {
      layout::IndexExpr column = layout::IndexExpr::loop(2);
      call.value_access = toAccess({layout::IndexExpr::loop(3), column.floorDiv(columns)});
    };
  };
  expect("gives parts of several heads in its columns", divide(2));
  expect("gives parts of several heads in its columns", divide(3));
  expect("gives parts without whole columns of values", [](artifact::AttentionT &) {}, 0);
  expect("does not have each key in one part",
         [](artifact::AttentionT &call) { call.loops[3]->dim->pieces[2] = artifact::Interval(3, 5); });
  expect("does not have each key in one part",
         [](artifact::AttentionT &call) { call.loops[3]->dim->pieces[3] = artifact::Interval(4, 9); });
  expect("does not have each key in one part", [](artifact::AttentionT &call) {
    call.loops[3]->dim->pieces[0] = artifact::Interval(0, 1);
    call.loops[3]->dim->pieces[1] = artifact::Interval(1, 2);
  });
  expect("is used twice", [](artifact::AttentionT &call) { call.parts = false; });
}
