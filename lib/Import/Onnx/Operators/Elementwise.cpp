//===- Elementwise.cpp - Import of elementwise operators -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Elementwise operators that the dialect does not have under their ONNX name and form.
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

/// Folds the variadic operands with a binary operation.
template <typename OpT> static mlir::Value combine(OnnxNode &node) {
  mlir::Value result = node.getInput(0);
  for (mlir::Value input : node.getInputs().drop_front())
    result = node.create<OpT>(result, input);
  return result;
}

template <typename OpT> static llvm::LogicalResult importVariadic(OnnxNode &node) {
  return node.setResult(combine<OpT>(node));
}
static OperatorImport sum("Sum", importVariadic<AddOp>);
static OperatorImport max("Max", importVariadic<MaxOp>);
static OperatorImport min("Min", importVariadic<MinOp>);

static OperatorImport mean("Mean", [](OnnxNode &node) {
  mlir::Value total = combine<AddOp>(node);
  return node.setResult(node.create<MulOp>(total, node.scalarLike(total, 1.0 / node.getNumInputs())));
});

static OperatorImport clip("Clip", [](OnnxNode &node) {
  mlir::Value value = node.getInput(0), low, high;
  if (node.getOpset() < 11) {
    if (node.hasAttr("min"))
      low = node.scalarLike(value, node.getFloat("min", 0));
    if (node.hasAttr("max"))
      high = node.scalarLike(value, node.getFloat("max", 0));
  } else {
    low = node.getInput(1);
    high = node.getInput(2);
  }
  // In this order `max` wins where min > max, as ONNX says.
  if (low)
    value = node.create<MaxOp>(value, node.reshape(low, {}));
  if (high)
    value = node.create<MinOp>(value, node.reshape(high, {}));
  return node.setResult(value);
});

static OperatorImport prelu("PRelu", [](OnnxNode &node) {
  mlir::Value value = node.getInput(0);
  mlir::Value result = node.create<PReluOp>(value, node.getInput(1));
  if (result && node.getShape(result) != node.getShape(value))
    return node.invalid("the slope does not broadcast to the operand");
  return node.setResult(result);
});

/// The operand as elements of `type`. The attributes matter for 8-bit floats alone.
static llvm::LogicalResult convert(OnnxNode &node, mlir::Type type) {
  mlir::Value value = node.getInput(0);
  if (!isNarrow(type))
    return node.setResult(node.cast(value, type));
  return node.setResult(node.narrow(value, type, node.getInt("saturate", 1) != 0, node.getString("round_mode", "up")));
}

static OperatorImport castTo("Cast", [](OnnxNode &node) {
  mlir::Type type = convertElementType(node.getInt("to", 0), node.getBuilder().getContext());
  if (!type)
    return node.unsupported(OnnxNode::describeUnsupportedElements(node.getInt("to", 0)));
  return convert(node, type);
});

static OperatorImport bitCast("BitCast", [](OnnxNode &node) {
  mlir::Type type = convertElementType(node.getInt("to", 0), node.getBuilder().getContext());
  if (!type)
    return node.unsupported(OnnxNode::describeUnsupportedElements(node.getInt("to", 0)));
  return node.setResult(node.create<BitCastOp>(node.getInput(0), type));
});

static OperatorImport castLike("CastLike", [](OnnxNode &node) {
  return convert(node, node.getType(node.getInput(1)).getElementType());
});

/// A predicate of floats: 8-bit floats have it as f32.
template <typename OpT, typename... Args> static llvm::LogicalResult importPredicate(OnnxNode &node, Args... args) {
  mlir::Value value = node.getInput(0);
  if (isNarrow(node.getType(value).getElementType()))
    value = node.create<WidenOp>(value);
  return node.setResult(node.create<OpT>(value, args...));
}
static OperatorImport isNaN("IsNaN", importPredicate<IsNaNOp>);
static OperatorImport isInf("IsInf", [](OnnxNode &node) {
  return importPredicate<IsInfOp>(node, node.getInt("detect_negative", 1), node.getInt("detect_positive", 1));
});
