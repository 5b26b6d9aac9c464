//===- MomentsOp.cpp - Count, mean and squared deviations -----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.moments`: a block of terms is gone through twice, first for the mean, then for deviations from it.
//
//===----------------------------------------------------------------------===//

#include "TupleFold.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

LogicalResult MomentsOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  return inferFloatTuple(location, getOperationName(), adaptor.getInputs(), 3, "counts, means and squared deviations",
                         adaptor.getAxes(), adaptor.getRestartsAttr(), types);
}

Definition MomentsOp::getDefinition() {
  return getTupleDefinition(getInputs(), getType(), getAxes(), getRestartsAttr(),
                            SmallVector<FoldPass>(2, {ReduceKind::Sum, getType().getElementType()}));
}

/// Parts are terms.
SmallVector<Value> MomentsOp::emitBody(BodyBuilder &body) { return {body.read(0), body.read(1), body.read(2)}; }

SmallVector<Value> MomentsOp::emitInit(ElementBuilder &builder) {
  return SmallVector<Value>(3, builder.zero(getType().getElementType()));
}

/// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
SmallVector<Value> MomentsOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  Value count = builder.add(accumulators[0], term[0]);
  // Without elements all is zero.
  Value weight = builder.div(term[0], builder.max(count, builder.constant(count.getType(), 1)));
  Value delta = builder.sub(term[1], accumulators[1]);
  // In this order, so that a side without elements adds zero however large the other side's mean is.
  Value between = builder.mul(delta, builder.mul(delta, builder.mul(accumulators[0], weight)));
  return {count, builder.add(accumulators[1], builder.mul(delta, weight)),
          builder.add(builder.add(accumulators[2], term[2]), between)};
}

Value MomentsOp::emitPass(BodyBuilder &body, unsigned pass, ValueRange found) {
  Value element = widen(body.elements, readTerm(body), getType().getElementType());
  if (pass == 0)
    return element;
  Value deviation = body.elements.sub(element, found[0]);
  return body.elements.mul(deviation, deviation);
}

Value MomentsOp::emitFound(ElementBuilder &builder, unsigned pass, Value folded, Value count) {
  if (pass != 0)
    return folded;
  return builder.div(folded, countToFloat(builder, builder.maxI(count, builder.index(1)), folded.getType()));
}

SmallVector<Value> MomentsOp::emitBlock(ElementBuilder &builder, ValueRange found, Value count) {
  return {countToFloat(builder, count, getType().getElementType()), found[0], found[1]};
}

SmallVector<Value> MomentsOp::combineParts(OpBuilder &builder, ValueRange parts, int64_t dim) {
  return MomentsOp::create(builder, getLoc(), parts, dim, /*restarts=*/ArrayAttr()).getResults();
}

/// The counts of `parts`, which are known: no rank needs to be told.
static Value createCounts(OpBuilder &builder, MomentsOp parts) {
  auto input = cast<RankedTensorType>(parts.getInputs().front().getType());
  RankedTensorType type = parts.getType();
  Value counts;
  for (auto [axis, restarts] :
       llvm::zip_equal(parts.getAxes(), parts.getRestartsAttr().getAsRange<DenseI64ArrayAttr>())) {
    SmallVector<int64_t> ends = getPartEnds(restarts, input.getDimSize(axis)), shape(type.getRank(), 1);
    shape[axis] = static_cast<int64_t>(ends.size()) - 1;
    SmallVector<Attribute> lengths;
    for (size_t part = 0; part + 1 < ends.size(); ++part)
      lengths.push_back(builder.getFloatAttr(type.getElementType(), static_cast<double>(ends[part + 1] - ends[part])));
    auto along = RankedTensorType::get(shape, type.getElementType());
    Value value = ConstantOp::create(builder, parts.getLoc(), DenseElementsAttr::get(along, lengths));
    counts = counts ? MulOp::create(builder, parts.getLoc(), counts, value).getResult() : value;
  }
  return BroadcastOp::create(builder, parts.getLoc(), type, counts);
}

FailureOr<SmallVector<Value>> MomentsOp::decompose(OpBuilder &builder, ArrayRef<DimShardingAttr> loops) {
  return decomposeTuple(builder, getInputs(), getAxes(), getRestartsAttr(), loops,
                        [&](ValueRange inputs, ArrayRef<int64_t> axes, ArrayAttr restarts) -> ValueRange {
                          SmallVector<Value> operands(inputs);
                          if (operands.size() > 1)
                            operands[0] = createCounts(builder, operands[0].getDefiningOp<MomentsOp>());
                          return MomentsOp::create(builder, getLoc(), operands, axes, restarts).getResults();
                        });
}
