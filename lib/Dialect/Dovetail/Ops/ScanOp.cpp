//===- ScanOp.cpp - Running sums ------------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.scan`, and `dovetail.reduce_parts`, with which it is split.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "Restarts.h"
#include "dovetail/Dialect/Dovetail/Ops/ScanOps.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

/// Checks what both operations have.
static LogicalResult verifyParts(std::optional<Location> location, StringRef name, RankedTensorType operand,
                                 ReduceKind kind, int64_t axis, ArrayRef<int64_t> restarts) {
  auto fail = [&](const Twine &why) { return emitOptionalError(location, "'", name, "' op ", why); };
  if (axis < 0 || axis >= operand.getRank())
    return emitOptionalError(location, "'", name, "' op has axis ", axis, ", which ", operand, " does not have");
  if (kind == ReduceKind::Owner)
    return fail("cannot have kind " + stringifyReduceKind(kind));
  if (operand.getElementType().isInteger(1) && (kind == ReduceKind::Sum || kind == ReduceKind::Prod))
    return fail("of kind " + stringifyReduceKind(kind) + " needs numbers, but has elements of i1");
  return verifyRestarts(location, name, restarts, operand.getDimSize(axis));
}

/// `operand` with an element for each part, an accumulator.
static RankedTensorType getTypeOfParts(RankedTensorType operand, ReduceKind kind, int64_t axis, int64_t numParts) {
  SmallVector<int64_t> shape(operand.getShape());
  shape[axis] = numParts;
  Type type = operand.getElementType();
  bool isWider = isa<FloatType>(type) && (kind == ReduceKind::Sum || kind == ReduceKind::Prod);
  return RankedTensorType::get(shape, isWider ? getAccumulatorType(type) : type);
}

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> ScanOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  int64_t axis = adaptor.getAxis();
  if (failed(verifyParts(location, getOperationName(), operand, adaptor.getKind(), axis, adaptor.getRestarts())))
    return failure();
  if (Value start = adaptor.getStart()) {
    RankedTensorType expected = getTypeOfParts(operand, adaptor.getKind(), axis, adaptor.getRestarts().size() + 1);
    if (!equalUpToSharding(start.getType(), expected))
      return emitOptionalError(location, "'", getOperationName(), "' op starts from ", start.getType(),
                               ", but its parts need ", expected);
  }
  return RankedTensorType::get(operand.getShape(), operand.getElementType());
}

Definition ScanOp::getDefinition() {
  Definition definition = Definition::over(getType());
  for (unsigned operand = 0; operand < getNumOperands(); ++operand) {
    SmallVector<layout::AccessDim> &dims = definition.addRead(operand);
    for (unsigned dim = 0; dim < definition.resultRank; ++dim)
      dims.push_back(Definition::at(dim));
  }
  unsigned axis = getAxis();
  Scan scan{axis, getPartEnds(getRestarts(), getType().getDimSize(axis)), getReverse(), getExclusive()};
  if (getStart()) {
    definition.reads[1].dims[axis] = IndexExpr::unknown(0);
    scan.start = 1;
  }
  definition.setScan(std::move(scan));
  return definition;
}

SmallVector<Value> ScanOp::emitInit(ElementBuilder &builder) {
  return {emitReductionInit(builder, getKind(), getType().getElementType())};
}

SmallVector<Value> ScanOp::emitBody(BodyBuilder &body) {
  return {emitReductionTerm(body.elements, getKind(), getType().getElementType(), body.read(0))};
}

SmallVector<Value> ScanOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  return {emitReductionCombine(builder, getKind(), isUnsignedElement(getType()), accumulators.front(), term.front())};
}

FailureOr<SmallVector<Value>> ScanOp::decompose(OpBuilder &builder, ArrayRef<DimShardingAttr> loops) {
  unsigned axis = getAxis();
  if (loops.empty() || getStart() || !getRestarts().empty())
    return failure();
  std::optional<SmallVector<int64_t>> cuts = dovetail::getRestarts(loops[axis], getType().getDimSize(axis));
  if (!cuts)
    return failure();
  Value totals = ReducePartsOp::create(builder, getLoc(), getOperand(), getKind(), axis, *cuts);
  Value starts = ScanOp::create(builder, getLoc(), totals, Value(), getKind(), axis, /*exclusive=*/true, getReverse(),
                                ArrayRef<int64_t>());
  Value result =
      ScanOp::create(builder, getLoc(), getOperand(), starts, getKind(), axis, getExclusive(), getReverse(), *cuts);
  return SmallVector<Value>{result};
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

FailureOr<RankedTensorType> ReducePartsOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  int64_t axis = adaptor.getAxis();
  if (failed(verifyParts(location, getOperationName(), operand, adaptor.getKind(), axis, adaptor.getRestarts())))
    return failure();
  return getTypeOfParts(operand, adaptor.getKind(), axis, adaptor.getRestarts().size() + 1);
}

Definition ReducePartsOp::getDefinition() {
  Definition definition = Definition::over(getType());
  definition.isFold = true;
  SmallVector<layout::AccessDim> dims;
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    dims.push_back(Definition::at(dim));
  unsigned axis = getAxis();
  dims[axis] = definition.addPartLoop(axis, getPartEnds(getRestarts(), getOperand().getType().getDimSize(axis)), 0);
  definition.addRead(0) = std::move(dims);
  return definition;
}

SmallVector<Value> ReducePartsOp::emitInit(ElementBuilder &builder) {
  return {emitReductionInit(builder, getKind(), getOperand().getType().getElementType())};
}

SmallVector<Value> ReducePartsOp::emitBody(BodyBuilder &body) {
  Value element = body.read(0, body.getLoop(getType().getRank()));
  return {emitReductionTerm(body.elements, getKind(), getOperand().getType().getElementType(), element)};
}

SmallVector<Value> ReducePartsOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  return {emitReductionCombine(builder, getKind(), isUnsignedElement(getOperand().getType()), accumulators.front(),
                               term.front())};
}
