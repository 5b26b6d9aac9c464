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

#include "ReductionSupport.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

/// Checks what both operations have.
static LogicalResult verifyParts(std::optional<Location> location, StringRef name, RankedTensorType operand,
                                 ReduceKind kind, int64_t axis, ArrayRef<int64_t> restarts) {
  auto fail = [&](const Twine &why) { return emitOptionalError(location, "'", name, "' op ", why); };
  if (axis < 0 || axis >= operand.getRank())
    return emitOptionalError(location, "'", name, "' op has axis ", axis, ", which ", operand, " does not have");
  if (kind == ReduceKind::Moments || kind == ReduceKind::Owner)
    return fail("cannot have kind " + stringifyReduceKind(kind));
  if (operand.getElementType().isInteger(1) && (kind == ReduceKind::Sum || kind == ReduceKind::Prod))
    return fail("of kind " + stringifyReduceKind(kind) + " needs numbers, but has elements of i1");
  int64_t last = 0;
  for (int64_t position : restarts) {
    if (position <= last || position >= operand.getDimSize(axis))
      return fail("begins anew at " + Twine(position) + ", which is not between " + Twine(last) + " and the end, " +
                  Twine(operand.getDimSize(axis)));
    last = position;
  }
  return success();
}

/// Where parts of [0, extent) begin, and the end of the last one.
static SmallVector<int64_t> getEnds(ArrayRef<int64_t> restarts, int64_t extent) {
  SmallVector<int64_t> ends = {0};
  llvm::append_range(ends, restarts);
  ends.push_back(extent);
  return ends;
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
  Scan scan{axis, getEnds(getRestarts(), getType().getDimSize(axis)), getReverse(), getExclusive()};
  if (getStart()) {
    definition.reads[1].dims[axis] = IndexExpr::unknown(0);
    scan.start = 1;
  }
  definition.setScan(std::move(scan));
  return definition;
}

bool ScanOp::isCheapElement() { return false; }

SmallVector<Value> ScanOp::emitInit(ElementBuilder &builder) {
  return {emitReductionInit(builder, getKind(), getType().getElementType())};
}

SmallVector<Value> ScanOp::emitBody(BodyBuilder &body) {
  return {emitReductionTerm(body.elements, getKind(), getType().getElementType(), body.read(0))};
}

SmallVector<Value> ScanOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  return {emitReductionCombine(builder, getKind(), isUnsignedElement(getType()), accumulators.front(), term.front())};
}

FailureOr<Value> ScanOp::decompose(OpBuilder &builder, ArrayRef<DimShardingAttr> loops) {
  unsigned axis = getAxis();
  int64_t extent = getType().getDimSize(axis);
  if (loops.empty() || !loops[axis].coversOnce(extent) || getStart() || !getRestarts().empty())
    return failure();
  SmallVector<int64_t> cuts;
  for (unsigned i = 0; i < loops[axis].getNumPieces(); ++i)
    if (int64_t lo = loops[axis].getPiece(i).lo; lo > 0 && lo < extent)
      cuts.push_back(lo);
  llvm::sort(cuts);
  cuts.erase(llvm::unique(cuts), cuts.end());
  Value totals = ReducePartsOp::create(builder, getLoc(), getOperand(), getKind(), axis, cuts);
  Value starts = ScanOp::create(builder, getLoc(), totals, Value(), getKind(), axis, /*exclusive=*/true, getReverse(),
                                ArrayRef<int64_t>());
  return Value(
      ScanOp::create(builder, getLoc(), getOperand(), starts, getKind(), axis, getExclusive(), getReverse(), cuts));
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
  unsigned axis = getAxis();
  SmallVector<layout::AccessDim> &dims = definition.addRead(0);
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    dims.push_back(Definition::at(dim));
  SmallVector<int64_t> ends = getEnds(getRestarts(), getOperand().getType().getDimSize(axis));
  std::vector<int64_t> first(ends.begin(), ends.end() - 1), last(ends.begin() + 1, ends.end());
  for (int64_t &position : last)
    --position;
  dims[axis] = IndexExpr::unknown(0, Definition::at(axis), first, last);
  return definition;
}

bool ReducePartsOp::isCheapElement() { return false; }

SmallVector<Value> ReducePartsOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  Type elementType = getOperand().getType().getElementType();
  SmallVector<int64_t> ends = getEnds(getRestarts(), getOperand().getType().getDimSize(getAxis()));
  Value part = body.getLoop(getAxis());
  return builder.forLoop(builder.getEntry(ends, part), builder.getEntry(ends, builder.addI(part, 1)),
                         emitReductionInit(builder, getKind(), elementType),
                         [&](Value iv, ValueRange carried) -> SmallVector<Value> {
                           Value term = emitReductionTerm(builder, getKind(), elementType, body.read(0, iv));
                           return {emitReductionCombine(builder, getKind(), isUnsignedElement(getOperand().getType()),
                                                        carried.front(), term)};
                         });
}
