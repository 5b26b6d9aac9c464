//===- SumExpOp.cpp - Maximum and sum of exponentials ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.sum_exp`: the maximum is known before any exponential is taken, so that none overflows.
//
//===----------------------------------------------------------------------===//

#include "TupleFold.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace dovetail;

LogicalResult SumExpOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  return inferFloatTuple(location, getOperationName(), adaptor.getInputs(), 2, "maxima and sums", adaptor.getAxes(),
                         adaptor.getRestartsAttr(), types);
}

Definition SumExpOp::getDefinition() {
  Type type = getType().getElementType();
  return getTupleDefinition(getInputs(), getType(), getAxes(), getRestartsAttr(),
                            {{ReduceKind::Max, type}, {ReduceKind::Sum, type}});
}

/// Parts are terms.
SmallVector<Value> SumExpOp::emitBody(BodyBuilder &body) { return {body.read(0), body.read(1)}; }

SmallVector<Value> SumExpOp::emitInit(ElementBuilder &builder) {
  Type type = getType().getElementType();
  return {builder.lowest(type), builder.zero(type)};
}

SmallVector<Value> SumExpOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  Value most = builder.max(accumulators[0], term[0]);
  // Two times minus infinity, the difference is not a number.
  auto scale = [&](ValueRange values) {
    Value isEmpty = builder.compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, values[1],
                                    builder.zero(values[1].getType()));
    Value factor = builder.create<math::ExpOp>(builder.sub(values[0], most));
    return builder.select(isEmpty, values[1], builder.mul(values[1], factor));
  };
  return {most, builder.add(scale(accumulators), scale(term))};
}

Value SumExpOp::emitPass(BodyBuilder &body, unsigned pass, ValueRange found) {
  ElementBuilder &builder = body.elements;
  Type type = getType().getElementType();
  Value element = widen(builder, readTerm(body), type);
  if (pass == 0)
    return element;
  // A part of nothing but minus infinity, such as a mask makes, adds nothing to the others.
  Value isNone = builder.compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, found[0], builder.lowest(type));
  Value shift = builder.select(isNone, builder.zero(type), found[0]);
  return builder.create<math::ExpOp>(builder.sub(element, shift));
}

SmallVector<Value> SumExpOp::combineParts(OpBuilder &builder, ValueRange parts, int64_t dim) {
  return SumExpOp::create(builder, getLoc(), parts, dim, /*restarts=*/ArrayAttr()).getResults();
}

FailureOr<SmallVector<Value>> SumExpOp::decompose(OpBuilder &builder, ArrayRef<DimShardingAttr> loops) {
  return decomposeTuple(builder, getInputs(), getAxes(), getRestartsAttr(), loops,
                        [&](ValueRange inputs, ArrayRef<int64_t> axes, ArrayAttr restarts) -> ValueRange {
                          return SumExpOp::create(builder, getLoc(), inputs, axes, restarts).getResults();
                        });
}
