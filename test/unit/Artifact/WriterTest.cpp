//===- WriterTest.cpp - Programs written as artifacts and run from them -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Artifact/Writer.h"
#include "dovetail/CodeGen/CPU/Compile.h"
#include "dovetail/CodeGen/Passes.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/runtime/LocalGroup.h"
#include "dovetail/runtime/Session.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <cstring>
#include <thread>

using namespace mlir;
using namespace dovetail;

namespace {
/// A module and what its context says.
class WriterTest : public testing::Test {
protected:
  WriterTest() {
    context.loadDialect<DovetailDialect, plan::PlanDialect>();
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return success();
    });
  }

  /// The bytes of the artifact of `source`; empty after an error.
  std::vector<std::byte> compile(llvm::StringRef source) {
    module = parseSourceString<ModuleOp>(source, &context);
    PassManager passes(&context);
    passes.addPass(createGenerateCpuKernels());
    if (!module || failed(passes.run(*module)))
      return {};
    FailureOr<ProgramCode> code = compileCpuKernels(*module, {});
    if (failed(code))
      return {};
    FailureOr<Artifact> artifact = Artifact::create(*module, *code);
    if (failed(artifact))
      return {};
    FailureOr<std::vector<std::byte>> bytes = artifact->serialize();
    return failed(bytes) ? std::vector<std::byte>() : std::move(*bytes);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string messages;
};

/// y = max over three rows of (x + bias), with bias 10 * channel; rows are cut at 4.
const char *const pooling = R"mlir(
  dovetail.mesh @mesh = ["y" = 2]
  plan.kernel @add(%x: tensor<1x2x9x5xf32>, %b: tensor<2x1x1xf32>) layouts [<[0, 2, 3, 1], [1, 2, ?, 5]>, <[0, 1, 2], [2, 1, 1]>]
      -> [<[0, 2, 3, 1], [1, 2, ?, 5]>] attributes {static_loops = array<i64: 0, 1, 3>} {
    %0 = dovetail.add %x, %b : (tensor<1x2x9x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x9x5xf32>
    plan.yield %0 : tensor<1x2x9x5xf32>
  }
  plan.kernel @pool(%x: tensor<1x2x9x5xf32>) layouts [<[0, 2, 3, 1], [1, 2, ?, 5]>]
      -> [<[0, 2, 3, 1], [1, 2, ?, 5]>] attributes {static_loops = array<i64: 0, 1, 3>} {
    %0 = dovetail.pool %x {kind = #dovetail.pool_kind<max>, kernel = array<i64: 3, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>} : (tensor<1x2x9x5xf32>) -> tensor<1x2x9x5xf32>
    plan.yield %0 : tensor<1x2x9x5xf32>
  }
  !held = !plan.ref<tensor<1x2x9x5xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 9}, {}]>>>
  !extended = !plan.ref<tensor<1x2x9x5xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 9)}, {}]>>>
  plan.program @main mesh @mesh target "cpu" model "pooling" {
    %0 = plan.buffer arena tensor<1x2x9x5xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 9}, {}]>> <[0, 2, 3, 1]>
    %1 = plan.buffer arena tensor<1x2x9x5xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 9)}, {}]>> <[0, 2, 3, 1]>
    %2 = plan.buffer arena tensor<1x2x9x5xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 9}, {}]>> <[0, 2, 3, 1]>
    %3 = plan.buffer constant tensor<2x1x1xf32> <[0, 1, 2]> = dense<[[[0.0]], [[10.0]]]> : tensor<2x1x1xf32>
    %x = plan.view %0 "x" : !held
    %biased = plan.view %1 "biased" : !held
    %wide = plan.view %1 "biased" : !extended
    %y = plan.view %2 "y" : !held
    %b = plan.view %3 "bias" : !plan.ref<tensor<2x1x1xf32>>
    plan.input "x" %x : !held
    plan.output "y" %y : !held
    plan.launch @add(%x, %b) -> (%biased) loops [1, 2, 9 by <{"y" : 0, 4, 9}>, 5]
      : (!held, !plan.ref<tensor<2x1x1xf32>>) -> (!held)
    %halo = plan.exchange %biased -> %wide {step_name = "halo"} : !held -> !extended
    plan.wait complete(%halo) read(%halo)
    plan.launch @pool(%wide) -> (%y) loops [1, 2, 9 by <{"y" : 0, 4, 9}>, 5] : (!extended) -> (!held)
  }
)mlir";

float inputAt(int64_t channel, int64_t row, int64_t column) { return (channel * 31 + row * 7 + column * 3) % 11; }
} // namespace

TEST_F(WriterTest, StepsHaveSourceNames) {
  module = parseSourceString<ModuleOp>(pooling, &context);
  ASSERT_TRUE(module) << messages;
  auto locate = [&](llvm::StringRef node, llvm::StringRef name, unsigned line) -> Location {
    auto place = FileLineColLoc::get(&context, "net.py", line, 0);
    return NameLoc::get(StringAttr::get(&context, node), NameLoc::get(StringAttr::get(&context, name), place));
  };
  auto file = FileLineColLoc::get(&context, "net.onnx", 0, 0);
  Location add = locate("node_add", "add", 8), pool = locate("node_pool", "pool", 9);
  Location plain = NameLoc::get(StringAttr::get(&context, "node_plain"), file);
  SmallVector<Operation *> steps;
  module->walk([&](plan::StepOpInterface step) { steps.push_back(step); });
  ASSERT_EQ(steps.size(), 4u);
  auto set = [&](unsigned step, Location loc, const char *name) {
    steps[step]->setLoc(loc);
    steps[step]->setAttr("step_name", StringAttr::get(&context, name));
  };
  // A part of a node, two steps that were merged, one of which has no source, the same node twice, and no source.
  set(0, add, "node_add (interior)");
  set(1, FusedLoc::get(&context, {FusedLoc::get({pool}, StringAttr::get(&context, "tensor"), &context), plain, add}),
      "node_pool, node_plain, node_add");
  set(2, FusedLoc::get(&context, {add, withTensorName(add, StringAttr::get(&context, "sum"))}), "node_add");
  set(3, plain, "node_plain");
  FailureOr<runtime::Plan> plan = describeProgram(*module);
  ASSERT_TRUE(succeeded(plan)) << messages;
  ASSERT_EQ(plan->steps.size(), 4u);
  EXPECT_EQ(plan->steps[0].source, "add (net.py:8) (interior)");
  EXPECT_EQ(plan->steps[1].source, "pool (net.py:9), node_plain, add (net.py:8)");
  EXPECT_EQ(plan->steps[2].source, "add (net.py:8)");
  EXPECT_EQ(plan->steps[3].source, "");
  EXPECT_EQ(plan->steps[1].name, "node_pool, node_plain, node_add");
  // Many of them are cut.
  SmallVector<Location> many;
  for (unsigned line = 1; line <= 50; ++line)
    many.push_back(locate("node" + std::to_string(line), "add", line));
  set(1, FusedLoc::get(&context, many), "exchange");
  plan = describeProgram(*module);
  ASSERT_TRUE(succeeded(plan)) << messages;
  EXPECT_LE(plan->steps[1].source.size(), 120u);
  EXPECT_TRUE(llvm::StringRef(plan->steps[1].source).ends_with("add (net.py:49), add (net.py:50)"));
  plan = describeProgram(*module, /*hasSourceNames=*/false);
  ASSERT_TRUE(succeeded(plan)) << messages;
  EXPECT_EQ(plan->steps[0].source, "");
}

TEST_F(WriterTest, RunsOnTwoRanks) {
  std::vector<std::byte> bytes = compile(pooling);
  ASSERT_FALSE(bytes.empty()) << messages;
  auto program = runtime::Program::load(absl::MakeConstSpan(bytes));
  ASSERT_TRUE(program.ok()) << program.status();

  runtime::LocalGroup group(2);
  // [rank][channel][row][column]; rows of other ranks stay NaN.
  std::vector<float> results[2];
  absl::Status statuses[2];
  auto runRank = [&](int rank) -> absl::Status {
    std::unique_ptr<runtime::Communicator> communicator = group.communicator(rank);
    auto session = runtime::Session::create(*program, *communicator, {});
    if (!session.ok())
      return session.status();
    layout::Interval rows = rank == 0 ? layout::Interval{0, 4} : layout::Interval{4, 9};
    auto forEach = [&](auto body) {
      for (int64_t c = 0; c < 2; ++c)
        for (int64_t h = rows.lo; h < rows.hi; ++h)
          for (int64_t w = 0; w < 5; ++w)
            body(c, h, w);
    };
    results[rank].assign(90, NAN);
    auto view = runtime::MemoryView::rowMajor(
        runtime::ElementType::F32, layout::Box::ofShape(std::vector<int64_t>{1, 2, 9, 5}), results[rank].data());
    forEach([&](int64_t c, int64_t h, int64_t w) { results[rank][c * 45 + h * 5 + w] = inputAt(c, h, w); });
    if (absl::Status status = (*session)->writeInput(0, view, {(*session)->inputBox(0)}); !status.ok())
      return status;
    if (absl::Status status = (*session)->run(); !status.ok())
      return status;
    results[rank].assign(90, NAN);
    return (*session)->readOutput(0, view, {(*session)->outputBox(0)});
  };
  std::thread other([&] { statuses[1] = runRank(1); });
  statuses[0] = runRank(0);
  other.join();
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_TRUE(statuses[rank].ok()) << statuses[rank];
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t h = 0; h < 9; ++h)
      for (int64_t w = 0; w < 5; ++w) {
        float expected = -INFINITY;
        for (int64_t row = std::max<int64_t>(h - 1, 0); row <= std::min<int64_t>(h + 1, 8); ++row)
          expected = std::max(expected, inputAt(c, row, w) + 10 * c);
        EXPECT_EQ(results[h < 4 ? 0 : 1][c * 45 + h * 5 + w], expected) << c << " " << h << " " << w;
      }
}

TEST_F(WriterTest, KeepsWhatThePlanSays) {
  std::vector<std::byte> bytes = compile(pooling);
  ASSERT_FALSE(bytes.empty()) << messages;
  auto program = runtime::Program::load(absl::MakeConstSpan(bytes));
  ASSERT_TRUE(program.ok()) << program.status();
  const runtime::Plan &plan = (*program)->getPlan();
  EXPECT_EQ(plan.model, "pooling");
  EXPECT_EQ(plan.target, "cpu");
  ASSERT_EQ(plan.buffers.size(), 4u);
  EXPECT_EQ(plan.buffers[1].format.order, (std::vector<int>{0, 2, 3, 1}));
  EXPECT_EQ(plan.buffers[3].kind, runtime::BufferKind::Constant);
  EXPECT_EQ(plan.bufferBox(1, 1)[2], (layout::Interval{3, 9}));
  ASSERT_EQ(plan.tensors.size(), 5u);
  EXPECT_EQ(plan.tensors[1].name, "biased");
  EXPECT_EQ(plan.tensors[1].buffer, plan.tensors[2].buffer);
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_EQ(plan.steps[1].name, "halo");
  EXPECT_EQ(std::get<runtime::WaitCall>(plan.steps[2].action).complete, std::vector<uint32_t>{1});
  EXPECT_EQ(std::get<runtime::WaitCall>(plan.steps[2].action).read, std::vector<uint32_t>{1});
  const auto &kernel = std::get<runtime::KernelCall>(plan.steps[0].action);
  EXPECT_EQ(kernel.symbol, "add");
  // Threads divide the rows, the outermost loop with more than one iteration.
  EXPECT_EQ(kernel.parallelLoop, 2);
  EXPECT_EQ(kernel.skipLoops, (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(plan.inputs[0].shape, (std::vector<int64_t>{1, 2, 9, 5}));
}

TEST_F(WriterTest, DescribesMemoryAsSessionsHaveIt) {
  module = parseSourceString<ModuleOp>(pooling, &context);
  ASSERT_TRUE(module);
  FailureOr<runtime::Plan> described = describeProgram(*module);
  ASSERT_TRUE(succeeded(described)) << messages;
  // With code it is the same.
  std::vector<std::byte> bytes = compile(pooling);
  auto program = runtime::Program::load(absl::MakeConstSpan(bytes));
  ASSERT_TRUE(program.ok()) << program.status();
  for (int rank : {0, 1}) {
    auto use = runtime::MemoryEstimator(*described, 1).estimate(rank);
    auto written = runtime::estimateStatistics((*program)->getPlan(), rank, 1);
    ASSERT_TRUE(use.ok() && written.ok()) << use.status() << written.status();
    written->messageBytes = 0;
    EXPECT_EQ(use->statistics, *written);
    // x, of 160 or 200 bytes, until it is read; with the halo a row of 40 bytes more; y. 64 bytes are aligned together.
    int64_t x = rank == 0 ? 192 : 256, wide = rank == 0 ? 256 : 256, y = x;
    EXPECT_EQ(use->aliveBytes, (std::vector<int64_t>{x, x + wide, wide, wide, wide + y, y}));
    EXPECT_EQ(use->statistics.weightBytes, 8);
  }
}

TEST_F(WriterTest, DescribesProgramsWithoutTheirData) {
  module = parseSourceString<ModuleOp>(R"mlir(
    dovetail.mesh @mesh = ["y" = 1]
    plan.program @main mesh @mesh target "cpu" {
      %0 = plan.buffer constant tensor<1000000x1000000xf32> <[0, 1]> = dense_resource<weights> : tensor<1000000x1000000xf32>
      %w = plan.view %0 : !plan.ref<tensor<1000000x1000000xf32>>
      plan.output "y" %w : !plan.ref<tensor<1000000x1000000xf32>>
    })mlir",
                                       &context);
  ASSERT_TRUE(module);
  FailureOr<runtime::Plan> plan = describeProgram(*module);
  ASSERT_TRUE(succeeded(plan)) << messages;
  auto use = runtime::MemoryEstimator(*plan, 1).estimate(0);
  ASSERT_TRUE(use.ok()) << use.status();
  EXPECT_EQ(use->statistics.weightBytes, 4000000000000);
}

TEST_F(WriterTest, StoresEqualConstantsOnce) {
  std::vector<std::byte> bytes = compile(R"mlir(
    dovetail.mesh @mesh = ["y" = 1]
    plan.program @main mesh @mesh target "cpu" {
      %0 = plan.buffer constant tensor<3xf32> <[0]> = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
      %1 = plan.buffer constant tensor<2xi1> <[0]> = dense<[true, false]> : tensor<2xi1>
      %2 = plan.buffer constant tensor<3xf32> <[0]> = dense_resource<weights> : tensor<3xf32>
      %3 = plan.buffer constant tensor<20xi16> <[0]> = dense<7> : tensor<20xi16>
      %4 = plan.buffer arena tensor<3xf32> <[0]>
      %a = plan.view %4 : !plan.ref<tensor<3xf32>>
      %b = plan.view %0 : !plan.ref<tensor<3xf32>>
      plan.output "y" %a : !plan.ref<tensor<3xf32>>
      plan.reorder %b -> %a : !plan.ref<tensor<3xf32>> -> !plan.ref<tensor<3xf32>>
    }
    {-# dialect_resources: { builtin: { weights: "0x040000000000803F0000004000004040" } } #-}
  )mlir");
  ASSERT_FALSE(bytes.empty()) << messages;
  auto program = runtime::Program::load(absl::MakeConstSpan(bytes));
  ASSERT_TRUE(program.ok()) << program.status();
  const runtime::Plan &plan = (*program)->getPlan();
  absl::Span<const std::byte> weights = (*program)->getWeights();
  EXPECT_EQ(plan.buffers[0].dataOffset, plan.buffers[2].dataOffset);
  for (int buffer = 0; buffer < 4; ++buffer)
    EXPECT_EQ(plan.buffers[buffer].dataOffset % 64, 0u) << buffer;
  const float expected[] = {1, 2, 3};
  EXPECT_EQ(std::memcmp(weights.data() + plan.buffers[0].dataOffset, expected, sizeof(expected)), 0);
  EXPECT_EQ(weights[plan.buffers[1].dataOffset], std::byte(1));
  EXPECT_EQ(weights[plan.buffers[1].dataOffset + 1], std::byte(0));
  ASSERT_EQ(plan.buffers[3].dataSize, 40u);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(reinterpret_cast<const int16_t *>(weights.data() + plan.buffers[3].dataOffset)[i], 7) << i;
}

TEST_F(WriterTest, RefusesWhatArtifactsCannotExpress) {
  EXPECT_TRUE(compile("dovetail.mesh @mesh = [\"y\" = 1]").empty());
  EXPECT_NE(messages.find("an artifact holds one plan.program, but the module has 0"), std::string::npos) << messages;
  messages.clear();
  EXPECT_TRUE(compile(R"mlir(
    dovetail.mesh @mesh = ["y" = 1]
    plan.program @main mesh @mesh target "cpu" {
      %0 = plan.buffer constant tensor<3x2xf32> <[1, 0]> = dense<1.0> : tensor<3x2xf32>
    })mlir")
                  .empty());
  EXPECT_NE(messages.find("weights are row-major in artifacts"), std::string::npos) << messages;
  messages.clear();
  EXPECT_TRUE(compile(R"mlir(
    dovetail.mesh @mesh = ["y" = 1]
    plan.program @main mesh @mesh target "cpu" {
      %0 = plan.buffer arena tensor<3x2xi7> <[1, 0]>
    })mlir")
                  .empty());
  EXPECT_NE(messages.find("has elements of 'i7', which artifacts do not have"), std::string::npos) << messages;
}

TEST_F(WriterTest, NamesTheCpuThatIsNotKnown) {
  module = parseSourceString<ModuleOp>("dovetail.mesh @mesh = [\"y\" = 1]", &context);
  CodeGenOptions options;
  options.cpu = "z80";
  EXPECT_TRUE(failed(compileCpuKernels(*module, options)));
  EXPECT_NE(messages.find("CPU 'z80' is not known"), std::string::npos) << messages;
}

TEST_F(WriterTest, ReportsFilesThatCannotBeWritten) {
  module = parseSourceString<ModuleOp>(R"mlir(
    dovetail.mesh @mesh = ["y" = 1]
    plan.program @main mesh @mesh target "cpu" {})mlir",
                                       &context);
  ASSERT_TRUE(module) << messages;
  ProgramCode code;
  FailureOr<Artifact> artifact = Artifact::create(*module, code);
  ASSERT_TRUE(succeeded(artifact)) << messages;
  EXPECT_TRUE(failed(artifact->write("/nonexistent/folder/model.dvt")));
  EXPECT_NE(messages.find("/nonexistent/folder/model.dvt"), std::string::npos) << messages;
}
