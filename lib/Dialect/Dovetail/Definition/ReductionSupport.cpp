//===- ReductionSupport.cpp - What operations that reduce share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what reductions share: accumulators, reads along axes, and parts.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"
#include "ScalarSupport.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace dovetail;

Type dovetail::getProductType(Type lhs, Type rhs) {
  if (lhs.isInteger(8) && rhs.isInteger(8))
    return IntegerType::get(lhs.getContext(), 32);
  return lhs == rhs ? lhs : Type();
}

Value dovetail::emitLowestFinite(ElementBuilder &builder, FloatType type) {
  return builder.create<arith::ConstantOp>(
      FloatAttr::get(type, APFloat::getLargest(type.getFloatSemantics(), /*Negative=*/true)));
}

Value dovetail::widen(ElementBuilder &builder, Value scalar, Type type) {
  auto floatType = dyn_cast<FloatType>(type);
  return floatType ? builder.convertFloat(scalar, floatType) : scalar;
}

Value dovetail::narrow(ElementBuilder &builder, Value accumulator, Type elementType) {
  return widen(builder, accumulator, elementType);
}

Value dovetail::emitReductionInit(ElementBuilder &builder, ReduceKind kind, Type elementType) {
  switch (kind) {
  case ReduceKind::Sum:
    return builder.zero(getAccumulatorType(elementType));
  case ReduceKind::Prod:
    return builder.constantInt(getAccumulatorType(elementType), 1);
  case ReduceKind::Max:
    return builder.lowest(elementType);
  case ReduceKind::Min:
    return builder.highest(elementType);
  case ReduceKind::Owner:
    break;
  }
  llvm_unreachable("no kind of accumulator");
}

Value dovetail::emitReductionTerm(ElementBuilder &builder, ReduceKind kind, Type elementType, Value element) {
  bool accumulates = kind == ReduceKind::Sum || kind == ReduceKind::Prod;
  return accumulates ? widen(builder, element, getAccumulatorType(elementType)) : element;
}

/// The larger or smaller of two numbers; one that is not a number wins. Of zeros of both signs it is either: to order
/// them takes twice as many instructions for each term.
template <typename OpT> static Value emitExtreme(ElementBuilder &builder, Value a, Value b) {
  return builder.create<OpT>(a, b, arith::FastMathFlags::nsz);
}

Value dovetail::emitReductionCombine(ElementBuilder &builder, ReduceKind kind, bool isUnsigned, Value a, Value b) {
  switch (kind) {
  case ReduceKind::Sum:
    return builder.add(a, b);
  case ReduceKind::Prod:
    return builder.mul(a, b);
  case ReduceKind::Max:
    return isa<FloatType>(a.getType()) ? emitExtreme<arith::MaximumFOp>(builder, a, b) : builder.max(a, b, isUnsigned);
  case ReduceKind::Min:
    return isa<FloatType>(a.getType()) ? emitExtreme<arith::MinimumFOp>(builder, a, b) : builder.min(a, b, isUnsigned);
  case ReduceKind::Owner:
    break;
  }
  llvm_unreachable("no kind of accumulator");
}

Value dovetail::countToFloat(ElementBuilder &builder, Value count, Type type) {
  Value integer = builder.create<arith::IndexCastOp>(builder.getBuilder().getI64Type(), count);
  return builder.create<arith::SIToFPOp>(type, integer);
}

void dovetail::addReducedRead(Definition &definition, RankedTensorType operand, ArrayRef<int64_t> axes,
                              ReduceKind kind) {
  SmallVector<layout::AccessDim> dims;
  for (int64_t dim = 0; dim < operand.getRank(); ++dim)
    dims.push_back(Definition::at(dim));
  for (int64_t axis : axes) {
    definition.loops[axis] = {1, LoopKind::Whole};
    dims[axis] = definition.addLoop(operand.getDimSize(axis), LoopKind::Reduction, kind);
  }
  definition.addRead(0) = std::move(dims);
}

SmallVector<int64_t> dovetail::getPartEnds(ArrayRef<int64_t> restarts, int64_t extent) {
  SmallVector<int64_t> ends = {0};
  llvm::append_range(ends, restarts);
  ends.push_back(extent);
  return ends;
}

LogicalResult dovetail::verifyRestarts(std::optional<Location> location, StringRef opName, ArrayRef<int64_t> restarts,
                                       int64_t extent) {
  int64_t last = 0;
  for (int64_t position : restarts) {
    if (position <= last || position >= extent)
      return emitOptionalError(location, "'", opName, "' op begins anew at ", position, ", which is not between ", last,
                               " and the end, ", extent);
    last = position;
  }
  return success();
}

LogicalResult dovetail::verifyAxes(std::optional<Location> location, StringRef opName, ArrayRef<int64_t> axes,
                                   int64_t rank) {
  int64_t before = -1;
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= rank)
      return emitOptionalError(location, "'", opName, "' op has axis ", axis, ", but its operand has rank ", rank);
    if (axis <= before)
      return emitOptionalError(location, "'", opName, "' op has axes that are not sorted and unique: ", axis,
                               " follows ", before);
    before = axis;
  }
  return success();
}
