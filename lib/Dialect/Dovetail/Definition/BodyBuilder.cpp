//===- BodyBuilder.cpp - Emitting what definitions say -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines BodyBuilder, and how terms and elements are emitted from definitions.
//
//===----------------------------------------------------------------------===//

#include "ReductionSupport.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::Border;
using layout::IndexExpr;
using layout::Interval;

/// Taps of at most this extent are unrolled.
static constexpr int64_t maxUnrolledTaps = 3;

BodyBuilder::BodyBuilder(ElementBuilder &elements, Operation *op, const Definition &definition, ArrayRef<Value> loops,
                         ElementSource &source)
    : elements(elements), op(op), definition(definition), loops(loops), source(source) {
  this->loops.resize(definition.loops.size());
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

SmallVector<Interval> BodyBuilder::getKnownRanges() const {
  SmallVector<Interval> ranges = definition.getRanges();
  for (auto [range, loop] : llvm::zip_equal(ranges, loops))
    if (std::optional<int64_t> known = loop ? ElementBuilder::getConstantIndex(loop) : std::nullopt)
      range = {*known, *known + 1};
  return ranges;
}

Value BodyBuilder::emit(const IndexExpr &index, ArrayRef<Value> unknowns) {
  // Most indices are loops. Constants are folded element by element: little may be asked of those.
  if (std::optional<int> loop = index.asLoop())
    return loops[*loop];
  int64_t constant = index.getConstant();
  Value sum;
  for (const IndexExpr::Term &term : index.getTerms()) {
    bool divides = term.kind == IndexExpr::Kind::Quotient || term.kind == IndexExpr::Kind::Remainder;
    SmallVector<Interval> ranges = divides ? getKnownRanges() : SmallVector<Interval>();
    if (divides)
      if (Interval known = term.bounds(ranges); known.size() == 1) {
        constant += known.lo * term.factor;
        continue;
      }
    Value value;
    switch (term.kind) {
    case IndexExpr::Kind::Loop:
      value = loops[term.number];
      break;
    case IndexExpr::Kind::Unknown:
      value = unknowns[term.number];
      break;
    case IndexExpr::Kind::Quotient:
    case IndexExpr::Kind::Remainder: {
      Value operand = emit(term.getOperand(), unknowns);
      bool isRemainder = term.kind == IndexExpr::Kind::Remainder;
      Interval bounds = term.getOperand().bounds(ranges);
      if (isRemainder && Interval{0, term.divisor}.contains(bounds)) {
        value = operand;
        break;
      }
      // What is not negative need not be rounded down.
      if (bounds.lo < 0) {
        value = isRemainder ? elements.floorModI(operand, term.divisor) : elements.floorDivI(operand, term.divisor);
        break;
      }
      value = elements.create<arith::DivUIOp>(operand, elements.index(term.divisor));
      if (isRemainder)
        value = elements.subI(operand, elements.mulI(value, term.divisor));
      break;
    }
    }
    value = elements.mulI(value, term.factor);
    sum = sum ? elements.addI(sum, value) : value;
  }
  return sum ? elements.addI(sum, constant) : elements.index(constant);
}

Value BodyBuilder::emitPosition(const AccessDim &dim, ArrayRef<Value> unknowns) {
  Value position = emit(dim.index, unknowns);
  if (dim.divisor != 1)
    return elements.floorDivI(position, dim.divisor);
  if (dim.border == Border::None || dim.within.contains(dim.index.bounds(getKnownRanges())))
    return position;
  int64_t first = dim.within.lo, extent = dim.within.size();
  switch (dim.border) {
  case Border::Edge:
    return elements.clampI(position, first, first + extent - 1);
  case Border::Wrap:
    return elements.addI(elements.floorModI(elements.addI(position, -first), extent), first);
  case Border::Reflect: {
    if (extent == 1)
      return elements.index(first);
    int64_t period = 2 * (extent - 1);
    position = elements.floorModI(elements.addI(position, -first), period);
    return elements.addI(elements.minI(position, elements.subI(elements.index(period), position)), first);
  }
  case Border::None:
    break;
  }
  return position;
}

SmallVector<Value> BodyBuilder::getIndex(unsigned read, ArrayRef<Value> unknowns) {
  SmallVector<Value> index;
  for (const AccessDim &dim : definition.reads[read].dims)
    index.push_back(emitPosition(dim, unknowns));
  return index;
}

//===----------------------------------------------------------------------===//
// Reads
//===----------------------------------------------------------------------===//

Value BodyBuilder::isInside(unsigned read, unsigned number) {
  const AccessDim &dim = definition.reads[read].dims[number];
  if (dim.border != Border::None || dim.index.hasUnknown())
    return elements.boolean(true);
  unsigned operand = definition.reads[read].operand;
  int64_t extent = cast<RankedTensorType>(op->getOperand(operand).getType()).getDimSize(number);
  Interval bounds = dim.need(getKnownRanges());
  Value inside = elements.boolean(true);
  if (bounds.lo < 0 || bounds.hi > extent || dim.divisor != 1) {
    Value position = emitPosition(dim, {});
    if (bounds.lo < 0)
      inside = elements.compareI(arith::CmpIPredicate::sge, position, elements.index(0));
    if (bounds.hi > extent)
      inside = elements.andB(inside, elements.compareI(arith::CmpIPredicate::slt, position, elements.index(extent)));
    if (dim.divisor != 1)
      inside = elements.andB(inside, elements.compareI(arith::CmpIPredicate::eq, emit(dim.index, {}),
                                                       elements.mulI(position, dim.divisor)));
  }
  return inside;
}

Value BodyBuilder::isInside(unsigned read) {
  Value inside = elements.boolean(true);
  for (unsigned dim = 0; dim < definition.reads[read].dims.size(); ++dim)
    inside = elements.andB(inside, isInside(read, dim));
  return inside;
}

Value BodyBuilder::read(unsigned read, ArrayRef<Value> unknowns) {
  return source.read(definition.reads[read].operand, getIndex(read, unknowns));
}

Value BodyBuilder::readOr(unsigned read, function_ref<Value()> otherwise) {
  unsigned operand = definition.reads[read].operand;
  Type type = ElementBuilder::scalarType(cast<RankedTensorType>(op->getOperand(operand).getType()).getElementType());
  return elements.ifElse(isInside(read), type, [&] { return this->read(read); }, otherwise);
}

BodyBuilder::Position BodyBuilder::readPosition(const DataIndex &index) {
  SmallVector<Value> unknowns;
  if (index.component)
    unknowns.push_back(elements.index(*index.component));
  int64_t extent = definition.loops[index.loop].extent;
  Type indexType = elements.getBuilder().getIndexType();
  Value given = read(index.read, unknowns), position;
  // Of unsigned numbers those beyond the signed ones are negative here, as wrong ones are.
  if (isUnsignedElement(op->getOperand(definition.reads[index.read].operand).getType())) {
    given = position = elements.create<arith::IndexCastUIOp>(indexType, given);
  } else {
    given = elements.create<arith::IndexCastOp>(indexType, given);
    Value isNegative = elements.compareI(arith::CmpIPredicate::slt, given, elements.index(0));
    position = elements.select(isNegative, elements.addI(given, extent), given);
  }
  return {given, position, elements.compareI(arith::CmpIPredicate::uge, position, elements.index(extent))};
}

void BodyBuilder::report(const DataIndex &index, const Position &found, Value reports) {
  source.checkIndex(index.loop, elements.andB(found.isWrong, reports), found.given);
}

Value BodyBuilder::lookUp(unsigned loop) {
  SmallVector<DataIndex, 1> indices = definition.getDataIndices();
  const DataIndex &index = *llvm::find_if(indices, [&](const DataIndex &of) { return of.loop == loop; });
  int64_t extent = definition.loops[loop].extent;
  Position found = readPosition(index);
  loops[loop] = isUnsignedElement(op->getOperand(definition.reads[index.read].operand).getType())
                    ? elements.create<arith::MinUIOp>(found.position, elements.index(extent - 1))
                    : elements.clampI(found.position, 0, extent - 1);
  auto [lo, hi] = getRange(loop);
  bool isWhole = ElementBuilder::getConstantIndex(lo) == 0 && ElementBuilder::getConstantIndex(hi) == extent;
  Value isOwn = isWhole ? elements.boolean(true)
                        : elements.andB(elements.compareI(arith::CmpIPredicate::sge, loops[loop], lo),
                                        elements.compareI(arith::CmpIPredicate::slt, loops[loop], hi));
  report(index, found, isOwn);
  return isOwn;
}

//===----------------------------------------------------------------------===//
// Terms
//===----------------------------------------------------------------------===//

namespace {
/// Emits the taps of a term, outermost first.
class TapFold {
public:
  TapFold(DefinitionOpInterface op, BodyBuilder &body)
      : op(op), body(body), first(body.getDefinition().loops.size() - body.getDefinition().getNumTaps()) {}

  SmallVector<Value> emit(ValueRange accumulators) { return guard(first, accumulators); }

private:
  /// Goes on with the tap `loop`, or with the body, where what is known of reads with the taps before it is inside.
  SmallVector<Value> guard(unsigned loop, ValueRange accumulators);
  SmallVector<Value> go(unsigned loop, ValueRange accumulators);

  DefinitionOpInterface op;
  BodyBuilder &body;
  unsigned first;
};
} // namespace

SmallVector<Value> TapFold::guard(unsigned loop, ValueRange accumulators) {
  const Definition &definition = body.getDefinition();
  Value inside = body.elements.boolean(true);
  for (auto [number, read] : llvm::enumerate(definition.reads))
    for (auto [dim, access] : llvm::enumerate(read.dims)) {
      // Tested once: with the last tap that the index depends on.
      bool isDue = loop == first || access.index.dependsOn(loop - 1);
      for (unsigned later = loop; later < definition.loops.size(); ++later)
        isDue &= !access.index.dependsOn(later);
      if (isDue)
        inside = body.elements.andB(inside, body.isInside(number, dim));
    }
  SmallVector<Type> types(accumulators.getTypes());
  return body.elements.ifElse(
      inside, types, [&] { return go(loop, accumulators); }, [&] { return SmallVector<Value>(accumulators); });
}

SmallVector<Value> TapFold::go(unsigned loop, ValueRange accumulators) {
  const Definition &definition = body.getDefinition();
  if (loop == definition.loops.size())
    return op.emitCombine(body.elements, accumulators, op.emitBody(body));
  ElementBuilder &elements = body.elements;
  return elements.forLoop(
      elements.index(0), elements.index(definition.loops[loop].extent), accumulators,
      [&](Value tap, ValueRange carried) {
        body.setLoop(loop, tap);
        return guard(loop + 1, carried);
      },
      maxUnrolledTaps);
}

SmallVector<Value> dovetail::emitTerm(Operation *operation, const Definition &definition, ElementBuilder &builder,
                                      ArrayRef<Value> loops, ElementSource &source) {
  auto op = cast<DefinitionOpInterface>(operation);
  BodyBuilder body(builder, op, definition, loops, source);
  bool isSure = definition.getNumTaps() == 0;
  for (auto [number, read] : llvm::enumerate(definition.reads))
    isSure = isSure && matchPattern(body.isInside(number), m_One());
  if (isSure)
    return op.emitBody(body);
  return TapFold(op, body).emit(op.emitInit(builder));
}

std::pair<Value, Value> dovetail::emitPartRange(ElementBuilder &builder, const Loop &loop, Value part) {
  return {builder.getEntry(loop.ends, part), builder.getEntry(loop.ends, builder.addI(part, 1))};
}

Value dovetail::emitPassInit(ElementBuilder &builder, const FoldPass &pass) {
  return emitReductionInit(builder, pass.kind, pass.elementType);
}

Value dovetail::emitPassCombine(ElementBuilder &builder, const FoldPass &pass, Value a, Value b) {
  return emitReductionCombine(builder, pass.kind, isUnsignedElement(pass.elementType), a, b);
}

namespace {
/// Emits the loops of a fold, outermost first. All terms are one block.
struct Fold {
  using Terms = function_ref<SmallVector<Value>()>;
  using Combine = function_ref<SmallVector<Value>(ValueRange, ValueRange)>;

  DefinitionOpInterface op;
  const Definition &definition;
  ElementBuilder &builder;
  ElementSource &source;
  SmallVector<Value> loops;

  std::pair<Value, Value> getRange(unsigned loop) {
    if (definition.loops[loop].kind == LoopKind::Part)
      return emitPartRange(builder, definition.loops[loop], loops[definition.loops[loop].dim]);
    return source.getLoopRange(loop);
  }
  unsigned getEnd() const { return definition.loops.size() - definition.getNumTaps(); }

  SmallVector<Value> emit(ValueRange init, Terms term, Combine combine) {
    if (loops.size() == getEnd())
      return term();
    auto [lo, hi] = getRange(loops.size());
    return builder.forLoop(lo, hi, init, [&](Value iv, ValueRange carried) {
      loops.push_back(iv);
      SmallVector<Value> inner = emit(init, term, combine);
      loops.pop_back();
      return combine(carried, inner);
    });
  }

  SmallVector<Value> emitPasses() {
    Value count = builder.index(1);
    for (unsigned loop = loops.size(); loop < getEnd(); ++loop) {
      auto [lo, hi] = getRange(loop);
      count = builder.create<arith::MulIOp>(count, builder.subI(hi, lo));
    }
    return dovetail::emitPasses(op, definition, builder, count, [&](unsigned number, ValueRange found) {
      const FoldPass &pass = definition.passes[number];
      auto term = [&]() -> SmallVector<Value> {
        BodyBuilder body(builder, op, definition, loops, source);
        return {op.emitPass(body, number, found)};
      };
      auto combine = [&](ValueRange a, ValueRange b) -> SmallVector<Value> {
        return {emitPassCombine(builder, pass, a.front(), b.front())};
      };
      return emit(emitPassInit(builder, pass), term, combine).front();
    });
  }

  SmallVector<Value> emit() {
    if (!definition.passes.empty())
      return emitPasses();
    return emit(
        op.emitInit(builder), [&] { return emitTerm(op, definition, builder, loops, source); },
        [&](ValueRange a, ValueRange b) { return op.emitCombine(builder, a, b); });
  }
};
} // namespace

SmallVector<Value> dovetail::emitPasses(Operation *operation, const Definition &definition, ElementBuilder &builder,
                                        Value count, function_ref<Value(unsigned, ValueRange)> emitFold) {
  auto op = cast<DefinitionOpInterface>(operation);
  SmallVector<Value> found;
  for (unsigned pass = 0; pass < definition.passes.size(); ++pass) {
    Value folded = emitFold(pass, found);
    found.push_back(op.emitFound(builder, pass, folded, count));
  }
  return op.emitBlock(builder, found, count);
}

SmallVector<Value> dovetail::emitElement(Operation *operation, const Definition &definition, ElementBuilder &builder,
                                         ArrayRef<Value> index, ElementSource &source) {
  auto op = cast<DefinitionOpInterface>(operation);
  BodyBuilder body(builder, op, definition, index, source);
  if (!definition.isFold)
    return op.emitBody(body);
  Fold fold{op, definition, builder, source, SmallVector<Value>(index)};
  return op.emitFinish(body, fold.emit());
}

//===----------------------------------------------------------------------===//
// What most operations do
//===----------------------------------------------------------------------===//

static Type getResultElementType(Operation *op) { return getElementTypeOrSelf(op->getResult(0).getType()); }

SmallVector<Value> dovetail::emitDefaultBody(Operation *op, BodyBuilder &body) {
  const Definition &definition = body.getDefinition();
  if (SmallVector<unsigned, 1> lookups = definition.getLookups(); !lookups.empty()) {
    Value isOwn = body.elements.boolean(true);
    SmallVector<Value> iterations;
    for (unsigned loop : lookups) {
      isOwn = body.elements.andB(isOwn, body.lookUp(loop));
      iterations.push_back(body.getLoop(loop));
    }
    Type type = ElementBuilder::scalarType(getResultElementType(op));
    return {body.elements.ifElse(
        isOwn, type, [&] { return body.read(0, iterations); }, [&] { return body.elements.zero(type); })};
  }
  if (definition.writes)
    return {body.read(1)};
  assert((definition.isFold || matchPattern(body.isInside(0), m_One())) && "what may be missing needs a body");
  if (!definition.isProduct)
    return {body.read(0)};
  Type type = getAccumulatorType(getResultElementType(op));
  auto readFactor = [&](unsigned number) {
    Value factor = body.read(number);
    return isa<FloatType>(type)
               ? widen(body.elements, factor, type)
               : body.elements.extendInt(factor, type, isUnsignedElement(op->getOperand(number).getType()));
  };
  return {body.elements.mul(readFactor(0), readFactor(1))};
}

SmallVector<Value> dovetail::emitZero(Operation *op, ElementBuilder &builder) {
  return {builder.zero(getAccumulatorType(getResultElementType(op)))};
}

Value dovetail::emitNarrowed(Operation *op, BodyBuilder &body, Value accumulator) {
  return narrow(body.elements, accumulator, getResultElementType(op));
}
