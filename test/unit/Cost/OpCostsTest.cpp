//===- OpCostsTest.cpp - Tests of how long operations take ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/OpCosts.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace dovetail;

namespace {

class OpCostsTest : public testing::Test {
protected:
  OpCostsTest() { context.loadDialect<DovetailDialect, func::FuncDialect>(); }

  /// What the first operation of a function reads and writes, of pieces of its loops of these sizes.
  double countBytes(StringRef body, ArrayRef<int64_t> sizes) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(body, &context);
    if (!module)
      return -1;
    double bytes = -1;
    module->walk([&](DefinitionOpInterface op) {
      StepWork work = OpCosts(op, op.getRelation(), /*constants=*/{}).getWork(sizes);
      bytes = work.readBytes + work.writtenBytes;
      return WalkResult::interrupt();
    });
    return bytes;
  }

  MLIRContext context;
};

} // namespace

TEST_F(OpCostsTest, RowsAreReadAgainWhereTheyAreWhole) {
  const char *softmax = R"mlir(
  func.func @softmax(%x: tensor<6x40xf32>) -> tensor<6x40xf32> {
    %max, %sum = dovetail.sum_exp %x {axes = array<i64: 1>} : (tensor<6x40xf32>) -> (tensor<6x1xf32>, tensor<6x1xf32>)
    %0 = dovetail.sub %x, %max : (tensor<6x40xf32>, tensor<6x1xf32>) -> tensor<6x40xf32>
    %1 = dovetail.exp %0 : (tensor<6x40xf32>) -> tensor<6x40xf32>
    %2 = dovetail.div %1, %sum : (tensor<6x40xf32>, tensor<6x1xf32>) -> tensor<6x40xf32>
    return %2 : tensor<6x40xf32>
  })mlir";
  // Of whole rows the one that goes over them again counts. Parts of rows are read, and what is found is written twice.
  EXPECT_EQ(countBytes(softmax, {6, 1, 40}), 0);
  EXPECT_EQ(countBytes(softmax, {2, 1, 40}), 0);
  EXPECT_EQ(countBytes(softmax, {6, 1, 10}), 4 * (6 * 10 + 2 * 6));
  // Columns are no rows.
  const char *columns = R"mlir(
  func.func @softmax(%x: tensor<40x6xf32>) -> tensor<40x6xf32> {
    %max, %sum = dovetail.sum_exp %x {axes = array<i64: 0>} : (tensor<40x6xf32>) -> (tensor<1x6xf32>, tensor<1x6xf32>)
    %0 = dovetail.sub %x, %max : (tensor<40x6xf32>, tensor<1x6xf32>) -> tensor<40x6xf32>
    %1 = dovetail.div %0, %sum : (tensor<40x6xf32>, tensor<1x6xf32>) -> tensor<40x6xf32>
    return %1 : tensor<40x6xf32>
  })mlir";
  EXPECT_EQ(countBytes(columns, {1, 6, 40}), 4 * (6 * 40 + 2 * 6));
  // Nobody goes over these rows again.
  const char *sums = R"mlir(
  func.func @sums(%x: tensor<6x40xf32>, %y: tensor<6x40xf32>) -> tensor<6x40xf32> {
    %sum = dovetail.reduce %x {axes = array<i64: 1>, kind = #dovetail.reduce_kind<sum>} : (tensor<6x40xf32>) -> tensor<6x1xf32>
    %0 = dovetail.mul %y, %sum : (tensor<6x40xf32>, tensor<6x1xf32>) -> tensor<6x40xf32>
    return %0 : tensor<6x40xf32>
  })mlir";
  EXPECT_EQ(countBytes(sums, {6, 1, 40}), 4 * (6 * 40 + 6));
}
