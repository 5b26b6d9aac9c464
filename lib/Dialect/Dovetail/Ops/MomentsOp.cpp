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

OpRelation MomentsOp::getRelation() {
  RankedTensorType operand = getOperand().getType();
  OpRelation relation;
  SmallVector<DimRelation> &dims = relation.operands.emplace_back();
  for (auto [dim, extent] : llvm::enumerate(operand.getShape())) {
    relation.loops.push_back({extent});
    dims.push_back(DimRelation::identity(dim));
  }
  relation.loops.push_back({3, LoopKind::Whole});
  for (int64_t axis : getAxes()) {
    relation.loops[axis] = {1, LoopKind::Whole};
    dims[axis] = DimRelation::identity(relation.loops.size());
    relation.loops.push_back({operand.getDimSize(axis), LoopKind::Reduction, ReduceKind::Moments});
  }
  return relation;
}

bool MomentsOp::isCheapElement() { return false; }

Value MomentsOp::emitElement(ElementBuilder &builder, ArrayRef<Value> index, ElementSource &elements) {
  Type type = getType().getElementType();
  SmallVector<DimRange> ranges;
  Value numElements = builder.index(1);
  for (auto [i, axis] : llvm::enumerate(getAxes())) {
    auto [lo, hi] = elements.getLoopRange(getType().getRank() + i);
    ranges.push_back({axis, lo, hi});
    numElements = builder.create<arith::MulIOp>(numElements, builder.subI(hi, lo));
  }
  Value which = index.back();
  auto isWhich = [&](int64_t i) { return builder.compareI(arith::CmpIPredicate::eq, which, builder.index(i)); };
  auto sum = [&](function_ref<Value(Value)> term) {
    return sumElements(builder, elements, index.drop_back(), ranges, type, term);
  };

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
  return builder.ifElse(isWhich(0), type, emitCount,
                        [&] { return builder.ifElse(isWhich(1), type, emitMean, emitDeviations); });
}
