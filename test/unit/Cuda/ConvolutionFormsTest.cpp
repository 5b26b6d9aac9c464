//===- ConvolutionFormsTest.cpp - Ways to do a convolution ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryCalls.h"

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::test;

namespace {

/// A bias, a residual and Relu, as at the end of a block of a ResNet. In f32 the library has code for these with the
/// residual first. In the plan's order it compiles them at run time, to code that is slow.
TEST_F(LibraryCalls, ResidualsComeBeforeBiases) {
  addBiasAndResidual();
  ASSERT_TRUE(run(convolution, {.explain = true}).ok());
  EXPECT_EQ(report.implementation, "cudnn engine 41");
  EXPECT_EQ(report.fused, 3);
  EXPECT_EQ(linesOf(report)[1], "mode A, tensor before bias 41 [TILE_SIZE=10] [] direct 3 513 chosen");
  std::get<ConvolutionCall>(plan.steps[convolution].action).postOps.pop_back();
  ASSERT_TRUE(run(convolution, {.explain = true}).ok());
  EXPECT_EQ(report.implementation, "cudnn engine 41");
  EXPECT_EQ(report.fused, 2);
}

/// Each operand meets its own tensor of the graph.
TEST_F(LibraryCalls, ResidualsBeforeBiasesGiveTheSame) {
  addBiasAndResidual();
  auto &call = std::get<ConvolutionCall>(plan.steps[convolution].action);
  fillBuffers();
  ASSERT_TRUE(run(convolution, {.explain = true}).ok());
  ASSERT_EQ(report.fused, 3);
  const float *in = values(call.input), *weights = values(call.weights), *bias = values(call.postOps[0].tensor),
              *residual = values(call.postOps[1].tensor), *out = values(call.output);
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column)
      for (int channel = 0; channel < 8; ++channel) {
        float sum = bias[channel] + residual[(row * 8 + column) * 8 + channel];
        for (int tap = 0; tap < 9; ++tap) {
          int y = row + tap / 3 - 1, x = column + tap % 3 - 1;
          for (int c = 0; c < 4 && y >= 0 && y < 8 && x >= 0 && x < 8; ++c)
            sum += in[(y * 8 + x) * 4 + c] * weights[(channel * 9 + tap) * 4 + c];
        }
        EXPECT_EQ(out[(row * 8 + column) * 8 + channel], std::max(sum, 0.0f)) << row << " " << column << " " << channel;
      }
}

/// The time of a form is that of the whole: copies, the library's call, and the post-ops that are left.
TEST_F(LibraryCalls, MeasuringFindsHowManyPostOpsAreFused) {
  addBiasAndResidual();
  for (auto [launchTime, fused] : {std::pair{1.0f, 0}, {8.0f, 3}}) {
    log->launchTime = launchTime;
    // Plan 2 is the better one; each operation that is fused makes it slower.
    cudnnLog->execute = [&](int plan) {
      log->clock += static_cast<float>(2 * cudnnLog->operations + 2 - plan);
      return true;
    };
    ASSERT_TRUE(run(convolution, {.autotune = true, .explain = true}).ok());
    EXPECT_EQ(report.fused, fused);
    EXPECT_EQ(report.implementation, "cudnn engine 42");
    EXPECT_THAT(cudnnLog->executions, testing::ElementsAre(2));
    int chosen = 0;
    for (const CallCandidate &candidate : report.candidates)
      if (candidate.status == CallCandidate::Status::Chosen) {
        ++chosen;
        EXPECT_EQ(candidate.fused, fused);
        EXPECT_FLOAT_EQ(candidate.milliseconds.value_or(0), 2.0f * (fused + 1) + (fused == 3 ? 0 : launchTime));
      }
    EXPECT_EQ(chosen, 1);
  }
}

/// Measuring looks at the fallback list, too, but not at what is compiled at run time and slow.
TEST_F(LibraryCalls, MeasuringTriesWhatIsNotRecommended) {
  ::setenv("FAKE_CUDNN_OFFERS", "fallback", 1);
  cudnnLog->execute = [&](int plan) {
    log->clock += plan == 1 ? 2 : 1;
    return true;
  };
  for (bool autotune : {false, true}) {
    EXPECT_TRUE(run(convolution, {.autotune = autotune, .explain = true}).ok());
    EXPECT_EQ(report.implementation, autotune ? "cudnn engine 42" : "cudnn engine 41");
  }
  ::unsetenv("FAKE_CUDNN_OFFERS");
}

/// Weights that one form takes as they are, and the other packed, are as the form that is chosen wants them.
TEST_F(LibraryCalls, MeasuringFindsTheStaging) {
  auto &call = std::get<ConvolutionCall>(plan.steps[convolution].action);
  // Row-major, so that a packed form copies all operands.
  for (uint32_t tensor : {call.input, call.weights, call.output})
    plan.buffers[plan.tensors[tensor].buffer].format.order = {0, 1, 2, 3};
  allocate(ElementType::F32);
  for (float launchTime : {8.0f, 0.0f}) {
    fillBuffers();
    log->launchTime = launchTime;
    int executions = 0;
    // The first form has two plans that fit.
    cudnnLog->execute = [&](int) {
      log->clock += ++executions > 12 ? 1 : 2;
      return true;
    };
    ASSERT_TRUE(run(convolution, {.autotune = true, .explain = true}).ok());
    EXPECT_EQ(report.staged.size(), launchTime > 0 ? 0u : 3u) << absl::StrJoin(report.staged, " ");
    const float *in = values(call.input), *weights = values(call.weights), *out = values(call.output);
    for (int channel = 0; channel < 8; ++channel)
      for (int row = 0; row < 8; ++row)
        for (int column = 0; column < 8; ++column) {
          float sum = 0;
          for (int tap = 0; tap < 9; ++tap) {
            int y = row + tap / 3 - 1, x = column + tap % 3 - 1;
            for (int c = 0; c < 4 && y >= 0 && y < 8 && x >= 0 && x < 8; ++c)
              sum += in[(c * 8 + y) * 8 + x] * weights[(channel * 4 + c) * 9 + tap];
          }
          EXPECT_EQ(out[(channel * 8 + row) * 8 + column], sum) << channel << " " << row << " " << column;
        }
  }
}

/// An input that the library may not take as it is gets a copy with its padding written out. Only that is set to zero,
/// in the launch that copies.
TEST_F(LibraryCalls, PaddingIsWrittenWithTheCopy) {
  auto &call = std::get<ConvolutionCall>(plan.steps[convolution].action);
  for (std::vector<int> order : {std::vector<int>{0, 2, 3, 1}, {0, 1, 2, 3}}) {
    // Rows: two before the first, none after the last.
    call.inputAccess[2] = layout::IndexExpr::loop(2) + layout::IndexExpr::loop(5) - 2;
    call.form.windows[0].pad = 2;
    plan.buffers[plan.tensors[call.input].buffer].format.order = order;
    allocate(ElementType::F32);
    fillBuffers();
    ::setenv("FAKE_CUDNN_REFUSES", "asymmetric", 1);
    LibraryCallOr created = createLibraryCall(handles, memory, plan.steps[convolution], {});
    ::unsetenv("FAKE_CUDNN_REFUSES");
    ASSERT_TRUE(created.ok()) << created.status();
    bytes = *stagedCallBytes(memory, plan.steps[convolution], false);
    std::shared_ptr<std::byte> scratch = *context->allocate(bytes.scratch), packed = *context->allocate(bytes.packed);
    std::memset(scratch.get(), 0xff, bytes.scratch);
    ASSERT_TRUE((*created)->bind(scratch.get(), packed.get()).ok() && (*created)->pack(*stream).ok());
    ASSERT_TRUE((*created)->issue(*stream).ok());
    ASSERT_TRUE(device->beginCapture(*stream).ok());
    ASSERT_TRUE((*created)->issue(*stream).ok());
    absl::StatusOr<std::optional<GraphNodes>> nodes = device->recordedNodes(*stream);
    ASSERT_TRUE(nodes.ok() && *nodes && device->endCapture(*stream).ok());
    EXPECT_EQ((*nodes)->fills, 0);
    EXPECT_EQ((*nodes)->kernels, 2);
    int rowStride = order[1] == 1 ? 8 : 32, columnStride = order[1] == 1 ? 1 : 4,
        channelStride = order[1] == 1 ? 64 : 1;
    const float *in = values(call.input), *weights = values(call.weights), *out = values(call.output);
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < 8; ++column)
        for (int channel = 0; channel < 8; ++channel) {
          float sum = 0;
          for (int tap = 0; tap < 9; ++tap) {
            int y = row + tap / 3 - 2, x = column + tap % 3 - 1;
            for (int c = 0; c < 4 && y >= 0 && y < 8 && x >= 0 && x < 8; ++c)
              sum += in[y * rowStride + x * columnStride + c * channelStride] * weights[(channel * 9 + tap) * 4 + c];
          }
          EXPECT_EQ(out[(row * 8 + column) * 8 + channel], sum) << row << " " << column << " " << channel;
        }
  }
}

/// The library has no code for this chain in any order, and does a part of it.
TEST_F(LibraryCalls, SlowChainsAreNotFused) {
  addBiasAndResidual();
  std::get<ConvolutionCall>(plan.steps[convolution].action).postOps[1].kind = PostOpKind::MulTensor;
  ASSERT_TRUE(run(convolution, {.explain = true}).ok());
  EXPECT_EQ(report.implementation, "cudnn engine 41");
  EXPECT_EQ(report.fused, 1);
  EXPECT_EQ(report.postOps, 3);
}

/// With tensor cores, code is made at run time that is fast.
TEST_F(LibraryCalls, ChainsForTensorCoresStayAsTheyAre) {
  addBiasAndResidual();
  cudnnLog->tensorCores = true;
  plan.math = MathMode::TF32;
  ASSERT_TRUE(run(convolution, {.explain = true}).ok());
  EXPECT_EQ(report.implementation, "cudnn engine 40");
  EXPECT_EQ(report.fused, 3);
  EXPECT_EQ(report.candidates[0].source, "mode A");
}

TEST_F(LibraryCalls, SlowChainsOfTransposedConvolutionsAreNotFused) {
  transpose();
  auto &call = std::get<ConvolutionCall>(plan.steps[convolution].action);
  call.postOps = {{PostOpKind::AddTensor, addTensor({8, 1, 1}, {0, 1, 2}, BufferKind::Constant)}};
  allocate(ElementType::F32);
  ASSERT_TRUE(run(convolution, {.explain = true}).ok());
  EXPECT_EQ(report.implementation, "cudnn engine 41");
  EXPECT_EQ(report.fused, 0);
}

/// Where the library has nothing else, code is compiled at run time. Then it does as much as possible.
TEST_F(LibraryCalls, SlowChainsAreTheLastResort) {
  addBiasAndResidual();
  ::setenv("FAKE_CUDNN_REFUSES", "precompiled", 1);
  absl::Status status = run(convolution, {.explain = true});
  ::unsetenv("FAKE_CUDNN_REFUSES");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(report.implementation, "cudnn engine 44");
  EXPECT_EQ(report.fused, 3);
  std::vector<std::string> lines = linesOf(report);
  EXPECT_THAT(lines, testing::Contains("fallback 44 [TILE_SIZE=40] [RUNTIME_COMPILATION] direct 3 -1 rejected: it is "
                                       "compiled at run time and has no tensor cores: the last resort"));
  EXPECT_EQ(lines.back(), "fallback, tensor before bias 44 [TILE_SIZE=40] [RUNTIME_COMPILATION] direct 3 516 chosen");
}

} // namespace
