//===- Activations.cpp - Activations of ONNX Runtime ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// States Gelu, BiasGelu, FastGelu and QuickGelu.
//
//===----------------------------------------------------------------------===//

#include "../Expansion.h"

using namespace dovetail;
using namespace dovetail::importer;

static OperatorExpansion gelu("com.microsoft", "Gelu", [](Expansion &node) {
  node.setResult("Y", node.add("Gelu", {"X"}));
  return llvm::success();
});

static OperatorExpansion biasGelu("com.microsoft", "BiasGelu", [](Expansion &node) {
  node.setResult("C", node.add("Gelu", {node.add("Add", {"A", "B"})}));
  return llvm::success();
});

static OperatorExpansion fastGelu("com.microsoft", "FastGelu", [](Expansion &node) {
  std::string value = node.hasOperand("bias") ? node.add("Add", {"X", "bias"}) : "X";
  node.setResult("Y", node.add("Gelu", {value}, {{"approximate", "tanh"}}));
  return llvm::success();
});

/// x / (1 + exp(-alpha x)).
static OperatorExpansion quickGelu("com.microsoft", "QuickGelu", [](Expansion &node) {
  node.setResult("Y", node.add("Swish", {"X"}, {{"alpha", node.getFloat("alpha")}}));
  return llvm::success();
});
