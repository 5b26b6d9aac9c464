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
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

#include "../Definition/ReductionSupport.h"
#include "Restarts.h"

#include "dovetail/Calls/AttentionForm.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Traits.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

namespace {
/// What a definition says of heads that follow each other in columns.
struct Heads {
  int64_t queries, keys, depth, columns;
  ArrayRef<int64_t> offsets; ///< -1 where heads are a dimension.

  explicit Heads(ArrayRef<int64_t> heads, ArrayRef<int64_t> offsets)
      : queries(heads[0]), keys(heads[1]), depth(heads[2]), columns(heads[3]), offsets(offsets) {}

  int64_t perKeys() const { return queries / keys; }
};
} // namespace

/// What must be so whether heads follow each other or not: `fail` says what is not.
static LogicalResult checkElements(AttentionOp::Adaptor adaptor, function_ref<LogicalResult(const Twine &why)> fail) {
  Type elements = cast<RankedTensorType>(adaptor.getQuery().getType()).getElementType();
  for (Value operand : {adaptor.getKey(), adaptor.getValue()})
    if (cast<RankedTensorType>(operand.getType()).getElementType() != elements)
      return fail("their elements differ in type");
  if (!adaptor.getMask())
    return success();
  Type mask = cast<RankedTensorType>(adaptor.getMask().getType()).getElementType();
  return mask.isInteger(1) || mask == elements ? success()
                                               : fail("the mask's elements are neither i1 nor of their type");
}

/// The mask's shape broadcasts to that of scores.
static LogicalResult checkMask(Value mask, ArrayRef<int64_t> scores,
                               function_ref<LogicalResult(const Twine &why)> fail) {
  SmallVector<int64_t> broadcast;
  if (mask &&
      (!OpTrait::util::getBroadcastedShape(scores, cast<RankedTensorType>(mask.getType()).getShape(), broadcast) ||
       ArrayRef<int64_t>(broadcast) != scores))
    return fail("the mask does not broadcast to the shape of the scores");
  return success();
}

/// The shape of a result whose heads follow each other.
static FailureOr<SmallVector<int64_t>> inferHeads(AttentionOp::Adaptor adaptor,
                                                  function_ref<LogicalResult(const Twine &why)> fail) {
  std::optional<ArrayRef<int64_t>> given = adaptor.getHeads(), offsets = adaptor.getOffsets();
  if (!given || !offsets || given->size() != 4 || offsets->size() != 3)
    return fail("heads are four numbers, with three offsets");
  auto [all, shared] = std::pair((*given)[0], (*given)[1]);
  constexpr int64_t most = int64_t(1) << 31;
  if (llvm::any_of(*given, [](int64_t number) { return number < 1 || number >= most; }) || all % shared != 0)
    return fail("numbers of heads and their sizes are positive, and the number of heads of keys divides the number of "
                "heads of queries");
  Heads heads(*given, *offsets);
  const int64_t counts[] = {heads.queries, heads.keys, heads.keys}, sizes[] = {heads.depth, heads.depth, heads.columns};
  std::optional<SmallVector<int64_t>> batch;
  SmallVector<int64_t> rows;
  const Value operands[] = {adaptor.getQuery(), adaptor.getKey(), adaptor.getValue()};
  for (auto [number, operand] : llvm::enumerate(operands)) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(operand.getType()).getShape();
    int64_t offset = heads.offsets[number];
    if (shape.size() < (offset < 0 ? 3 : 2) || offset < -1)
      return fail("one of them has too few dimensions");
    if (offset < 0 ? shape.back() != sizes[number] || shape[shape.size() - 3] != counts[number]
                   : offset > shape.back() || shape.back() - offset < counts[number] * sizes[number])
      return fail("one of them has other heads");
    rows.push_back(shape[shape.size() - 2]);
    ArrayRef<int64_t> own = shape.drop_back(offset < 0 ? 3 : 2);
    if (!batch)
      batch = SmallVector<int64_t>(own);
    if (own.size() != batch->size() || llvm::any_of(llvm::zip(own, *batch), [](auto pair) {
          return std::get<0>(pair) != 1 && std::get<0>(pair) != std::get<1>(pair);
        }))
      return fail("keys and values have as many batches as queries, or 1");
  }
  if (rows[1] != rows[2])
    return fail("there are not as many keys as values");
  if (rows[1] == 0)
    return fail("there are no keys");
  SmallVector<int64_t> shape = *batch, scores = *batch;
  scores.append({heads.queries, rows[0], rows[1]});
  shape.append({rows[0], heads.queries * heads.columns});
  if (failed(checkMask(adaptor.getMask(), scores, fail)))
    return failure();
  return shape;
}

FailureOr<RankedTensorType> AttentionOp::inferType(std::optional<Location> location, Adaptor adaptor) {
  auto query = cast<RankedTensorType>(adaptor.getQuery().getType());
  auto key = cast<RankedTensorType>(adaptor.getKey().getType());
  auto value = cast<RankedTensorType>(adaptor.getValue().getType());
  auto fail = [&](const Twine &why) -> LogicalResult {
    return emitOptionalError(location, "'", getOperationName(), "' op has queries ", query, ", keys ", key,
                             " and values ", value, ": ", why);
  };
  if (failed(checkElements(adaptor, fail)))
    return failure();
  std::optional<ArrayRef<int64_t>> restarts = adaptor.getRestarts();
  if (adaptor.getHeads() || adaptor.getOffsets()) {
    if (restarts)
      return fail("keys are divided where heads are a dimension");
    FailureOr<SmallVector<int64_t>> shape = inferHeads(adaptor, fail);
    if (failed(shape))
      return failure();
    return RankedTensorType::get(*shape, query.getElementType());
  }
  int64_t rank = query.getRank();
  if (rank < 2 || key.getRank() != rank || value.getRank() != rank)
    return fail("all need the same rank, 2 or more");
  for (RankedTensorType type : {key, value})
    for (int64_t dim = 0; dim < rank - 2; ++dim)
      if (type.getDimSize(dim) != 1 && type.getDimSize(dim) != query.getDimSize(dim))
        return fail("keys and values have as many batches as queries, or 1");
  if (key.getDimSize(rank - 1) != query.getDimSize(rank - 1))
    return fail("queries and keys differ in depth");
  if (key.getDimSize(rank - 2) != value.getDimSize(rank - 2))
    return fail("there are not as many keys as values");
  if (key.getDimSize(rank - 2) == 0)
    return fail("there are no keys");
  SmallVector<int64_t> shape(query.getShape()), scores(query.getShape());
  shape.back() = value.getShape().back();
  scores.back() = key.getDimSize(rank - 2);
  if (failed(checkMask(adaptor.getMask(), scores, fail)))
    return failure();
  if (!restarts)
    return RankedTensorType::get(shape, query.getElementType());
  if (failed(verifyRestarts(location, getOperationName(), *restarts, scores.back())))
    return failure();
  shape.back() += calls::attentionPartColumns;
  shape.insert(shape.begin(), static_cast<int64_t>(restarts->size()) + 1);
  return RankedTensorType::get(shape, getAccumulatorType(query.getElementType()));
}

/// Behind the dimensions of the result come the loops over keys and depth. Reads are in the order of operands. Of
/// parts, the index of keys is unknown number 0.
std::optional<CallForm> AttentionOp::getCallForm() {
  int64_t columns = getHeads() ? Heads(*getHeads(), *getOffsets()).columns : getValue().getType().getShape().back();
  return AttentionCall{columns, getScale().convertToFloat(), getFill().convertToFloat(), getRestarts().has_value()};
}

Definition AttentionOp::getDefinition() {
  RankedTensorType result = getType();
  unsigned rank = result.getRank(), last = rank - 1;
  Definition definition = Definition::over(result);
  definition.lines.push_back(last);
  std::optional<Heads> heads;
  if (getHeads())
    heads.emplace(*getHeads(), *getOffsets());
  else
    definition.loops[last].kind = LoopKind::Whole;
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  RankedTensorType keys = typeOf(getKey());
  int64_t numKeys = keys.getDimSize(keys.getRank() - 2);
  unsigned firstBatch = getRestarts() ? 1 : 0;
  IndexExpr row = Definition::at(rank - 2), column = Definition::at(last),
            key = getRestarts() ? definition.addPartLoop(0, getPartEnds(*getRestarts(), numKeys), 0)
                                : definition.addLoop(numKeys, LoopKind::Reduction, /*reduction=*/std::nullopt),
            depth = definition.addLoop(heads ? heads->depth : keys.getShape().back(), LoopKind::Tap);
  // Of queries, keys, values and the mask: the head, and the last two dimensions.
  IndexExpr head, shared, inHead = column;
  if (heads) {
    head = column.floorDiv(heads->columns);
    shared = column.floorDiv(heads->columns * heads->perKeys());
    inHead = heads->queries == 1 ? column : column.mod(heads->columns);
  }
  const IndexExpr ofHead[] = {head, shared, shared, head};
  const IndexExpr lastTwo[][2] = {{row, depth}, {key, depth}, {key, inHead}, {row, key}};
  for (auto [number, operand] : llvm::enumerate(getOperands())) {
    ArrayRef<int64_t> shape = typeOf(operand).getShape();
    // All dimensions that it may have.
    SmallVector<IndexExpr> full;
    for (unsigned dim = firstBatch; dim + 2 < rank; ++dim)
      full.push_back(Definition::at(dim));
    bool inColumns = heads && number < 3 && heads->offsets[number] >= 0;
    if (heads && !inColumns)
      full.push_back(ofHead[number]);
    full.push_back(lastTwo[number][0]);
    if (inColumns) {
      int64_t size = number == 2 ? heads->columns : heads->depth;
      // Heads of values that follow each other are columns as they are.
      bool isColumn = number == 2 && heads->perKeys() == 1;
      full.push_back(heads->offsets[number] + (isColumn ? column : ofHead[number] * size + lastTwo[number][1]));
    } else {
      full.push_back(lastTwo[number][1]);
    }
    // Dimensions of masks may be missing, and broadcast, as batches do.
    SmallVector<layout::AccessDim> &dims = definition.addRead(number);
    size_t missing = full.size() - shape.size();
    for (auto [dim, extent] : llvm::enumerate(shape)) {
      bool isBatch = missing + dim + 2 < rank - firstBatch, mayBroadcast = number == 3 || (number > 0 && isBatch);
      dims.push_back(mayBroadcast && extent == 1 ? IndexExpr(0) : full[missing + dim]);
    }
  }
  return definition;
}

FormatPreference AttentionOp::getFormatPreference() { return FormatPreference::RowMajor; }

/// An element of an operand that is read at key `key`.
static Value readAtKey(AttentionOp op, LineBuilder &line, unsigned operand, Value key) {
  if (op.getRestarts())
    return line.read(operand, key);
  line.setLoop(line.getDefinition().resultRank, key);
  return line.read(operand);
}

/// The score of the query at the loops of `line` and a key, with its mask, in the type that sums have.
static Value emitScore(AttentionOp op, LineBuilder &line, Value key) {
  ElementBuilder &elements = line.elements;
  const Definition &definition = line.getDefinition();
  unsigned depth = definition.resultRank + 1;
  auto type = cast<FloatType>(getAccumulatorType(op.getType().getElementType()));
  Value sum = elements
                  .forLoop(elements.index(0), elements.index(definition.loops[depth].extent), {elements.zero(type)},
                           [&](Value d, ValueRange carried) -> SmallVector<Value> {
                             line.setLoop(depth, d);
                             Value a = elements.convertFloat(line.read(0), type),
                                   b = elements.convertFloat(readAtKey(op, line, 1, key), type);
                             return {elements.add(carried[0], elements.mul(a, b))};
                           })
                  .front();
  Value score = elements.mul(sum, elements.constant(type, op.getScale().convertToDouble()));
  if (!op.getMask())
    return score;
  Value mask = readAtKey(op, line, 3, key);
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
  bool isOfPart = getRestarts().has_value();
  Value first = elements.index(0), last = elements.index(definition.loops[key].extent);
  if (isOfPart)
    std::tie(first, last) = emitPartRange(elements, definition.loops[key], line.getResultIndex().front());
  auto at = [&](Value e) {
    SmallVector<Value> index(line.getResultIndex());
    index[column] = e;
    return index;
  };
  auto readSum = [&](Value e) { return elements.convertFloat(line.readBack(0, at(e)), type); };
  /// The columns [begin, end), of one head.
  auto emitHead = [&](Value begin, Value end) {
    auto update = [&](function_ref<Value(Value e)> get) {
      elements.forEach(begin, end, [&](Value e) { line.write(0, at(e), elements.convertFloat(get(e), elementType)); });
    };
    auto emitScoreOf = [&](Value n) {
      line.setLoop(column, begin);
      return emitScore(*this, line, n);
    };
    update([&](Value) { return elements.zero(type); });
    Value lowest = isOfPart ? emitLowestFinite(elements, type) : elements.lowest(type);
    Value most = elements
                     .forLoop(first, last, {lowest},
                              [&](Value n, ValueRange carried) -> SmallVector<Value> {
                                return {elements.max(carried[0], emitScoreOf(n))};
                              })
                     .front();
    Value sum = elements
                    .forLoop(first, last, {elements.zero(type)},
                             [&](Value n, ValueRange carried) -> SmallVector<Value> {
                               Value weight = elements.create<math::ExpOp>(elements.sub(emitScoreOf(n), most));
                               update([&](Value e) {
                                 line.setLoop(column, e);
                                 Value value = elements.convertFloat(readAtKey(*this, line, 2, n), type);
                                 return elements.add(readSum(e), elements.mul(weight, value));
                               });
                               return {elements.add(carried[0], weight)};
                             })
                    .front();
    if (isOfPart) {
      line.write(0, at(end), most);
      line.write(0, at(elements.addI(end, elements.index(1))), sum);
      return;
    }
    update([&](Value e) { return elements.div(readSum(e), sum); });
  };
  if (isOfPart)
    return emitHead(elements.index(0), elements.index(definition.loops[column].extent - calls::attentionPartColumns));
  auto [begin, end] = line.getRange(column);
  if (!getHeads())
    return emitHead(begin, end);
  int64_t columns = (*getHeads())[3];
  Value firstHead = elements.floorDivI(begin, columns),
        lastHead = elements.floorDivI(elements.addI(end, columns - 1), columns);
  elements.forEach(firstHead, lastHead, [&, begin = begin, end = end](Value head) {
    Value from = elements.mulI(head, columns);
    emitHead(elements.maxI(from, begin), elements.minI(elements.addI(from, columns), end));
  });
}

bool AttentionOp::dividesTerms() { return !getHeads() && !getRestarts(); }

FailureOr<SmallVector<Value>> AttentionOp::decompose(OpBuilder &builder, ArrayRef<DimShardingAttr> loops) {
  if (!dividesTerms())
    return failure();
  Location loc = getLoc();
  RankedTensorType type = getType();
  int64_t numKeys = cast<RankedTensorType>(getKey().getType()).getShape().end()[-2];
  std::optional<SmallVector<int64_t>> restarts = dovetail::getRestarts(loops[type.getRank()], numKeys);
  // Where one rank has all keys, there is nothing to combine.
  if (!restarts || restarts->empty())
    return failure();
  Value parts =
      AttentionOp::create(builder, loc, getQuery(), getKey(), getValue(), getMask(), getScaleAttr(), getFillAttr(),
                          DenseI64ArrayAttr(), DenseI64ArrayAttr(), builder.getDenseI64ArrayAttr(*restarts));
  auto ofParts = cast<RankedTensorType>(parts.getType());
  int64_t rank = ofParts.getRank(), columns = type.getShape().back();
  auto slice = [&](int64_t first, int64_t count) -> Value {
    SmallVector<int64_t> starts(rank), sizes(ofParts.getShape()), steps(rank, 1);
    starts.back() = first;
    sizes.back() = count;
    return SliceOp::create(builder, loc, parts, starts, sizes, steps);
  };
  auto reduce = [&](Value value, ReduceKind kind) -> Value {
    return ReduceOp::create(builder, loc, value, kind, ArrayRef<int64_t>(0));
  };
  Value most = slice(columns, 1);
  Value weights = ExpOp::create(builder, loc, SubOp::create(builder, loc, most, reduce(most, ReduceKind::Max)));
  auto sum = [&](Value value) { return reduce(MulOp::create(builder, loc, value, weights), ReduceKind::Sum); };
  Value result = DivOp::create(builder, loc, sum(slice(0, columns)), sum(slice(columns + 1, 1)));
  if (ofParts.getElementType() != type.getElementType())
    result = CastOp::create(builder, loc, result, type.getElementType());
  return SmallVector<Value>{
      ReshapeOp::create(builder, loc, RankedTensorType::get(type.getShape(), type.getElementType()), result)};
}
