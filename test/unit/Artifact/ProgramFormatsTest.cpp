//===- ProgramFormatsTest.cpp - Programs of several formats -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels and exchanges of values in several formats, compiled and run on CPUs and the emulated device, against plain
// loops.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Artifact/Writer.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "dovetail/Target/Target.h"
#include "dovetail/runtime/ProgramRunner.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

namespace {

/// Of four ranks one has no rows and one no channels.
const char *const source = R"mlir(
  dovetail.mesh @mesh = ["y" = 4]
  plan.kernel @scale(%x: tensor<1x20x23x6xf32>, %s: tensor<20x1x1xf32>)
      layouts [<[0, 1, 2, 3], [1, 20, ?, 6]>, <[0, 1, 2], [20, 1, 1]>]
      -> [<[0, 1, 2, 3], [1, 20, ?, 6]>] attributes {static_loops = array<i64: 0, 1, 3>} {
    %0 = dovetail.mul %x, %s : (tensor<1x20x23x6xf32>, tensor<20x1x1xf32>) -> tensor<1x20x23x6xf32>
    plan.yield %0 : tensor<1x20x23x6xf32>
  }
  plan.kernel @pool(%x: tensor<1x20x23x6xf32>) layouts [<[0, 1, 2, 3], [1, 20, ?, 6]>]
      -> [<[0, 2, 1, 3], [1, 20, ?, 6]>] attributes {static_loops = array<i64: 0, 1, 3>} {
    %0 = dovetail.pool %x {kind = #dovetail.pool_kind<max>, kernel = array<i64: 5, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads_low = array<i64: 2, 0>, pads_high = array<i64: 2, 0>} : (tensor<1x20x23x6xf32>) -> tensor<1x20x23x6xf32>
    plan.yield %0 : tensor<1x20x23x6xf32>
  }
  plan.kernel @negate(%x: tensor<1x20x23x6xf32>) layouts [<[0, 1, 2, 3], [1, ?, 23, 6]>]
      -> [<[0, 1, 2, 3], [1, ?, 23, 6]>] attributes {static_loops = array<i64: 0, 2, 3>} {
    %0 = dovetail.neg %x : (tensor<1x20x23x6xf32>) -> tensor<1x20x23x6xf32>
    plan.yield %0 : tensor<1x20x23x6xf32>
  }
  plan.kernel @sum(%x: tensor<1x20x23x6xf32>) layouts [<[0, 3, 2, 1], [1, 20, 23, 6]>]
      -> [<[0, 1, 2, 3], [1, 1, 23, 6]>] attributes {static_loops = array<i64: 0, 1, 2, 3, 4>} {
    %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<1x20x23x6xf32>) -> tensor<1x1x23x6xf32>
    plan.yield %0 : tensor<1x1x23x6xf32>
  }
  !rows = !plan.ref<tensor<1x20x23x6xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 5, 14, 23}, {}]>>>
  !halo = !plan.ref<tensor<1x20x23x6xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 7), (5, 5), (3, 16), (12, 23)}, {}]>>>
  !channels = !plan.ref<tensor<1x20x23x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 7, 17, 17, 20}, {}, {}]>>>
  plan.program @main mesh @mesh target "TARGET" {
    %0 = plan.buffer arena tensor<1x20x23x6xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 5, 14, 23}, {}]>> <[0, 1, 2, 3]>
    %1 = plan.buffer constant tensor<20x1x1xf32> <[0, 1, 2]> = dense<SCALES> : tensor<20x1x1xf32>
    %2 = plan.buffer arena tensor<1x20x23x6xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 7), (5, 5), (3, 16), (12, 23)}, {}]>> <[0, 1, 2, 3]>
    %3 = plan.buffer arena tensor<1x20x23x6xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 5, 5, 14, 23}, {}]>> <[0, 2, 1, 3]>
    %4 = plan.buffer arena tensor<1x20x23x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 7, 17, 17, 20}, {}, {}]>> <[0, 1, 2, 3]>
    %5 = plan.buffer arena tensor<1x20x23x6xf32, #dovetail.sharding<@mesh, [{}, {"y" : 0, 7, 17, 17, 20}, {}, {}]>> <[0, 1, 2, 3]>
    %6 = plan.buffer arena tensor<1x20x23x6xf32> <[0, 3, 2, 1]>
    %7 = plan.buffer arena tensor<1x1x23x6xf32> <[0, 1, 2, 3]>
    %x = plan.view %0 "x" : !rows
    %s = plan.view %1 "s" : !plan.ref<tensor<20x1x1xf32>>
    %scaled = plan.view %2 "scaled" : !rows
    %wide = plan.view %2 "scaled" : !halo
    %pooled = plan.view %3 "pooled" : !rows
    %turned = plan.view %4 "pooled" : !channels
    %negated = plan.view %5 "negated" : !channels
    %all = plan.view %6 "negated" : !plan.ref<tensor<1x20x23x6xf32>>
    %total = plan.view %7 "total" : !plan.ref<tensor<1x1x23x6xf32>>
    plan.input "x" %x : !rows
    plan.output "negated" %negated : !channels
    plan.output "total" %total : !plan.ref<tensor<1x1x23x6xf32>>
    plan.launch @scale(%x, %s) -> (%scaled) loops [1, 20, 23 by <{"y" : 0, 5, 5, 14, 23}>, 6]
      : (!rows, !plan.ref<tensor<20x1x1xf32>>) -> (!rows)
    %halo = plan.exchange %scaled -> %wide {step_name = "halo"} : !rows -> !halo
    plan.wait complete(%halo) read(%halo)
    plan.launch @pool(%wide) -> (%pooled) loops [1, 20, 23 by <{"y" : 0, 5, 5, 14, 23}>, 6] : (!halo) -> (!rows)
    %turn = plan.exchange %pooled -> %turned in [0, 2, 1, 3] {step_name = "turn"} : !rows -> !channels
    plan.wait complete(%turn) read(%turn)
    plan.launch @negate(%turned) -> (%negated) loops [1, 20 by <{"y" : 0, 7, 17, 17, 20}>, 23, 6] : (!channels) -> (!channels)
    %gather = plan.exchange %negated -> %all {step_name = "gather"} : !channels -> !plan.ref<tensor<1x20x23x6xf32>>
    plan.wait complete(%gather) read(%gather)
    plan.launch @sum(%all) -> (%total) loops [1, 1, 23, 6, 20] : (!plan.ref<tensor<1x20x23x6xf32>>) -> (!plan.ref<tensor<1x1x23x6xf32>>)
  }
)mlir";

void replace(std::string &text, const std::string &word, const std::string &by) {
  text.replace(text.find(word), word.size(), by);
}

class ProgramFormats : public testing::TestWithParam<const char *> {};
INSTANTIATE_TEST_SUITE_P(Targets, ProgramFormats, testing::Values("cpu", "emulated"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace

TEST_P(ProgramFormats, GivesWhatPlainLoopsGive) {
  std::string scales = "[";
  for (int c = 0; c < 20; ++c)
    scales += (c ? ", [[" : "[[") + std::to_string(c % 7 - 3) + ".0]]";
  std::string text = source;
  replace(text, "TARGET", GetParam());
  replace(text, "SCALES", scales + "]");

  MLIRContext context;
  context.loadDialect<DovetailDialect, plan::PlanDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  const Target *target = findTarget(GetParam());
  PassManager passes(&context);
  target->addPasses(passes);
  ASSERT_TRUE(succeeded(passes.run(*module)));
  FailureOr<ProgramCode> code = target->compile(*module, {});
  ASSERT_TRUE(succeeded(code));
  FailureOr<Artifact> artifact = Artifact::create(*module, *code);
  ASSERT_TRUE(succeeded(artifact));
  FailureOr<std::vector<std::byte>> bytes = artifact->serialize();
  ASSERT_TRUE(succeeded(bytes));
  auto program = runtime::Program::load(absl::MakeConstSpan(*bytes));
  ASSERT_TRUE(program.ok()) << program.status();
  auto runner = runtime::ProgramRunner::create(*program);
  ASSERT_TRUE(runner.ok()) << runner.status();

  constexpr int64_t channels = 20, rows = 23, columns = 6;
  auto at = [](int64_t c, int64_t h, int64_t w) { return (c * rows + h) * columns + w; };
  std::vector<float> x(channels * rows * columns), negated(x.size()), total(rows * columns);
  // Twice: what is replayed, or lies where the first run left it.
  for (int run = 0; run < 2; ++run) {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>((i * 37 + run * 11) % 101) - 50;
    using runtime::ElementType;
    runtime::FullTensor in{x.data(), ElementType::F32, {1, channels, rows, columns}, {}},
        out{negated.data(), ElementType::F32, {1, channels, rows, columns}, {}},
        sum{total.data(), ElementType::F32, {1, 1, rows, columns}, {}};
    absl::Status status = (*runner)->run({in}, {out, sum});
    ASSERT_TRUE(status.ok()) << status;
    for (int64_t h = 0; h < rows; ++h)
      for (int64_t w = 0; w < columns; ++w) {
        float added = 0;
        for (int64_t c = 0; c < channels; ++c) {
          float largest = -INFINITY;
          for (int64_t row = std::max<int64_t>(h - 2, 0); row <= std::min(h + 2, rows - 1); ++row)
            largest = std::max(largest, x[at(c, row, w)] * static_cast<float>(c % 7 - 3));
          ASSERT_EQ(negated[at(c, h, w)], -largest) << c << " " << h << " " << w;
          added -= largest;
        }
        ASSERT_EQ(total[h * columns + w], added) << h << " " << w;
      }
  }
}
