//===- ArgReduceOp.cpp - The largest element and where it is --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.arg_reduce`: a block of terms is gone through for the extreme element, and then for where it is.
//
//===----------------------------------------------------------------------===//

#include "TupleFold.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace mlir;
using namespace dovetail;

LogicalResult ArgReduceOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  StringRef name = getOperationName();
  ReduceKind kind = adaptor.getKind();
  if (kind != ReduceKind::Max && kind != ReduceKind::Min)
    return emitOptionalError(location, "'", name, "' op has kind ", stringifyReduceKind(kind),
                             ", but needs max or min");
  if (adaptor.getAxes().size() != 1)
    return emitOptionalError(location, "'", name, "' op has ", adaptor.getAxes().size(),
                             " axes, but positions are along one");
  FailureOr<SmallVector<int64_t>> shape = inferTupleShape(
      location, name, adaptor.getInputs(), 2, "elements and positions", adaptor.getAxes(), adaptor.getRestartsAttr());
  if (failed(shape))
    return failure();
  Type position = IntegerType::get(context, 64);
  for (Value input : adaptor.getInputs().drop_front())
    if (getElementTypeOrSelf(input.getType()) != position)
      return emitOptionalError(location, "'", name, "' op has positions of type ", input.getType(),
                               ", which must be i64");
  types.push_back(RankedTensorType::get(*shape, getElementTypeOrSelf(adaptor.getInputs().front().getType())));
  types.push_back(RankedTensorType::get(*shape, position));
  return success();
}

Definition ArgReduceOp::getDefinition() {
  Type position = IntegerType::get(getContext(), 64);
  return getTupleDefinition(getInputs(), getType(), getAxes(), getRestartsAttr(),
                            {{getKind(), getType().getElementType()}, {ReduceKind::Max, position}});
}

/// Parts are terms.
SmallVector<Value> ArgReduceOp::emitBody(BodyBuilder &body) { return {body.read(0), body.read(1)}; }

SmallVector<Value> ArgReduceOp::emitInit(ElementBuilder &builder) {
  return {emitReductionInit(builder, getKind(), getType().getElementType()),
          builder.constantInt(builder.getBuilder().getI64Type(), -1)};
}

/// i1: both are the same number, or none.
static Value isSame(ElementBuilder &builder, Value a, Value b) {
  Value isEqual = builder.compare(arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq, a, b);
  if (!isa<FloatType>(a.getType()))
    return isEqual;
  auto isNaN = [&](Value value) { return builder.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, value, value); };
  return builder.create<arith::OrIOp>(isEqual, builder.andB(isNaN(a), isNaN(b)));
}

SmallVector<Value> ArgReduceOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  Value best = emitReductionCombine(builder, getKind(), isUnsignedElement(getType()), accumulators[0], term[0]);
  Value none = builder.constantInt(builder.getBuilder().getI64Type(), -1);
  auto find = [&](ValueRange values) { return builder.select(isSame(builder, values[0], best), values[1], none); };
  Value before = find(accumulators), now = find(term);
  if (getLast())
    return {best, builder.max(before, now)};
  // Positions that are none are the largest unsigned numbers.
  return {best, builder.min(before, now, /*isUnsigned=*/true)};
}

Value ArgReduceOp::emitPass(BodyBuilder &body, unsigned pass, ValueRange found) {
  ElementBuilder &builder = body.elements;
  Value element = readTerm(body);
  if (pass == 0)
    return element;
  // The largest of positions counted from the end is the first one.
  Type type = builder.getBuilder().getI64Type();
  Value position = builder.create<arith::IndexCastOp>(type, body.getLoop(body.getDefinition().resultRank));
  if (!getLast())
    position = builder.create<arith::SubIOp>(getLastPosition(builder), position);
  return builder.select(isSame(builder, element, found[0]), position, builder.constantInt(type, -1));
}

Value ArgReduceOp::getLastPosition(ElementBuilder &builder) {
  int64_t extent = cast<RankedTensorType>(getInputs().front().getType()).getDimSize(getAxes().front());
  return builder.constantInt(builder.getBuilder().getI64Type(), extent - 1);
}

SmallVector<Value> ArgReduceOp::emitBlock(ElementBuilder &builder, ValueRange found, Value count) {
  Type type = found[1].getType();
  Value isNone = builder.create<arith::CmpIOp>(arith::CmpIPredicate::slt, found[1], builder.zero(type));
  Value position = getLast() ? found[1] : builder.create<arith::SubIOp>(getLastPosition(builder), found[1]);
  return {found[0], builder.select(isNone, builder.constantInt(type, -1), position)};
}

SmallVector<Value> ArgReduceOp::combineParts(OpBuilder &builder, ValueRange parts, int64_t dim) {
  return ArgReduceOp::create(builder, getLoc(), parts, getKind(), getLast(), dim, /*restarts=*/ArrayAttr())
      .getResults();
}

FailureOr<SmallVector<Value>> ArgReduceOp::decompose(OpBuilder &builder, ArrayRef<DimShardingAttr> loops) {
  return decomposeTuple(
      builder, getInputs(), getAxes(), getRestartsAttr(), loops,
      [&](ValueRange inputs, ArrayRef<int64_t> axes, ArrayAttr restarts) -> ValueRange {
        return ArgReduceOp::create(builder, getLoc(), inputs, getKind(), getLast(), axes, restarts).getResults();
      });
}
