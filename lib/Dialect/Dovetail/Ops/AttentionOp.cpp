//===- AttentionOp.cpp - Attention ----------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines `dovetail.attention`. As a row program it goes through the keys of a query twice, once for the largest score
// and once for all else; the runtime of CPUs has a kernel that goes through them once, a block at a time.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Ops/AttentionOps.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Traits.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

FailureOr<RankedTensorType> AttentionOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto query = cast<RankedTensorType>(adaptor.getQuery().getType());
  auto key = cast<RankedTensorType>(adaptor.getKey().getType());
  auto value = cast<RankedTensorType>(adaptor.getValue().getType());
  auto fail = [&](const Twine &why) {
    return emitOptionalError(location, "'", getOperationName(), "' op has queries ", query, ", keys ", key,
                             " and values ", value, ": ", why);
  };
  int64_t rank = query.getRank();
  if (rank < 2 || key.getRank() != rank || value.getRank() != rank)
    return fail("all need the same rank, 2 or more");
  if (key.getElementType() != query.getElementType() || value.getElementType() != query.getElementType())
    return fail("their elements differ in type");
  for (RankedTensorType type : {key, value})
    for (int64_t dim = 0; dim < rank - 2; ++dim)
      if (type.getDimSize(dim) != 1 && type.getDimSize(dim) != query.getDimSize(dim))
        return fail("batches of keys and values are those of queries, or 1");
  if (key.getDimSize(rank - 1) != query.getDimSize(rank - 1))
    return fail("queries and keys differ in depth");
  if (key.getDimSize(rank - 2) != value.getDimSize(rank - 2))
    return fail("there are not as many keys as values");
  if (key.getDimSize(rank - 2) == 0)
    return fail("there are no keys");
  SmallVector<int64_t> shape(query.getShape());
  shape.back() = value.getShape().back();
  if (adaptor.getMask()) {
    auto mask = cast<RankedTensorType>(adaptor.getMask().getType());
    if (!mask.getElementType().isInteger(1) && mask.getElementType() != query.getElementType())
      return fail("the mask's elements are neither i1 nor of their type");
    SmallVector<int64_t> scores(query.getShape()), broadcast;
    scores.back() = key.getDimSize(rank - 2);
    if (!OpTrait::util::getBroadcastedShape(scores, mask.getShape(), broadcast) || broadcast != scores)
      return fail("their scores are no shape that the mask's broadcasts to");
  }
  return RankedTensorType::get(shape, query.getElementType());
}

/// Behind the dimensions of the result come the loops over keys and depth. Reads are in the order of operands.
Definition AttentionOp::getDefinition() {
  RankedTensorType result = getType();
  unsigned rank = result.getRank();
  Definition definition = Definition::over(result);
  definition.loops[rank - 1].kind = LoopKind::Whole;
  definition.lines.push_back(rank - 1);
  ArrayRef<int64_t> keys = cast<RankedTensorType>(getKey().getType()).getShape();
  IndexExpr row = Definition::at(rank - 2), column = Definition::at(rank - 1),
            key = definition.addLoop(keys[rank - 2], LoopKind::Tap),
            depth = definition.addLoop(keys[rank - 1], LoopKind::Tap);
  const IndexExpr last[][2] = {{row, depth}, {key, depth}, {key, column}, {row, key}};
  for (auto [number, operand] : llvm::enumerate(getOperands())) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(operand.getType()).getShape();
    SmallVector<layout::AccessDim> &dims = definition.addRead(number);
    for (auto [dim, extent] : llvm::enumerate(shape)) {
      // Those of masks may be missing, and broadcast.
      unsigned loop = rank - shape.size() + dim;
      if (loop + 2 >= rank)
        dims.push_back(number == 3 && extent == 1 ? IndexExpr(0) : last[number][loop + 2 - rank]);
      else
        dims.push_back(extent == result.getDimSize(loop) ? Definition::at(loop) : IndexExpr(0));
    }
  }
  return definition;
}

bool AttentionOp::isCheapElement() { return false; }

FormatPreference AttentionOp::getFormatPreference() { return FormatPreference::RowMajor; }

/// The score of the query and the key at the loops of `line`, with its mask, in the type that sums have.
static Value emitScore(AttentionOp op, LineBuilder &line) {
  ElementBuilder &elements = line.elements;
  const Definition &definition = line.getDefinition();
  unsigned depth = definition.resultRank + 1;
  auto type = cast<FloatType>(getAccumulatorType(op.getType().getElementType()));
  Value sum = elements
                  .forLoop(elements.index(0), elements.index(definition.loops[depth].extent), {elements.zero(type)},
                           [&](Value d, ValueRange carried) -> SmallVector<Value> {
                             line.setLoop(depth, d);
                             Value a = elements.convertFloat(line.read(0), type),
                                   b = elements.convertFloat(line.read(1), type);
                             return {elements.add(carried[0], elements.mul(a, b))};
                           })
                  .front();
  Value score = elements.mul(sum, elements.constant(type, op.getScale().convertToDouble()));
  if (!op.getMask())
    return score;
  Value mask = line.read(3);
  if (mask.getType().isInteger(1))
    return elements.select(mask, score, elements.constant(type, op.getFill().convertToDouble()));
  return elements.add(score, elements.convertFloat(mask, type));
}

void AttentionOp::emitLine(LineBuilder &line) {
  ElementBuilder &elements = line.elements;
  const Definition &definition = line.getDefinition();
  unsigned column = definition.resultRank - 1, key = definition.resultRank;
  auto elementType = cast<FloatType>(getType().getElementType()),
       type = cast<FloatType>(getAccumulatorType(elementType));
  Value zero = elements.index(0), keys = elements.index(definition.loops[key].extent);
  auto [begin, end] = line.getRange(column);
  auto at = [&](Value e) {
    SmallVector<Value> index(line.getResultIndex());
    index[column] = e;
    return index;
  };
  auto update = [&](function_ref<Value(Value e)> get) {
    elements.forEach(begin, end, [&](Value e) { line.write(0, at(e), elements.convertFloat(get(e), elementType)); });
  };
  auto readSum = [&](Value e) { return elements.convertFloat(line.readBack(0, at(e)), type); };

  update([&](Value) { return elements.zero(type); });
  Value most = elements
                   .forLoop(zero, keys, {elements.lowest(type)},
                            [&](Value n, ValueRange carried) -> SmallVector<Value> {
                              line.setLoop(key, n);
                              return {elements.max(carried[0], emitScore(*this, line))};
                            })
                   .front();
  Value sum = elements
                  .forLoop(zero, keys, {elements.zero(type)},
                           [&](Value n, ValueRange carried) -> SmallVector<Value> {
                             line.setLoop(key, n);
                             Value weight = elements.create<math::ExpOp>(elements.sub(emitScore(*this, line), most));
                             update([&](Value e) {
                               line.setLoop(column, e);
                               Value value = elements.convertFloat(line.read(2), type);
                               return elements.add(readSum(e), elements.mul(weight, value));
                             });
                             return {elements.add(carried[0], weight)};
                           })
                  .front();
  update([&](Value e) { return elements.div(readSum(e), sum); });
}
