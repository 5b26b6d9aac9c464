//===- ReductionSupport.cpp - What operations that reduce share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines accumulator types and the fold that defines an element of a reduction.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"
#include "ScalarSupport.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace dovetail;

Type dovetail::getAccumulatorType(Type elementType) {
  return isa<FloatType>(elementType) ? scalar::wideType(elementType) : ElementBuilder::scalarType(elementType);
}

Value dovetail::widen(ElementBuilder &builder, Value scalar, Type type) {
  auto floatType = dyn_cast<FloatType>(type);
  return floatType ? builder.convertFloat(scalar, floatType) : scalar;
}

Value dovetail::narrow(ElementBuilder &builder, Value accumulator, Type elementType) {
  return widen(builder, accumulator, elementType);
}

Value dovetail::countToFloat(ElementBuilder &builder, Value count, Type type) {
  Value integer = builder.create<arith::IndexCastOp>(builder.getBuilder().getI64Type(), count);
  return builder.create<arith::SIToFPOp>(type, integer);
}

namespace {
/// Emits the loops of a reduction, outermost first.
struct TermFold {
  ReductionOpInterface op;
  ElementBuilder &builder;
  ElementSource &elements;
  unsigned numLoops;
  SmallVector<Value> coordinates;

  Value emit() {
    if (coordinates.size() == numLoops)
      return op.emitTerm(builder, coordinates, elements);
    auto [lo, hi] = elements.getLoopRange(coordinates.size());
    return builder
        .forLoop(lo, hi, op.emitInit(builder),
                 [&](Value iv, ValueRange carried) -> SmallVector<Value> {
                   coordinates.push_back(iv);
                   Value term = emit();
                   coordinates.pop_back();
                   return {op.emitCombine(builder, carried.front(), term)};
                 })
        .front();
  }
};
} // namespace

Value dovetail::foldTerms(ReductionOpInterface op, ElementBuilder &builder, ArrayRef<Value> index,
                          ElementSource &elements, unsigned numReductionLoops) {
  TermFold fold{op, builder, elements, static_cast<unsigned>(index.size()) + numReductionLoops,
                SmallVector<Value>(index)};
  return narrow(builder, fold.emit(), getElementTypeOrSelf(op->getResult(0).getType()));
}

Value dovetail::sumElements(ElementBuilder &builder, ElementSource &elements, ArrayRef<Value> coordinates,
                            ArrayRef<DimRange> ranges, Type type, function_ref<Value(Value)> term) {
  if (ranges.empty())
    return term(widen(builder, elements.read(0, coordinates), type));
  const DimRange &range = ranges.front();
  return builder
      .forLoop(range.lo, range.hi, builder.zero(type),
               [&](Value iv, ValueRange carried) -> SmallVector<Value> {
                 SmallVector<Value> inner(coordinates);
                 inner[range.dim] = iv;
                 Value sum = sumElements(builder, elements, inner, ranges.drop_front(), type, term);
                 return {builder.add(carried.front(), sum)};
               })
      .front();
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
