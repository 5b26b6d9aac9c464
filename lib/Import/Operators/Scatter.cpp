//===- Scatter.cpp - Placing elements where data say ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/SelectionOps.h"

#include "llvm/ADT/StringSwitch.h"

using namespace dovetail;
using namespace dovetail::importer;

/// How an update and what is there combine; null if the update replaces it.
static llvm::FailureOr<ReduceKindAttr> readReduction(OnnxNode &node) {
  llvm::StringRef name = node.getString("reduction", "none");
  if (name == "none")
    return ReduceKindAttr();
  auto kind = llvm::StringSwitch<std::optional<ReduceKind>>(name)
                  .Case("add", ReduceKind::Sum)
                  .Case("mul", ReduceKind::Prod)
                  .Case("max", ReduceKind::Max)
                  .Case("min", ReduceKind::Min)
                  .Default(std::nullopt);
  if (!kind)
    return node.invalid("'reduction' is '" + name + "', which is none of none, add, mul, max and min");
  return ReduceKindAttr::get(node.getBuilder().getContext(), *kind);
}

static llvm::LogicalResult importScatterElements(OnnxNode &node) {
  auto reduction = readReduction(node);
  auto axis = node.normalizeAxis(node.getInt("axis", 0), node.getRank(node.getInput(0)));
  if (failed(reduction) || failed(axis))
    return llvm::failure();
  return node.setResult(
      node.create<ScatterElementsOp>(node.getInput(0), node.getInput(1), node.getInput(2), *axis, *reduction));
}

static OperatorImport scatter("Scatter", importScatterElements);
static OperatorImport scatterElements("ScatterElements", importScatterElements);

static OperatorImport scatterND("ScatterND", [](OnnxNode &node) -> llvm::LogicalResult {
  auto reduction = readReduction(node);
  if (failed(reduction))
    return llvm::failure();
  return node.setResult(node.create<ScatterNDOp>(node.getInput(0), node.getInput(1), node.getInput(2), *reduction));
});
