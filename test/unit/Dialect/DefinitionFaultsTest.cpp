//===- DefinitionFaultsTest.cpp - Definitions that make no sense ----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LitOperations.h"

#include "dovetail/Dialect/Dovetail/Definition/DefinitionFaults.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"

#include <map>

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::IndexExpr;
using testing::HasSubstr;

TEST(DefinitionFaults, NoOperationHasAny) {
  std::map<std::string, std::string> faults;
  int count = 0;
  forEachOperation([&](DefinitionOpInterface op) {
    ++count;
    if (std::string fault = findFault(op, op.getDefinition()); !fault.empty())
      faults[op->getName().getStringRef().str()] = fault;
  });
  EXPECT_GT(count, 1000);
  EXPECT_THAT(faults, testing::IsEmpty());
}

/// Each is a product of matrices that somebody has changed.
TEST(DefinitionFaults, AreFound) {
  MLIRContext context;
  context.loadDialect<DovetailDialect, func::FuncDialect>();
  auto module = parseSourceString<ModuleOp>(R"(
    func.func @main(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {
      %0 = dovetail.matmul %a, %b : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    })",
                                            &context);
  DefinitionOpInterface op;
  module->walk([&](DefinitionOpInterface found) { op = found; });
  ASSERT_TRUE(op);
  auto expect = [&](llvm::function_ref<void(Definition &)> change, const char *fault) {
    Definition definition = op.getDefinition();
    change(definition);
    EXPECT_THAT(findFault(op, definition), HasSubstr(fault));
  };
  EXPECT_EQ(findFault(op, op.getDefinition()), "");
  expect([](Definition &definition) { definition.loops[1].extent = -1; }, "has loop 1 of a negative extent");
  expect([](Definition &definition) { definition.loops[1].kind = LoopKind::Reduction; }, "that is a reduction");
  expect([](Definition &definition) { definition.loops[2].kind = LoopKind::Parallel; }, "without terms behind");
  expect([](Definition &definition) { definition.loops[0].kind = LoopKind::Scan; }, "but no scan of it");
  expect([](Definition &definition) { definition.loops[2].index = 7; }, "looked up by no read");
  expect([](Definition &definition) { definition.reads[0].operand = 2; }, "not of operands 0 and 1");
  expect([](Definition &definition) { definition.reads[0].dims.pop_back(); }, "other dimensions than its operand");
  expect([](Definition &definition) { definition.reads[1].dims[0] = AccessDim(IndexExpr::loop(3)); },
         "names a loop that is not there");
  expect([](Definition &definition) { definition.reads[1].dims[0].divisor = 0; }, "means nothing");
  expect([](Definition &definition) { definition.isFold = false; }, "but does not fold");
  expect([](Definition &definition) { definition.lines = {1}; }, "is a fold, but");
  expect(
      [](Definition &definition) {
        definition.isFold = definition.isProduct = false;
        definition.lines = {2};
      },
      "has lines along no dimensions");
  expect(
      [](Definition &definition) {
        definition.isFold = definition.isProduct = false;
        definition.setScan({0, {0, 3}});
      },
      "restarts elsewhere");
  expect([](Definition &definition) { definition.resultRank = 3; }, "of other dimensions than its definition");
}
