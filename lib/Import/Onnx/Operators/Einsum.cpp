//===- Einsum.cpp - Einsum ------------------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Imports Einsum.
//
//===----------------------------------------------------------------------===//

#include "../../Build/Contraction.h"
#include "../OnnxNode.h"

using namespace dovetail;
using namespace dovetail::importer;

static OperatorImport einsum("Einsum", [](OnnxNode &node) -> llvm::LogicalResult {
  llvm::SmallVector<mlir::Value> operands(node.getInputs());
  for (auto [number, operand] : llvm::enumerate(operands))
    if (!operand)
      return node.invalid("operand " + llvm::Twine(number) + " is missing");
  auto shapes = llvm::map_to_vector(operands, [](mlir::Value operand) { return OnnxNode::getShape(operand); });
  std::string problem;
  std::optional<Equation> equation = Equation::parse(node.getString("equation", ""), shapes, problem);
  if (!equation)
    return node.invalid(problem);
  return node.setResult(buildContraction(node, *equation, operands));
});
