//===- TransformPlanTest.cpp - Fourier transforms in artifacts ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Harness/DevicePlan.h"
#include "DamagedPlans.h"

using namespace dovetail;
using namespace dovetail::test;
using dovetail::runtime::Program;
using testing::HasSubstr;

namespace {

/// There and back, of 9 lines of 8 real numbers on two ranks, each of which may have all.
PlanBuilder transformProgram(bool isSplit = true) {
  PlanBuilder builder = deviceBuilder({2});
  layout::Sharding lines = sharding(3);
  if (isSplit)
    lines.dims[0] = split(0, {0, 3, 9});
  uint32_t x = builder.value({9, 8, 1}, lines, {}, "x"), spectrum = builder.value({9, 5, 2}, lines, {}, "spectrum"),
           y = builder.value({9, 8, 1}, lines, {}, "y");
  builder.input("x", x);
  builder.library(TransformStep{x, spectrum, 1});
  builder.library(TransformStep{spectrum, y, 1, /*inverse=*/true});
  builder.output("y", y);
  return builder;
}

artifact::TransformT &transformOf(PlanBuilder &builder, size_t step) {
  return *builder.plan.steps[step]->action.AsLibraryStep()->call.AsTransform();
}

} // namespace

TEST(Artifact, TransformsThereAndBackAreScaled) {
  auto program = Program::load(transformProgram().artifact());
  ASSERT_TRUE(program.ok()) << program.status();
  // The spectrum of an impulse has no imaginary part, not even by rounding.
  std::vector<float> x(72);
  for (int line = 0; line < 9; ++line)
    x[line * 8] = static_cast<float>(line);
  auto results = runFloats(*program, {x});
  ASSERT_TRUE(results.ok()) << results.status();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR((*results)[0][i], 8 * x[i], 1e-5);
}

TEST(ArtifactFuzz, DamagedTransformsNeverCrash) {
  // The emulated device writes to all memory that it is asked for, which may be much.
  bool starts = !hasKernels();
  auto [loaded, started] = damagePlans(transformProgram().artifact(), 4000, starts);
  EXPECT_GT(loaded, 100);
  EXPECT_TRUE(!starts || started > 50) << started;
}

TEST(Artifact, TransformsThatDoNotFitAreRefused) {
  auto expect = [](const char *words, auto change, bool isSplit = true) {
    PlanBuilder builder = transformProgram(isSplit);
    change(builder);
    absl::Status status = Program::load(builder.artifact()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  expect("is for devices only", [](PlanBuilder &builder) { builder.plan.target = "cpu"; });
  expect("is inverse, but reads real numbers", [](PlanBuilder &builder) { transformOf(builder, 0).inverse = true; });
  expect("writes real numbers, but is not inverse",
         [](PlanBuilder &builder) { transformOf(builder, 1).inverse = false; });
  expect("writes over its own operand", [](PlanBuilder &builder) { transformOf(builder, 1).output = 1; });
  expect("reads its operands as no transform does", [](PlanBuilder &builder) {
    using layout::IndexExpr;
    transformOf(builder, 0).input_access = toAccess({IndexExpr::loop(3), IndexExpr::loop(1), IndexExpr::loop(4)});
  });
  expect("reads its operands as no transform does",
         [](PlanBuilder &builder) { transformOf(builder, 0).loops[3]->extent = 10; });
  expect("reads a tensor of", [](PlanBuilder &builder) { transformOf(builder, 0).loops[3]->extent = 9; });
  auto splitPoints = [](PlanBuilder &builder) {
    auto &dim = *transformOf(builder, 1).loops[1]->dim;
    dim.axes = {0};
    dim.pieces = {artifact::Interval(0, 4), artifact::Interval(4, 8)};
  };
  expect("splits loop 1, which it transforms", splitPoints, /*isSplit=*/false);
}
