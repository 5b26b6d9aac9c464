//===- MomentsOp.cpp - Count, mean and squared deviations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.moments`.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"

using namespace mlir;
using namespace dovetail;

FailureOr<RankedTensorType> MomentsOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto operand = cast<RankedTensorType>(adaptor.getOperand().getType());
  if (!isa<FloatType>(operand.getElementType()))
    return emitOptionalError(location, "'", getOperationName(), "' op needs floats, but has elements of ",
                             operand.getElementType());
  if (failed(verifyAxes(location, getOperationName(), adaptor.getAxes(), operand.getRank())))
    return failure();
  SmallVector<int64_t> shape(operand.getShape());
  for (int64_t axis : adaptor.getAxes())
    shape[axis] = 1;
  shape.push_back(3);
  // Counts and squares need more range than 16-bit floats have.
  return RankedTensorType::get(shape, getAccumulatorType(operand.getElementType()));
}

Definition MomentsOp::getDefinition() {
  Definition definition = Definition::over(getType());
  definition.loops.back().kind = LoopKind::Whole;
  addReducedRead(definition, getOperand().getType(), getAxes(), ReduceKind::Moments);
  return definition;
}

bool MomentsOp::isCheapElement() { return false; }

SmallVector<Value> MomentsOp::emitBody(BodyBuilder &body) {
  ElementBuilder &builder = body.elements;
  Type type = getType().getElementType();
  SmallVector<LoopRange> ranges;
  Value numElements = builder.index(1);
  for (unsigned loop = getType().getRank(); loop < body.getDefinition().loops.size(); ++loop) {
    auto [lo, hi] = body.getRange(loop);
    ranges.push_back({loop, lo, hi});
    numElements = builder.create<arith::MulIOp>(numElements, builder.subI(hi, lo));
  }
  Value which = body.getLoop(getType().getRank() - 1);
  auto isWhich = [&](int64_t i) { return builder.compareI(arith::CmpIPredicate::eq, which, builder.index(i)); };
  auto sum = [&](function_ref<Value(Value)> term) { return sumElements(body, 0, ranges, type, term); };

  auto emitCount = [&] { return countToFloat(builder, numElements, type); };
  auto emitMean = [&] {
    // A rank without elements contributes (0, 0, 0).
    Value divisor = countToFloat(builder, builder.maxI(numElements, builder.index(1)), type);
    return builder.div(sum([](Value x) { return x; }), divisor);
  };
  auto emitDeviations = [&] {
    Value mean = emitMean();
    return sum([&](Value x) {
      Value deviation = builder.sub(x, mean);
      return builder.mul(deviation, deviation);
    });
  };
  return {builder.ifElse(isWhich(0), type, emitCount,
                         [&] { return builder.ifElse(isWhich(1), type, emitMean, emitDeviations); })};
}
