//===- PlanStepsTest.cpp - Work and simulated runs of programs ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs whose work, and what it takes, can be told by hand.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/PlanSteps.h"
#include "dovetail/Cost/Simulation.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace dovetail;

namespace {

class PlanStepsTest : public testing::Test {
protected:
  PlanStepsTest() { context.loadDialect<DovetailDialect, plan::PlanDialect>(); }

  /// Of the one program of `source`.
  PlanSteps getWork(const std::string &source, const Cluster &cluster,
                    ExchangeEngine engine = ExchangeEngine::Streams) {
    module = parseSourceString<ModuleOp>(source, &context);
    if (!module)
      return {};
    FailureOr<PlanSteps> work = getPlanSteps(*module->getOps<plan::ProgramOp>().begin(), cluster, engine);
    return succeeded(work) ? *work : PlanSteps();
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// A step begins in 1 s, and does 10 operations or products a second; an exchange begins in 2 s, further messages in
/// half a second, and 10 bytes a second go over links, half of that between pairs of ranks.
Cluster getSlowCluster() {
  Device device;
  device.name = "slow";
  device.stepSeconds = 1;
  device.operations = device.products32 = device.products16 = 10;
  device.bytes = device.cachedBytes = 1e9;
  return Cluster("slow", {device}, {{"near", 2, 2, 0.5, 10, /*isCopied=*/true}, {"far", 0, 2, 0.5, 5}});
}

/// y = max over three rows of (x + bias), of 9 rows that are cut at 4. `BETWEEN` stands for steps during the exchange.
std::string getPooling(const std::string &between = "") {
  return R"mlir(
  dovetail.mesh @mesh = ["y" = 2]
  plan.kernel @add(%x: tensor<1x2x9x5xf32>, %b: tensor<2x1x1xf32>) layouts [<[0, 2, 3, 1], [1, 2, ?, 5]>, <[0, 1, 2], [2, 1, 1]>]
      -> [<[0, 2, 3, 1], [1, 2, ?, 5]>] {
    %0 = dovetail.add %x, %b : (tensor<1x2x9x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x9x5xf32>
    plan.yield %0 : tensor<1x2x9x5xf32>
  }
  plan.kernel @pool(%x: tensor<1x2x9x5xf32>) layouts [<[0, 2, 3, 1], [1, 2, ?, 5]>] -> [<[0, 2, 3, 1], [1, 2, ?, 5]>] {
    %0 = dovetail.pool %x {kind = #dovetail.pool_kind<max>, kernel = array<i64: 3, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>,
        pads_low = array<i64: 1, 0>, pads_high = array<i64: 1, 0>} : (tensor<1x2x9x5xf32>) -> tensor<1x2x9x5xf32>
    plan.yield %0 : tensor<1x2x9x5xf32>
  }
  !held = !plan.ref<tensor<1x2x9x5xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 9}, {}]>>>
  !extended = !plan.ref<tensor<1x2x9x5xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 9)}, {}]>>>
  !bias = !plan.ref<tensor<2x1x1xf32>>
  plan.program @main mesh @mesh target "cpu" model "pooling" {
    %0 = plan.buffer arena tensor<1x2x9x5xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 9}, {}]>> <[0, 2, 3, 1]>
    %1 = plan.buffer arena tensor<1x2x9x5xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : (0, 5), (3, 9)}, {}]>> <[0, 2, 3, 1]>
    %2 = plan.buffer arena tensor<1x2x9x5xf32, #dovetail.sharding<@mesh, [{}, {}, {"y" : 0, 4, 9}, {}]>> <[0, 2, 3, 1]>
    %3 = plan.buffer constant tensor<2x1x1xf32> <[0, 1, 2]> = dense<[[[0.0]], [[10.0]]]> : tensor<2x1x1xf32>
    %x = plan.view %0 "x" : !held
    %biased = plan.view %1 "biased" : !held
    %wide = plan.view %1 "biased" : !extended
    %y = plan.view %2 "y" : !held
    %b = plan.view %3 "bias" : !bias
    plan.input "x" %x : !held
    plan.output "y" %y : !held
    plan.launch @add(%x, %b) -> (%biased) loops [1, 2, 9 by <{"y" : 0, 4, 9}>, 5] {step_name = "biased"} : (!held, !bias) -> (!held)
    %halo = plan.exchange %biased -> %wide {step_name = "halo"} : !held -> !extended
)mlir" + between +
         R"mlir(
    plan.wait complete(%halo) read(%halo)
    plan.launch @pool(%wide) -> (%y) loops [1, 2, 9 by <{"y" : 0, 4, 9}>, 5] : (!extended) -> (!held)
  }
)mlir";
}

} // namespace

TEST_F(PlanStepsTest, CountsElementsAndMessages) {
  PlanSteps work = getWork(getPooling(), getSlowCluster());
  ASSERT_EQ(work.steps.size(), 4u);
  const PlanStep &add = work.steps[0], &halo = work.steps[1], &wait = work.steps[2], &pool = work.steps[3];
  EXPECT_EQ(add.name, "biased");
  EXPECT_EQ(add.type, "kernel");
  for (auto [rank, rows] : {std::pair(0, 4), std::pair(1, 5)}) {
    int elements = 2 * rows * 5;
    EXPECT_EQ(add.getWork(rank).operations, elements);
    EXPECT_EQ(add.getWork(rank).readBytes, elements * 4 + 8);
    EXPECT_EQ(add.getWork(rank).writtenBytes, elements * 4);
    EXPECT_EQ(pool.getWork(rank).operations, 3 * elements);
    // With the halo, which is read in place of what would be outside of the rank's own rows.
    EXPECT_EQ(pool.getWork(rank).readBytes, 2 * (rows + 1) * 5 * 4);
  }
  ASSERT_EQ(halo.kind, PlanStep::Kind::Exchange);
  for (int rank : {0, 1}) {
    EXPECT_EQ(halo.traffic->get(rank, 0).receivedBytes, 40);
    EXPECT_EQ(halo.traffic->get(rank, 0).sentBytes, 40);
    EXPECT_EQ(halo.traffic->get(rank, 0).receivedMessages, 1);
    EXPECT_EQ(halo.traffic->get(rank, 1).receivedBytes, 0);
    EXPECT_EQ(halo.traffic->localBytes[rank], 0);
  }
  EXPECT_EQ(halo.traffic->getBytes(), 80);
  EXPECT_EQ(wait.complete, std::vector<unsigned>{1});
  EXPECT_EQ(wait.read, std::vector<unsigned>{1});
}

TEST_F(PlanStepsTest, ThreadsCopyThemselves) {
  Cluster cluster = getSlowCluster();
  Simulation run(getWork(getPooling(), cluster, ExchangeEngine::Threads), cluster);
  // 40 and 50 elements.
  EXPECT_DOUBLE_EQ(run.getEnd(0, 0), 5);
  EXPECT_DOUBLE_EQ(run.getEnd(0, 1), 6);
  // 40 bytes, once the other one has begun.
  EXPECT_DOUBLE_EQ(run.getEnd(1, 0), 12);
  EXPECT_DOUBLE_EQ(run.getEnd(1, 1), 12);
  EXPECT_DOUBLE_EQ(run.getWaiting(1, 0), 1);
  EXPECT_DOUBLE_EQ(run.getWaiting(1, 1), 0);
  EXPECT_DOUBLE_EQ(run.getEnd(3, 0), 25);
  EXPECT_DOUBLE_EQ(run.getSeconds(), 28);
  EXPECT_DOUBLE_EQ(run.getRankTime(0).exchanging, 6);
  EXPECT_DOUBLE_EQ(run.getRankTime(0).waiting, 1);
  EXPECT_DOUBLE_EQ(run.getRankTime(0).idle, 3);
  EXPECT_DOUBLE_EQ(run.getRankTime(1).elements, 22);
  EXPECT_DOUBLE_EQ(run.getLinkBytes(0), 80);
  EXPECT_DOUBLE_EQ(run.getLinkBytes(1), 0);
}

/// By streams, and by messages that threads or processes send each other.
class BesideSteps : public PlanStepsTest, public testing::WithParamInterface<ExchangeEngine> {};

TEST_P(BesideSteps, ExchangesGoOn) {
  Cluster slow = getSlowCluster(), cluster("apart", slow.getDevices(), {{"far", 0, 2, 0.5, 10}});
  std::string between = R"mlir(
    plan.launch @add(%x, %b) -> (%y) loops [1, 2, 9 by <{"y" : 0, 4, 9}>, 5] : (!held, !bias) -> (!held)
)mlir";
  Simulation run(getWork(getPooling(between), cluster, GetParam()), cluster);
  EXPECT_DOUBLE_EQ(run.getBegin(1, 0), 5);
  EXPECT_DOUBLE_EQ(run.getEnd(1, 0), 12);
  EXPECT_DOUBLE_EQ(run.getEnd(1, 1), 12);
  EXPECT_DOUBLE_EQ(run.getWaiting(1, 0), 1);
  // The steps go on meanwhile.
  EXPECT_DOUBLE_EQ(run.getBegin(2, 0), 5);
  EXPECT_DOUBLE_EQ(run.getEnd(2, 0), 10);
  EXPECT_DOUBLE_EQ(run.getEnd(2, 1), 12);
  EXPECT_DOUBLE_EQ(run.getEnd(3, 0), 12);
  EXPECT_DOUBLE_EQ(run.getRankTime(0).waiting, 2);
  EXPECT_DOUBLE_EQ(run.getRankTime(1).waiting, 0);
  EXPECT_DOUBLE_EQ(run.getRankTime(0).exchanging, 0);
  EXPECT_DOUBLE_EQ(run.getSeconds(), 28);
}

INSTANTIATE_TEST_SUITE_P(Transports, BesideSteps, testing::Values(ExchangeEngine::Streams, ExchangeEngine::Threads));

TEST_F(PlanStepsTest, CollectivesGoLevelByLevel) {
  const char *source = R"mlir(
  dovetail.mesh @mesh = ["k" = 4]
  !a = !plan.ref<tensor<16x8xf32, #dovetail.sharding<@mesh, [{}, {"k" : 0, 2, 4, 6, 8}]>>>
  !b = !plan.ref<tensor<8x4xf32, #dovetail.sharding<@mesh, [{"k" : 0, 2, 4, 6, 8}, {}]>>>
  !part = !plan.ref<tensor<16x4xf32, #dovetail.sharding<@mesh, [{}, {}], partial = sum ["k"]>>>
  !whole = !plan.ref<tensor<16x4xf32>>
  plan.program @main mesh @mesh target "cpu" {
    %0 = plan.buffer arena tensor<16x8xf32, #dovetail.sharding<@mesh, [{}, {"k" : 0, 2, 4, 6, 8}]>> <[0, 1]>
    %1 = plan.buffer arena tensor<8x4xf32, #dovetail.sharding<@mesh, [{"k" : 0, 2, 4, 6, 8}, {}]>> <[0, 1]>
    %2 = plan.buffer arena tensor<16x4xf32> <[0, 1]>
    %3 = plan.buffer arena tensor<16x4xf32> <[0, 1]>
    %a = plan.view %0 "a" : !a
    %b = plan.view %1 "b" : !b
    %part = plan.view %2 "c" : !part
    %whole = plan.view %3 "c" : !whole
    plan.matmul %a, %b -> %part loops [16, 4, 8 by <{"k" : 0, 2, 4, 6, 8}>] reads [(d0, d2), (d2, d1)] : !a, !b -> !part
    %e = plan.exchange %part -> %whole by all_reduce {step_name = "sum"} : !part -> !whole
    plan.wait complete(%e)
  }
)mlir";
  Cluster cluster = getSlowCluster();
  PlanSteps work = getWork(source, cluster);
  ASSERT_EQ(work.steps.size(), 3u);
  const StepWork &product = work.steps[0].getWork(3);
  EXPECT_EQ(product.kind, StepWork::Kind::Product);
  EXPECT_EQ(product.rows, 16);
  EXPECT_EQ(product.columns, 4);
  EXPECT_EQ(product.depth, 2);
  EXPECT_EQ(product.batch, 1);
  EXPECT_EQ(product.operations, 128);
  EXPECT_EQ(product.readBytes, 4 * (32 + 8));
  EXPECT_EQ(product.writtenBytes, 256);
  const ExchangeTraffic &traffic = *work.steps[1].traffic;
  ASSERT_TRUE(traffic.isCollective());
  for (int rank = 0; rank < 4; ++rank) {
    // Halves of 256 bytes to and from a neighbour, then halves of these between pairs.
    EXPECT_EQ(traffic.get(rank, 0).receivedBytes, 256);
    EXPECT_EQ(traffic.get(rank, 0).receivedMessages, 2);
    EXPECT_EQ(traffic.get(rank, 1).receivedBytes, 128);
    EXPECT_EQ(traffic.get(rank, 1).receivedMessages, 2);
  }
  Simulation run(work, cluster);
  double products = 1 + 12.8, near = 2 + 0.5 + 25.6, far = 2 + 0.5 + 25.6;
  EXPECT_DOUBLE_EQ(run.getSeconds(), products + near + far);
  EXPECT_DOUBLE_EQ(run.getRankTime(2).products, products);
  EXPECT_DOUBLE_EQ(run.getRankTime(2).waiting, near + far);

  // Threads take all four parts themselves.
  PlanSteps threads = getWork(source, cluster, ExchangeEngine::Threads);
  EXPECT_FALSE(threads.steps[1].traffic->isCollective());
  EXPECT_EQ(threads.steps[1].traffic->get(0, 0).receivedBytes, 256);
  EXPECT_EQ(threads.steps[1].traffic->get(0, 1).receivedBytes, 512);
  EXPECT_EQ(threads.steps[1].traffic->localBytes[0], 256);
}

TEST_F(PlanStepsTest, PackedPartsAreCopiedBeforeAndAfter) {
  const char *source = R"mlir(
  dovetail.mesh @mesh = ["k" = 4]
  !columns = !plan.ref<tensor<6x8xf32, #dovetail.sharding<@mesh, [{}, {"k" : 0, 2, 4, 6, 8}]>>>
  !rows = !plan.ref<tensor<5x2xf32, #dovetail.sharding<@mesh, [{"k" : 0, 3, 4, 4, 5}, {}]>>>
  !allColumns = !plan.ref<tensor<6x8xf32>>
  !allRows = !plan.ref<tensor<5x2xf32>>
  plan.program @main mesh @mesh target "cpu" {
    %0 = plan.buffer arena tensor<6x8xf32, #dovetail.sharding<@mesh, [{}, {"k" : 0, 2, 4, 6, 8}]>> <[0, 1]>
    %1 = plan.buffer arena tensor<5x2xf32, #dovetail.sharding<@mesh, [{"k" : 0, 3, 4, 4, 5}, {}]>> <[0, 1]>
    %2 = plan.buffer arena tensor<6x8xf32> <[0, 1]>
    %3 = plan.buffer arena tensor<5x2xf32> <[0, 1]>
    %columns = plan.view %0 : !columns
    %rows = plan.view %1 : !rows
    %allColumns = plan.view %2 : !allColumns
    %allRows = plan.view %3 : !allRows
    %e = plan.exchange %columns, %rows -> %allColumns, %allRows by packed_gather : !columns, !rows -> !allColumns, !allRows
    plan.wait complete(%e)
  }
)mlir";
  Cluster cluster = getSlowCluster();
  PlanSteps work = getWork(source, cluster);
  ASSERT_EQ(work.steps.size(), 2u);
  const ExchangeTraffic &traffic = *work.steps[0].traffic;
  ASSERT_TRUE(traffic.isCollective());
  // Rank 0 has most: 12 elements of the one and 6 of the other.
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(traffic.get(rank, 0).receivedBytes, 2 * 72);
    EXPECT_EQ(traffic.get(rank, 1).receivedBytes, 72);
    EXPECT_EQ(traffic.get(rank, 1).receivedMessages, 1);
    EXPECT_EQ(traffic.localBytes[rank], 5 * 72);
  }
  Simulation run(work, cluster);
  EXPECT_DOUBLE_EQ(run.getSeconds(), 2 + 14.4 + 2 + 14.4 + 2 * 360 / 1e9);
}

TEST_F(PlanStepsTest, CountsWhatFusedKernelsDo) {
  const char *source = R"mlir(
  dovetail.mesh @mesh = ["y" = 1]
  plan.kernel @rows(%x: tensor<4x10xf32>) layouts [<[0, 1], [4, 10]>] -> [<[0, 1], [4, 10]>] {
    %0 = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<4x10xf32>) -> tensor<4x1xf32>
    %1 = dovetail.div %x, %0 : (tensor<4x10xf32>, tensor<4x1xf32>) -> tensor<4x10xf32>
    plan.yield %1 : tensor<4x10xf32>
  }
  plan.kernel @take(%table: tensor<1000x8xf32>, %rows: tensor<3xi64>) layouts [<[0, 1], [1000, 8]>, <[0], [3]>] -> [<[0, 1], [3, 8]>] {
    %0 = dovetail.gather %table, %rows {axis = 0 : i64} : (tensor<1000x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
    plan.yield %0 : tensor<3x8xf32>
  }
  !x = !plan.ref<tensor<4x10xf32>>
  !table = !plan.ref<tensor<1000x8xf32>>
  !rows = !plan.ref<tensor<3xi64>>
  !taken = !plan.ref<tensor<3x8xf32>>
  plan.program @main mesh @mesh target "cpu" {
    %0 = plan.buffer arena tensor<4x10xf32> <[0, 1]>
    %1 = plan.buffer arena tensor<4x10xf32> <[0, 1]>
    %2 = plan.buffer arena tensor<1000x8xf32> <[0, 1]>
    %3 = plan.buffer arena tensor<3xi64> <[0]>
    %4 = plan.buffer arena tensor<3x8xf32> <[0, 1]>
    %x = plan.view %0 : !x
    %y = plan.view %1 : !x
    %table = plan.view %2 : !table
    %rows = plan.view %3 : !rows
    %taken = plan.view %4 : !taken
    plan.launch @rows(%x) -> (%y) loops [4, 10, 10] : (!x) -> (!x)
    plan.launch @take(%table, %rows) -> (%taken) loops [3, 8, 1000] : (!table, !rows) -> (!taken)
  }
)mlir";
  PlanSteps work = getWork(source, getSlowCluster());
  ASSERT_EQ(work.steps.size(), 2u);
  // A row's sum once for the row, and a division, which takes the time of five additions, for each element.
  EXPECT_EQ(work.steps[0].getWork(0).operations, 4 * 10 + 40 * 5);
  EXPECT_EQ(work.steps[0].getWork(0).readBytes, 160);
  // Three rows of the table, and three indices.
  EXPECT_EQ(work.steps[1].getWork(0).readBytes, 3 * 8 * 4 + 3 * 8);
  EXPECT_EQ(work.steps[1].getWork(0).writtenBytes, 96);
}
