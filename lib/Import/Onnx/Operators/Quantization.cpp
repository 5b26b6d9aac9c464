//===- Quantization.cpp - Import of quantisation -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Quantised operators, in terms of integer and floating-point arithmetic.
//
//===----------------------------------------------------------------------===//

#include "../../Build/Contractions.h"
#include "Convolution.h"
#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

#include "llvm/ADT/APInt.h"

using namespace dovetail;
using namespace dovetail::importer;

/// A scale or zero point so shaped that it broadcasts to `data`: one number, one for each index of `axis`, or one for
/// each block of `blockSize` indices.
static mlir::Value alignParameter(OnnxNode &node, mlir::Value parameter, mlir::Value data, int64_t axis,
                                  int64_t blockSize) {
  if (!parameter || !data)
    return {};
  llvm::ArrayRef<int64_t> shape = node.getShape(data), own = node.getShape(parameter);
  if (node.getType(parameter).getNumElements() == 1 && own.size() <= 1)
    return node.reshape(parameter, {});
  auto normalized = node.normalizeAxis(axis, shape.size());
  if (failed(normalized))
    return {};
  axis = *normalized;
  auto fail = [&](const llvm::Twine &message) {
    (void)node.invalid(message);
    return mlir::Value();
  };
  if (own.size() == 1 && blockSize == 0) {
    if (own[0] != shape[axis])
      return fail("scale and zero point must have one element for each of the " + llvm::Twine(shape[axis]) +
                  " indices of axis " + llvm::Twine(axis));
    llvm::SmallVector<int64_t> aligned(shape.size(), 1);
    aligned[axis] = own[0];
    return node.reshape(parameter, aligned);
  }
  llvm::SmallVector<int64_t> blocks(shape);
  if (blockSize > 0)
    blocks[axis] = llvm::divideCeil(shape[axis], blockSize);
  if (blockSize < 1 || own != llvm::ArrayRef<int64_t>(blocks))
    return fail("scale and zero point have neither one element for each index of an axis nor, with 'block_size', one "
                "for each block");
  // Each block's number is repeated; the last block may be cut off.
  llvm::SmallVector<int64_t> split(blocks), repeated, starts(shape.size(), 0), steps(shape.size(), 1);
  split.insert(split.begin() + axis + 1, 1);
  repeated = split;
  repeated[axis + 1] = blockSize;
  blocks[axis] *= blockSize;
  mlir::Value value = node.broadcast(node.reshape(parameter, split), repeated);
  return node.slice(node.reshape(value, blocks), starts, shape, steps);
}

/// `value - zeroPoint` in i32; `zeroPoint` broadcasts to it, or is null.
static mlir::Value subtractZeroPoint(OnnxNode &node, mlir::Value value, OptionalOperand zeroPoint) {
  mlir::Type i32 = node.getBuilder().getI32Type();
  value = node.cast(value, i32);
  return zeroPoint.value ? node.create<SubOp>(value, node.cast(zeroPoint.value, i32)) : value;
}

/// `value`, a number of quantisation steps, rounded to even, shifted by the zero point, and clamped to `type`.
static mlir::Value saturate(OnnxNode &node, mlir::Value value, OptionalOperand zeroPoint, mlir::Type type) {
  // Zero points and bounds are exact in f32.
  mlir::Type f32 = node.getBuilder().getF32Type();
  value = node.create<RoundOp>(node.cast(value, f32));
  if (zeroPoint.value)
    value = node.create<AddOp>(value, node.cast(zeroPoint.value, f32));
  unsigned width = type.getIntOrFloatBitWidth();
  bool isUnsigned = type.isUnsignedInteger();
  double low = isUnsigned ? 0 : llvm::APInt::getSignedMinValue(width).signedRoundToDouble();
  double high = (isUnsigned ? llvm::APInt::getMaxValue(width) : llvm::APInt::getSignedMaxValue(width)).roundToDouble();
  value = node.create<MaxOp>(value, node.scalarLike(value, low));
  return node.cast(node.create<MinOp>(value, node.scalarLike(value, high)), type);
}

/// True for the integers that values are quantised to.
static bool isQuantizedInteger(mlir::Type type) {
  return type.isInteger(8) || type.isInteger(16) || type.isInteger(4) || type.isInteger(2);
}

/// True for the floats that values are quantised to.
static bool isQuantizedFloat(mlir::Type type) {
  return llvm::isa<mlir::FloatType>(type) && isNarrow(type) && !llvm::isa<mlir::Float8E8M0FNUType>(type);
}

/// `steps` and, where there is one, the zero point, as elements of `type`, a float of at most 8 bits.
static mlir::Value quantizeToFloat(OnnxNode &node, mlir::Value steps, mlir::Value zeroPoint, mlir::Type type) {
  if (zeroPoint && !llvm::isa<mlir::Float4E2M1FNType>(type)) {
    // Nothing but zero is in use, and a zero keeps its sign: -(-x - 0) is x.
    zeroPoint = node.cast(zeroPoint, node.getType(steps).getElementType());
    steps = node.create<NegOp>(node.create<SubOp>(node.create<NegOp>(steps), zeroPoint));
  } else if (zeroPoint) {
    steps = node.create<AddOp>(steps, node.cast(zeroPoint, node.getType(steps).getElementType()));
  }
  return node.narrow(steps, type, node.getInt("saturate", 1) != 0);
}

static OperatorImport quantizeLinear("QuantizeLinear", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  mlir::MLIRContext *context = node.getBuilder().getContext();
  mlir::Type type = node.getBuilder().getIntegerType(8, /*isSigned=*/false);
  if (node.hasInput(2))
    type = node.getType(node.getInput(2)).getElementType();
  else if (int64_t given = node.getInt("output_dtype", 0))
    type = convertElementType(given, context);
  if (!type || !(isQuantizedInteger(type) || isQuantizedFloat(type)))
    return node.unsupported("quantisation to this type is not supported; use integers of 2 to 16 bits, floats of 4 "
                            "bits, or floats of 8 bits except FLOAT8E8M0");
  int64_t axis = node.getInt("axis", 1), blockSize = node.getInt("block_size", 0);
  mlir::Type precision = node.getType(node.getInput(1)).getElementType();
  // In integers, or powers of two alone, nothing can be divided.
  if (precision.isInteger() || isNarrow(precision))
    precision = node.getBuilder().getF32Type();
  if (int64_t given = node.getInt("precision", 0))
    precision = convertElementType(given, context);
  if (!llvm::isa_and_present<mlir::FloatType>(precision) || isNarrow(precision))
    return node.invalid("'precision' is not a type of floats that can be divided");
  mlir::Value scale = alignParameter(node, node.cast(node.getInput(1), precision), input, axis, blockSize), zeroPoint;
  if (node.hasInput(2) && !(zeroPoint = alignParameter(node, node.getInput(2), input, axis, blockSize)))
    return llvm::failure();
  mlir::Value steps = node.create<DivOp>(node.cast(input, precision), scale);
  return node.setResult(isQuantizedFloat(type) ? quantizeToFloat(node, steps, zeroPoint, type)
                                               : saturate(node, steps, {zeroPoint}, type));
});

static OperatorImport dequantizeLinear("DequantizeLinear", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  mlir::Builder &builder = node.getBuilder();
  mlir::Type type = node.getType(node.getInput(1)).getElementType();
  if (int64_t given = node.getInt("output_dtype", 0))
    type = convertElementType(given, builder.getContext());
  if (!llvm::isa_and_present<mlir::FloatType>(type) || isNarrow(type))
    return node.invalid("the result must be a float of 16 bits or more; change 'output_dtype', or the type of the "
                        "scale if it is missing");
  int64_t axis = node.getInt("axis", 1), blockSize = node.getInt("block_size", 0);
  mlir::Value scale = alignParameter(node, node.getInput(1), input, axis, blockSize), zeroPoint;
  if (node.hasInput(2) && !(zeroPoint = alignParameter(node, node.getInput(2), input, axis, blockSize)))
    return llvm::failure();
  mlir::Type f32 = builder.getF32Type();
  mlir::Value steps;
  if (llvm::isa<mlir::FloatType>(node.getType(input).getElementType())) {
    steps = node.cast(input, f32);
    if (zeroPoint)
      steps = node.create<SubOp>(steps, node.cast(zeroPoint, f32));
  } else {
    steps = node.cast(subtractZeroPoint(node, input, {zeroPoint}), f32);
  }
  return node.setResult(node.cast(node.create<MulOp>(steps, node.cast(scale, f32)), type));
});

/// A parameter of the left operand of a matrix product: one number, or one for each row.
static mlir::Value alignRows(OnnxNode &node, mlir::Value parameter) {
  if (!parameter || node.getRank(parameter) != 1)
    return parameter;
  int64_t extent = node.getShape(parameter)[0];
  return extent == 1 ? node.reshape(parameter, {}) : node.reshape(parameter, {extent, 1});
}

/// A parameter of the weights of a convolution: one number, or one for each output channel.
static mlir::Value alignFilters(OnnxNode &node, mlir::Value parameter, mlir::Value weights) {
  if (!parameter || node.getType(parameter).getNumElements() == 1)
    return parameter ? node.reshape(parameter, {}) : parameter;
  llvm::SmallVector<int64_t> shape(node.getRank(weights), 1);
  shape[0] = node.getType(parameter).getNumElements();
  return node.reshape(parameter, shape);
}

static OperatorImport matMulInteger("MatMulInteger", [](OnnxNode &node) {
  mlir::Value lhs = subtractZeroPoint(node, node.getInput(0), {alignRows(node, node.getInput(2))});
  mlir::Value rhs = subtractZeroPoint(node, node.getInput(1), {node.getInput(3)});
  return node.setResult(multiplyMatrices(node, lhs, rhs));
});

static OperatorImport convInteger("ConvInteger", [](OnnxNode &node) {
  mlir::Value weights = node.getInput(1);
  // What is padded is 0 after the zero point has been subtracted, as ONNX wants it.
  mlir::Value input = subtractZeroPoint(node, node.getInput(0), {node.getInput(2)});
  return node.setResult(
      convolve(node, input, subtractZeroPoint(node, weights, {alignFilters(node, node.getInput(3), weights)})));
});

/// An i32 accumulator in steps of the result's scale: what one step of it is worth is the product of the operands'.
static mlir::Value rescale(OnnxNode &node, mlir::Value accumulator, mlir::Value lhsScale, mlir::Value rhsScale,
                           mlir::Value scale) {
  mlir::Type f32 = node.getBuilder().getF32Type();
  mlir::Value factor = node.create<MulOp>(node.cast(lhsScale, f32), node.cast(rhsScale, f32));
  return node.create<MulOp>(node.cast(accumulator, f32), node.create<DivOp>(factor, node.cast(scale, f32)));
}

// Operands of both: data, scale and zero point of the left, of the right, and scale and zero point of the result.

static OperatorImport qlinearMatMul("QLinearMatMul", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Type type = node.getType(node.getInput(7)).getElementType();
  if (!type.isInteger(8) && !type.isInteger(16))
    return node.unsupported("quantisation to this type is not supported; use integers of 8 or 16 bits");
  mlir::Value lhs = subtractZeroPoint(node, node.getInput(0), {alignRows(node, node.getInput(2))});
  mlir::Value rhs = subtractZeroPoint(node, node.getInput(3), {node.getInput(5)});
  mlir::Value steps = rescale(node, multiplyMatrices(node, lhs, rhs), alignRows(node, node.getInput(1)),
                              node.getInput(4), alignRows(node, node.getInput(6)));
  return node.setResult(saturate(node, steps, {alignRows(node, node.getInput(7))}, type));
});

static OperatorImport qlinearConv("QLinearConv", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Type type = node.getType(node.getInput(7)).getElementType();
  mlir::Value weights = node.getInput(3), bias = node.getInput(8);
  mlir::Value input = subtractZeroPoint(node, node.getInput(0), {node.getInput(2)});
  mlir::Value filters = subtractZeroPoint(node, weights, {alignFilters(node, node.getInput(5), weights)});
  mlir::Value sum = convolve(node, input, filters);
  if (!sum)
    return llvm::failure();
  int64_t rank = node.getRank(sum);
  if (bias)
    sum = node.create<AddOp>(sum, node.perChannel(bias, rank));
  mlir::Value filterScale = node.getInput(4);
  if (node.getType(filterScale).getNumElements() != 1)
    filterScale = node.perChannel(filterScale, rank);
  mlir::Value steps = rescale(node, sum, node.getInput(1), filterScale, node.getInput(6));
  return node.setResult(saturate(node, steps, {node.getInput(7)}, type));
});
