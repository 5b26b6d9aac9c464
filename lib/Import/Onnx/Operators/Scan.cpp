//===- Scan.cpp - Running sums --------------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/ScanOps.h"

using namespace dovetail;
using namespace dovetail::importer;

static llvm::LogicalResult importScan(OnnxNode &node, ReduceKind kind) {
  auto axes = node.getConstantInts(1, "axis");
  if (failed(axes))
    return llvm::failure();
  if (axes->size() != 1)
    return node.invalid("'axis' is not a single number");
  auto axis = node.normalizeAxis(axes->front(), node.getRank(node.getInput(0)));
  if (failed(axis))
    return llvm::failure();
  return node.setResult(node.create<ScanOp>(node.getInput(0), OptionalOperand(), kind, *axis,
                                            node.getInt("exclusive", 0) != 0, node.getInt("reverse", 0) != 0,
                                            llvm::ArrayRef<int64_t>()));
}

static OperatorImport cumSum("CumSum", [](OnnxNode &node) { return importScan(node, ReduceKind::Sum); });
static OperatorImport cumProd("CumProd", [](OnnxNode &node) { return importScan(node, ReduceKind::Prod); });
