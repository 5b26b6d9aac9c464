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

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
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
  return builder.create<math::ExpOp>(builder.sub(element, found[0]));
}

Value SumExpOp::emitFound(ElementBuilder &builder, unsigned pass, Value folded, Value count) {
  if (pass != 0)
    return folded;
  return builder.max(folded, emitLowestFinite(builder, cast<FloatType>(folded.getType())));
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

/// The exponentials that a softmax divides by their sums are summed as they are: only for rows of nothing but minus
/// infinity, which then are not numbers, does the sum differ.
FailureOr<SmallVector<Value>> SumExpOp::expandRows(OpBuilder &builder) {
  Value input = getInputs().front();
  if (getInputs().size() != 1 || getRestartsAttr() || !getSums().hasOneUse() ||
      getElementTypeOrSelf(input) != getType().getElementType())
    return failure();
  auto inverse = dyn_cast<ReciprocalOp>(*getSums().getUsers().begin());
  auto quotient = inverse && inverse->hasOneUse() ? dyn_cast<MulOp>(*inverse->getUsers().begin()) : MulOp();
  auto exponential = quotient ? quotient.getLhs().getDefiningOp<ExpOp>() : ExpOp();
  auto difference = exponential ? exponential.getOperand().getDefiningOp<SubOp>() : SubOp();
  // Ranks must have as much of them as of what this reads.
  if (!difference || difference.getLhs() != input || difference.getRhs() != getMaxima() ||
      exponential.getType() != input.getType())
    return failure();
  auto reduce = [&](Value value, ReduceKind kind) -> Value {
    auto op = ReduceOp::create(builder, getLoc(), getMaxima().getType(), value, kind, getAxes());
    // It has the same loops, which are split alike.
    op->setDiscardableAttrs(getOperation()->getDiscardableAttrDictionary());
    return op;
  };
  Value maxima = reduce(input, ReduceKind::Max);
  builder.setInsertionPoint(quotient);
  Value sums = reduce(exponential, ReduceKind::Sum);
  inverse->moveBefore(quotient);
  return SmallVector<Value>{maxima, sums};
}
