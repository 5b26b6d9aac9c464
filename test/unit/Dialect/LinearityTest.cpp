//===- LinearityTest.cpp - Linearity, stated and derived ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares what operations state of their linearity with what their code shows, for each operation of the lit tests.
//
//===----------------------------------------------------------------------===//

#include "LitOperations.h"

#include "dovetail/Dialect/Dovetail/Definition/Linearity.h"
#include "gmock/gmock.h"

#include <map>
#include <set>

using namespace mlir;
using namespace dovetail;

TEST(Linearity, DerivedAndStated) {
  std::map<std::string, std::set<std::string>> onlyDerived, onlyStated;
  std::set<std::string> seen, linear;
  forEachOperation([&](DefinitionOpInterface op) {
    auto split = dyn_cast<SplitOpInterface>(op.getOperation());
    if (!split)
      return;
    std::string name = op->getName().stripDialect().str();
    seen.insert(name);
    Definition definition = op.getDefinition();
    for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
      bool isStated = split.isLinearIn(operand), isDerived = deriveLinearity(op, definition, operand);
      if (isStated && isDerived)
        linear.insert(name);
      if (isStated != isDerived)
        (isStated ? onlyStated : onlyDerived)[name].insert(std::to_string(operand));
    }
  });
  auto print = [](const std::map<std::string, std::set<std::string>> &list) {
    std::string text;
    for (const auto &[name, operands] : list) {
      text += name + ":";
      for (const std::string &operand : operands)
        text += " " + operand;
      text += "\n";
    }
    return text;
  };
  // Products of integers that are extended: parts of a sum may have wrapped around before that. A transform computes
  // lines.
  EXPECT_EQ(print(onlyStated), "conv: 0 1\n"
                               "dft: 0\n"
                               "matmul: 0 1\n");
  // Casts of floats round each part. Of all others partial sums could pass through, but nothing states it yet.
  EXPECT_EQ(print(onlyDerived), "cast: 0\n"
                                "clear_tail: 0\n"
                                "concat: 0\n"
                                "gather: 0\n"
                                "gather_elements: 0\n"
                                "gather_nd: 0\n"
                                "grid_sample: 0\n"
                                "iter_arg: 0\n"
                                "loop_result: 0\n"
                                "pad: 0\n"
                                "pool: 0\n"
                                "reduce_parts: 0\n"
                                "resample: 1\n"
                                "resize: 0\n"
                                "roi_align: 0\n"
                                "yield: 1\n");
  EXPECT_GT(seen.size(), 60u);
  EXPECT_GT(linear.size(), 10u);
}
