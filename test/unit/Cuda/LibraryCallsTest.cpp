//===- LibraryCallsTest.cpp - How the libraries are called ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LibraryCalls.h"

using namespace dovetail;
using namespace dovetail::runtime;
using namespace dovetail::runtime::cuda;
using namespace dovetail::test;
using testing::ElementsAre;

namespace {

TEST_F(LibraryCalls, ReportsNameAllEngines) {
  ASSERT_TRUE(run(convolution, {.explain = true}).ok());
  EXPECT_EQ(report.implementation, "cudnn engine 41");
  EXPECT_THAT(
      linesOf(report),
      ElementsAre("mode A 40 [TILE_SIZE=0] [TENSOR_CORE] direct 0 -1 rejected: tensor cores round f32, which --math "
                  "f32 excludes",
                  "mode A 41 [TILE_SIZE=10] [] direct 0 513 chosen", "mode A 42 [TILE_SIZE=20] [] direct 0 -1 untried",
                  "mode A 43 [TILE_SIZE=30] [] direct 0 -1 untried"));
  ASSERT_TRUE(run(product, {.explain = true}).ok());
  EXPECT_EQ(report.implementation, "cublaslt algorithm 60");
  std::string rest = "STAGES_ID=0,SPLITK_NUM=0,REDUCTION_SCHEME=0,CTA_SWIZZLING=0,CUSTOM_OPTION=0,WAVES_PERCENT=100,"
                     "INNER_SHAPE_ID=0,CLUSTER_SHAPE_ID=0] [FMA] direct 0 ";
  EXPECT_THAT(linesOf(report), ElementsAre("heuristic 60 [TILE_ID=0," + rest + "1000 chosen",
                                           "heuristic 61 [TILE_ID=1," + rest + "1001 untried",
                                           "heuristic 62 [TILE_ID=2," + rest + "1002 untried"));
}

TEST_F(LibraryCalls, ReportsHaveTheTimesThatWereMeasured) {
  for (size_t step : {convolution, product}) {
    // Plan 1 and algorithm 1 fail, plan 2 and algorithm 2 take 2 ms.
    cudnnLog->execute = blasLog->execute = [&](int way) {
      log->clock += way == 2 ? 2 : 3;
      return way != 1;
    };
    ASSERT_TRUE(run(step, {.autotune = true, .explain = true}).ok());
    EXPECT_EQ(report.implementation, step == convolution ? "cudnn engine 42" : "cublaslt algorithm 62");
    const CallCandidate &failed = report.candidates[1], &chosen = report.candidates[2];
    EXPECT_EQ(failed.status, CallCandidate::Status::Failed);
    EXPECT_THAT(failed.reason, testing::HasSubstr("a fake error"));
    EXPECT_FALSE(failed.milliseconds);
    EXPECT_EQ(chosen.status, CallCandidate::Status::Chosen);
    EXPECT_FLOAT_EQ(chosen.milliseconds.value_or(0), 2);
    const CallCandidate &other = report.candidates[step == convolution ? 3 : 0];
    // Plan 3 needs more workspace than there is.
    EXPECT_EQ(other.status, step == convolution ? CallCandidate::Status::Rejected : CallCandidate::Status::Usable);
    EXPECT_EQ(other.milliseconds.value_or(0), step == convolution ? 0 : 3);
  }
}

/// The library refuses a graph with a post-op, then the operand's place.
TEST_F(LibraryCalls, ReportsHaveWhatWasGivenUp) {
  auto &call = std::get<ConvolutionCall>(plan.steps[convolution].action);
  call.postOps = {{PostOpKind::Relu}};
  call.inputAccess[2] = layout::IndexExpr::loop(2) + layout::IndexExpr::loop(5) - 2;
  call.form.windows[0].pad = 2;
  ::setenv("FAKE_CUDNN_REFUSES", "fusion,asymmetric", 1);
  absl::Status status = run(convolution, {.explain = true});
  ::unsetenv("FAKE_CUDNN_REFUSES");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(report.postOps, 1);
  EXPECT_EQ(report.fused, 0);
  EXPECT_THAT(report.staged, ElementsAre("input"));
  std::vector<std::string> lines = linesOf(report);
  ASSERT_EQ(lines.size(), 7u) << absl::StrJoin(lines, "\n");
  EXPECT_THAT(lines[0], testing::StartsWith("graph  [] [] direct 1 -1 failed: "));
  EXPECT_THAT(lines[1], testing::StartsWith("graph  [] [] direct 0 -1 failed: "));
  EXPECT_THAT(lines[2], testing::HasSubstr(" packed 1 -1 failed: "));
  EXPECT_THAT(lines[4], testing::HasSubstr(" packed 0 513 chosen"));
}

TEST_F(LibraryCalls, NothingIsReportedUnasked) {
  for (size_t step : {convolution, product}) {
    ASSERT_TRUE(run(step).ok());
    EXPECT_EQ(report.implementation, step == convolution ? "cudnn" : "cublaslt");
    EXPECT_TRUE(report.candidates.empty());
  }
}

TEST_F(LibraryCalls, RecordedNodesAreCounted) {
  auto nodes = [&] {
    absl::StatusOr<std::optional<GraphNodes>> found = device->recordedNodes(*stream);
    return found.ok() && *found
               ? absl::StrJoin({(*found)->kernels, (*found)->copies, (*found)->fills, (*found)->others}, " ")
               : "none";
  };
  EXPECT_EQ(nodes(), "none");
  LibraryCallOr call = createLibraryCall(handles, memory, plan.steps[product], {});
  std::shared_ptr<std::byte> scratch = *context->allocate(2048);
  ASSERT_TRUE(call.ok() && (*call)->bind(scratch.get(), nullptr).ok());
  ASSERT_TRUE(device->beginCapture(*stream).ok());
  EXPECT_EQ(nodes(), "0 0 0 0");
  {
    DeviceScope scope(*context);
    ASSERT_EQ(context->api.cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(owned[0].get()), 0, 16, handleOf(*stream)),
              CUDA_SUCCESS);
  }
  EXPECT_EQ(nodes(), "0 0 1 0");
  ASSERT_TRUE((*call)->issue(*stream).ok());
  EXPECT_EQ(nodes(), "1 0 1 0");
  ASSERT_TRUE(device->endCapture(*stream).ok());
  EXPECT_EQ(nodes(), "none");
}

TEST_F(LibraryCalls, PlansOfTensorCoresNeedTheirMode) {
  cudnnLog->tensorCores = true;
  ASSERT_TRUE(run(convolution).ok());
  EXPECT_THAT(cudnnLog->executions, ElementsAre(1));
  for (MathMode mode : {MathMode::TF32, MathMode::BF16}) {
    plan.math = mode;
    ASSERT_TRUE(run(convolution).ok());
    EXPECT_THAT(cudnnLog->executions, ElementsAre(0));
  }
}

TEST_F(LibraryCalls, ModeIsTheComputeTypeOfProducts) {
  for (auto [mode, compute] : {std::pair{MathMode::F32, CUBLAS_COMPUTE_32F},
                               {MathMode::TF32, CUBLAS_COMPUTE_32F_FAST_TF32},
                               {MathMode::BF16, CUBLAS_COMPUTE_32F_FAST_16BF}}) {
    plan.math = mode;
    ASSERT_TRUE(run(product).ok());
    EXPECT_EQ(blasLog->compute, compute) << mathModeName(mode);
  }
}

/// Products of 16 bits are those of tensor cores, whatever the mode, and their sums are in f32.
TEST_F(LibraryCalls, HalvesAreSummedInF32) {
  for (ElementType type : {ElementType::F16, ElementType::BF16}) {
    allocate(type);
    for (MathMode mode : {MathMode::F32, MathMode::TF32, MathMode::BF16}) {
      plan.math = mode;
      ASSERT_TRUE(run(convolution).ok());
      EXPECT_THAT(cudnnLog->executions, ElementsAre(0));
      ASSERT_TRUE(run(product).ok());
      EXPECT_EQ(blasLog->compute, CUBLAS_COMPUTE_32F) << mathModeName(mode);
    }
  }
}

/// Convolutions of single elements are products, with a bias and what is added in the result's own memory. Relu comes
/// behind, as the library's own drops NaN.
TEST_F(LibraryCalls, ConvolutionsWithoutWindowsAreProducts) {
  auto &call = std::get<ConvolutionCall>(plan.steps[convolution].action);
  uint32_t bias = addTensor({8, 1, 1}, {0, 1, 2}, BufferKind::Constant);
  call.weights = addTensor({8, 4, 1, 1}, {0, 1, 2, 3}, BufferKind::Constant);
  call.loops[5] = call.loops[6] = {1, {}};
  call.postOps = {{PostOpKind::AddTensor, bias}, {PostOpKind::AddTensor, call.output}, {PostOpKind::Relu}};
  for (int64_t stride : {1, 2}) {
    // With a stride, a copy has the elements that are read.
    int64_t extent = 8 / stride;
    plan.buffers[call.output].shape = {1, 8, extent, extent};
    call.loops[2] = call.loops[3] = {extent, {}};
    for (int dim : {2, 3})
      call.inputAccess[dim] = layout::IndexExpr::loop(dim) * stride + layout::IndexExpr::loop(dim + 3);
    call.form.windows.assign(2, {/*kernel=*/1, stride, /*dilation=*/1, /*pad=*/0, false});
    allocate(ElementType::F32);
    auto floatsOf = [&](uint32_t tensor) { return reinterpret_cast<float *>(memory.buffers[tensor].data); };
    for (uint32_t tensor : {call.input, call.weights, bias, call.output})
      for (int64_t i = 0, count = memory.buffers[tensor].bytes() / 4; i < count; ++i)
        floatsOf(tensor)[i] = static_cast<float>((i * 7 + tensor) % 11) - 5;
    std::vector<float> added(floatsOf(call.output), floatsOf(call.output) + 8 * extent * extent);
    ASSERT_TRUE(run(convolution, {.explain = true}).ok());
    EXPECT_EQ(report.implementation, "cublaslt algorithm 60");
    EXPECT_EQ(report.fused, 2);
    EXPECT_EQ(report.staged, stride == 1 ? std::vector<std::string>() : std::vector<std::string>{"input"});
    EXPECT_TRUE(cudnnLog->executions.empty());
    for (int64_t h = 0; h < extent; ++h)
      for (int64_t w = 0; w < extent; ++w)
        for (int64_t o = 0; o < 8; ++o) {
          int64_t at = (h * extent + w) * 8 + o;
          float expected = floatsOf(bias)[o] + added[at];
          for (int64_t c = 0; c < 4; ++c)
            expected += floatsOf(call.input)[(h * stride * 8 + w * stride) * 4 + c] * floatsOf(call.weights)[o * 4 + c];
          EXPECT_EQ(floatsOf(call.output)[at], std::max(expected, 0.0f)) << "stride " << stride << " at " << at;
        }
  }
  // Without an algorithm, the other library does it.
  ::setenv("FAKE_CUBLASLT_REFUSES", "all", 1);
  absl::Status status = run(convolution, {.explain = true});
  ::unsetenv("FAKE_CUBLASLT_REFUSES");
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(report.implementation, "cudnn engine 41");
}

/// Post-ops have a launch of their own where the product then fills much more of the device, and too little with them.
TEST_F(LibraryCalls, StarvedProductsLeavePostOpsToTheRuntime) {
  auto &call = std::get<MatMulCall>(plan.steps[product].action);
  call.postOps = {{PostOpKind::AddTensor, addTensor({7}, {0}, BufferKind::Constant)}};
  allocate(ElementType::F32);
  for (auto [plain, fused, expected] : {std::tuple{0.3f, 0.1f, 0}, {0.3f, 0.2f, 1}, {3.0f, 0.6f, 1}, {0.0f, 0.0f, 1}}) {
    blasLog->plainWaves = plain;
    blasLog->fusedWaves = fused;
    ASSERT_TRUE(run(product, {.explain = true}).ok());
    EXPECT_EQ(report.fused, expected) << plain << " " << fused;
    EXPECT_EQ(report.postOps, 1);
  }
}

/// So are the taps of transposed convolutions whose windows lie side by side; weights are packed tap by tap.
TEST_F(LibraryCalls, TransposedWindowsSideBySideAreProducts) {
  auto &call = std::get<ConvolutionCall>(plan.steps[convolution].action);
  call.input = addTensor({1, 4, 4, 4}, {0, 2, 3, 1}, BufferKind::Arena);
  call.weights = addTensor({4, 8, 2, 2}, {0, 1, 2, 3}, BufferKind::Constant);
  call.loops[5] = call.loops[6] = {2, {}};
  call.weightsAccess = {layout::IndexExpr::loop(4), layout::IndexExpr::loop(1), layout::IndexExpr::loop(5),
                        layout::IndexExpr::loop(6)};
  uint32_t bias = addTensor({8, 1, 1}, {0, 1, 2}, BufferKind::Constant);
  call.postOps = {{PostOpKind::AddTensor, bias}};
  call.form.isTransposed = true;
  call.form.windows.assign(2, {/*kernel=*/2, /*stride=*/2, /*dilation=*/1, /*pad=*/0, true});
  for (int dim : {2, 3})
    call.inputAccess[dim] =
        call.form.windows[dim - 2].at(layout::IndexExpr::loop(dim), layout::IndexExpr::loop(dim + 3));
  allocate(ElementType::F32);
  auto floatsOf = [&](uint32_t tensor) { return reinterpret_cast<float *>(memory.buffers[tensor].data); };
  for (uint32_t tensor : {call.input, call.weights, bias})
    for (int64_t i = 0, count = memory.buffers[tensor].bytes() / 4; i < count; ++i)
      floatsOf(tensor)[i] = static_cast<float>((i * 7 + tensor) % 11) - 5;
  ASSERT_TRUE(run(convolution, {.explain = true}).ok());
  EXPECT_EQ(report.implementation, "cublaslt algorithm 60");
  EXPECT_THAT(report.staged, ElementsAre("weights, once"));
  EXPECT_EQ(report.fused, 1);
  // Columns of two taps follow each other.
  EXPECT_THAT(blasLog->executions, ElementsAre(0, 0));
  for (int64_t h = 0; h < 8; ++h)
    for (int64_t w = 0; w < 8; ++w)
      for (int64_t o = 0; o < 8; ++o) {
        float expected = floatsOf(bias)[o];
        for (int64_t c = 0; c < 4; ++c)
          expected += floatsOf(call.input)[(h / 2 * 4 + w / 2) * 4 + c] *
                      floatsOf(call.weights)[((c * 8 + o) * 2 + h % 2) * 2 + w % 2];
        EXPECT_EQ(floatsOf(call.output)[(h * 8 + w) * 8 + o], expected) << h << " " << w << " " << o;
      }
}

/// Without measuring, what the library recommends is used.
TEST_F(LibraryCalls, RecommendationIsTakenUnlessMeasured) {
  for (size_t step : {convolution, product})
    for (LibraryCallOptions options :
         {LibraryCallOptions{}, LibraryCallOptions{.inPrologue = true, .autotune = true}}) {
      int executions = 0;
      cudnnLog->execute = blasLog->execute = [&](int) { return ++executions > 0; };
      ASSERT_TRUE(run(step, options).ok());
      EXPECT_EQ(executions, 1);
      EXPECT_THAT(step == convolution ? cudnnLog->executions : blasLog->executions,
                  ElementsAre(step == convolution ? 1 : 0));
    }
}

/// In a model other steps have used the cache since the last run.
TEST_F(LibraryCalls, CachesAreColdWhenWaysAreMeasured) {
  int fills = 0;
  blasLog->execute = [&](int way) {
    bool isCold = std::exchange(fills, log->fills.load()) != log->fills;
    log->clock += isCold == (way == 1) ? 1 : 2;
    return true;
  };
  ASSERT_TRUE(run(product, {.autotune = true}).ok());
  EXPECT_THAT(blasLog->executions, ElementsAre(1));
}

TEST_F(LibraryCalls, TheFastestIsChosen) {
  const float times[2][3] = {{0, 3, 2}, {5, 4, 4.5f}};
  for (size_t step : {convolution, product}) {
    std::vector<int> counts(4);
    cudnnLog->execute = blasLog->execute = [&](int way) {
      // The first run of each loads code.
      log->clock += ++counts[way] == 1 ? 10.0f * way : times[step][way];
      return true;
    };
    ASSERT_TRUE(run(step, {.autotune = true}).ok());
    // Plan 2, for the first uses tensor cores; algorithm 1.
    EXPECT_THAT(step == convolution ? cudnnLog->executions : blasLog->executions,
                ElementsAre(step == convolution ? 2 : 1));
    EXPECT_THAT(counts, step == convolution ? ElementsAre(0, 6, 7, 0) : ElementsAre(6, 7, 6, 0));
  }
}

TEST_F(LibraryCalls, OfEqualOnesTheFirstIsChosen) {
  cudnnLog->execute = [&](int) {
    log->clock += 1;
    return true;
  };
  ASSERT_TRUE(run(convolution, {.autotune = true}).ok());
  EXPECT_THAT(cudnnLog->executions, ElementsAre(1));
}

TEST_F(LibraryCalls, WhatFailsIsSkippedWhenMeasuring) {
  for (size_t step : {convolution, product}) {
    int bad = step == convolution ? 1 : 0;
    cudnnLog->execute = blasLog->execute = [&](int way) {
      log->clock += way == bad ? 1 : 100;
      return way != bad;
    };
    absl::Status status = run(step, {.autotune = true});
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_THAT(step == convolution ? cudnnLog->executions : blasLog->executions, ElementsAre(bad + 1));
  }
  cudnnLog->execute = [](int) { return false; };
  absl::Status status = run(convolution, {.autotune = true});
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("rank 0, step 'conv': cuDNN 9.13.1"));
}

/// The workspace is a part of the step's scratch memory: what the plan allows, whatever the library needs.
TEST_F(LibraryCalls, WorkspaceIsThatOfThePlan) {
  for (int64_t allowed : {1024, 5000})
    for (size_t step : {convolution, product}) {
      plan.steps[step].memory = CallMemory{{0}, {allowed}, {0}, {0}};
      ASSERT_TRUE(run(step, {.autotune = true}).ok());
      // Rounded up, and what it may take to begin at a multiple of 256.
      EXPECT_EQ(bytes.scratch, (allowed + 255) / 256 * 256 + 192);
      EXPECT_EQ(bytes.packed, 0);
    }
  EXPECT_EQ(blasLog->mostWorkspace, 5000u);
}

TEST_F(LibraryCalls, WhatNeedsMoreWorkspaceIsNotChosen) {
  cudnnLog->workspaces = {0, 1025, 1024, 0};
  blasLog->workspaces = {1025, 5000, 1024};
  for (size_t step : {convolution, product})
    for (bool autotune : {false, true}) {
      absl::Status status = run(step, {.autotune = autotune});
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_EQ((step == convolution ? cudnnLog->executions : blasLog->executions).size(), 1u);
      EXPECT_EQ((step == convolution ? cudnnLog->executions : blasLog->executions)[0], 2);
    }
}

TEST_F(LibraryCalls, WithoutOneThatNeedsLessTheCallDoesNotFit) {
  cudnnLog->workspaces = {0, 3000, 2000, 4000, 5000}; // The first uses tensor cores.
  blasLog->workspaces = {3000, 2000, 4000};
  for (size_t step : {convolution, product}) {
    absl::Status status = run(step);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()),
                testing::AllOf(testing::HasSubstr(step == convolution ? "cuDNN 9.13.1 on " : "cuBLASLt 13.0.2 on "),
                               testing::HasSubstr(step == convolution ? " needs 2000 bytes" : " needs 3000 bytes"),
                               testing::HasSubstr("but the plan allows 1024; compile the model with --no-libraries")));
  }
}

/// Weights in another order than the library's are kept in that order, and there is memory for the padded copy of an
/// input that the library may not take as it is.
TEST_F(LibraryCalls, CopiesFollowFromBoxes) {
  auto &call = std::get<ConvolutionCall>(plan.steps[convolution].action);
  plan.buffers[plan.tensors[call.weights].buffer].format.order = {0, 1, 2, 3};
  // Rows: two before the first, none after the last.
  call.inputAccess[2] = layout::IndexExpr::loop(2) + layout::IndexExpr::loop(5) - 2;
  call.form.windows[0].pad = 2;
  allocate(ElementType::F32);
  ASSERT_TRUE(run(convolution).ok());
  EXPECT_EQ(bytes.packed, 8 * 4 * 3 * 3 * 4);
  EXPECT_EQ(bytes.scratch, 1 * 4 * 10 * 10 * 4 + 192 + 1024 + 192);
  // What runs once is not packed.
  ASSERT_TRUE(run(convolution, {.inPrologue = true}).ok());
  EXPECT_EQ(bytes.packed, 0);
  EXPECT_EQ(bytes.scratch, 1 * 4 * 10 * 10 * 4 + 192 + 1280 + 1024 + 192);
}

/// Six calls of ten lines would take longer than one with copies of both operands around it; a few do not.
TEST_F(LibraryCalls, ManySmallTransformsAreOne) {
  ASSERT_TRUE(run(transform).ok());
  EXPECT_EQ(bytes.scratch, 2 * 10 * 8 * 6 * 2 * 4 + 60160 + 192);
  auto &call = std::get<TransformCall>(plan.steps[transform].action);
  for (uint32_t tensor : {call.input, call.output})
    plan.buffers[tensor].shape[0] = 4;
  call.loops[0].extent = 4;
  allocate(ElementType::F32);
  ASSERT_TRUE(run(transform).ok());
  EXPECT_EQ(bytes.scratch, 60160 + 192);
}

/// A line takes 1000 bytes: all at once as long as the plan allows it, and one at least.
TEST_F(LibraryCalls, TransformsOfFewerLinesNeedLessWorkspace) {
  for (int64_t allowed : {60000, 59999, 1000})
    EXPECT_TRUE((plan.steps[transform].memory = CallMemory{{0}, {allowed}, {0}, {0}}, run(transform).ok())) << allowed;
  plan.steps[transform].memory = CallMemory{{0}, {999}, {0}, {0}};
  absl::Status status = run(transform);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(testing::HasSubstr("cuFFT 12.0.0 on "),
                             testing::HasSubstr(" needs 1000 bytes of workspace, but the plan allows 999")));
}

} // namespace
