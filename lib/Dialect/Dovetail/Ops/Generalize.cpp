//===- Generalize.cpp - Operations as data --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines generalize: an operation emits its body into a region, and what the body asks of reads and loops is recorded.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "GenericRegions.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::Interval;

namespace {
/// Records where a body asks for the ranges of loops. All else that it asks is recorded by `RecordingBody`.
class RecordingSource : public ElementSource {
public:
  RecordingSource(ElementBuilder &builder, ArrayRef<std::string> names) : builder(builder), names(names) {}

  Value read(unsigned, ArrayRef<Value>) override { llvm_unreachable("reads are recorded"); }
  std::pair<Value, Value> getLoopRange(unsigned loop) override {
    auto bounds = BoundsOp::create(builder.getBuilder(), builder.getLoc(), names[loop]);
    return {bounds.getFirst(), bounds.getEnd()};
  }

private:
  ElementBuilder &builder;
  ArrayRef<std::string> names;
};

/// A body that writes down what it is asked. `known`: the coordinates at which it is, null where there are none.
class RecordingBody : public BodyBuilder {
public:
  RecordingBody(ElementBuilder &elements, Operation *op, const Definition &definition, ArrayRef<Value> known,
                ArrayRef<std::string> names, ElementSource &source)
      : BodyBuilder(elements, op, definition, known, source), op(op), known(getLoops()), names(names) {}

  Value isInside(unsigned read) override {
    unsigned rank = getDefinition().reads[read].dims.size();
    for (unsigned dim = 0; dim < rank; ++dim)
      if (mayLeave(read, dim))
        return recordInside(read, {});
    return elements.boolean(true);
  }
  Value isInside(unsigned read, unsigned dim) override {
    return mayLeave(read, dim) ? recordInside(read, dim) : elements.boolean(true);
  }
  Value read(unsigned read, ArrayRef<Value> unknowns) override {
    auto [loops, coordinates] = getMoved(read);
    unsigned operand = getDefinition().reads[read].operand;
    Type type = ElementBuilder::scalarType(getElementTypeOrSelf(op->getOperand(operand).getType()));
    return ReadOp::create(elements.getBuilder(), elements.getLoc(), type, read, getUsed(read, unknowns), loops,
                          coordinates);
  }
  SmallVector<Value> getIndex(unsigned read, ArrayRef<Value> unknowns) override {
    auto [loops, coordinates] = getMoved(read);
    SmallVector<Type> types(getDefinition().reads[read].dims.size(), elements.getBuilder().getIndexType());
    auto position = PositionOp::create(elements.getBuilder(), elements.getLoc(), types, read, getUsed(read, unknowns),
                                       loops, coordinates);
    return SmallVector<Value>(position.getResults());
  }
  Value lookUp(unsigned loop) override {
    auto lookUp = LookUpOp::create(elements.getBuilder(), elements.getLoc(), names[loop]);
    setLoop(loop, lookUp.getCoordinate());
    return lookUp.getIsOwn();
  }

private:
  /// The loops of a read whose coordinates the body has set, and these.
  std::pair<ArrayAttr, SmallVector<Value>> getMoved(unsigned read) {
    SmallVector<StringRef> moved;
    SmallVector<Value> coordinates;
    for (auto [loop, coordinate] : llvm::enumerate(getLoops())) {
      bool isUsed = llvm::any_of(getDefinition().reads[read].dims,
                                 [&, number = loop](const AccessDim &dim) { return dim.index.dependsOn(number); });
      if (!isUsed || !coordinate || coordinate == known[loop])
        continue;
      moved.push_back(names[loop]);
      coordinates.push_back(coordinate);
    }
    return {elements.getBuilder().getStrArrayAttr(moved), coordinates};
  }
  /// The unknown values that the read's indices may have. Zero stands for each of them that is not there.
  SmallVector<Value> getUsed(unsigned read, ArrayRef<Value> unknowns) {
    return llvm::map_to_vector(unknowns.take_front(countUnknowns(getDefinition().reads[read])),
                               [&](Value value) { return value ? value : elements.index(0); });
  }
  bool mayLeave(unsigned read, unsigned number) {
    const Access &access = getDefinition().reads[read];
    const AccessDim &dim = access.dims[number];
    if (dim.border != layout::Border::None || dim.index.hasUnknown())
      return false;
    int64_t extent = cast<RankedTensorType>(op->getOperand(access.operand).getType()).getDimSize(number);
    return dim.divisor != 1 || !Interval{0, extent}.contains(dim.need(getDefinition().getRanges()));
  }
  Value recordInside(unsigned read, std::optional<unsigned> dim) {
    auto [loops, coordinates] = getMoved(read);
    Builder &builder = elements.getBuilder();
    return InsideOp::create(elements.getBuilder(), elements.getLoc(), builder.getI1Type(),
                            builder.getI64IntegerAttr(read), dim ? builder.getI64IntegerAttr(*dim) : IntegerAttr(),
                            loops, coordinates);
  }

  Operation *op;
  SmallVector<Value> known;
  ArrayRef<std::string> names;
};

/// Records the regions of an operation.
class Generalizer {
public:
  Generalizer(OpBuilder &builder, DefinitionOpInterface op)
      : builder(builder), op(op), definition(op.getDefinition()) {}

  GenericOp run();

private:
  using Record = function_ref<SmallVector<Value>(ElementBuilder &, ValueRange arguments)>;
  using RecordAt = function_ref<SmallVector<Value>(BodyBuilder &, ValueRange arguments)>;

  GenericOp create(std::optional<ReduceKind> kind = std::nullopt) {
    return GenericOp::create(builder, op.getLoc(), op->getResultTypes(), op->getOperands(), definition,
                             ArrayRef<std::string>(), kind);
  }
  /// Fills a region, and returns the types of what it gives.
  SmallVector<Type> record(Region &region, TypeRange arguments, Record emit);
  /// Fills a region of `into`, which runs at coordinates.
  SmallVector<Type> recordAt(GenericOp into, Region &region, TypeRange arguments, RecordAt emit);
  /// How `from` makes one of several terms.
  void recordCombiner(DefinitionOpInterface from, GenericOp into);
  void recordPasses(GenericOp into);
  /// Leaves out what a generic does without being told, and names the kind by which it combines terms, if it is one.
  GenericOp shorten(GenericOp generic);
  bool hasNumbers(ReduceKind kind);

  OpBuilder &builder;
  DefinitionOpInterface op;
  Definition definition;
};
} // namespace

SmallVector<Type> Generalizer::record(Region &region, TypeRange arguments, Record emit) {
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&region, {}, arguments, SmallVector<Location>(arguments.size(), op.getLoc()));
  ElementBuilder elements(builder, op.getLoc());
  auto result = ReturnOp::create(builder, op.getLoc(), emit(elements, block->getArguments()));
  // Folding leaves code over.
  for (Operation &code : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (isOpTriviallyDead(&code))
      code.erase();
  return SmallVector<Type>(result.getOperandTypes());
}

SmallVector<Type> Generalizer::recordAt(GenericOp into, Region &region, TypeRange arguments, RecordAt emit) {
  return record(region, arguments, [&](ElementBuilder &elements, ValueRange values) {
    SmallVector<std::string> names = into.getNames();
    SmallVector<Value> known(definition.loops.size());
    for (unsigned loop = 0; loop < known.size(); ++loop)
      if (isKnownIn(into, &region, loop))
        known[loop] = IndexOp::create(builder, op.getLoc(), names[loop]);
    RecordingSource source(elements, names);
    RecordingBody body(elements, op, definition, known, names, source);
    return emit(body, values);
  });
}

void Generalizer::recordCombiner(DefinitionOpInterface from, GenericOp into) {
  SmallVector<Type> types;
  if (definition.writes)
    types = {ElementBuilder::scalarType(getElementTypeOrSelf(op->getResult(0).getType()))};
  else
    types = record(into.getInit(), {}, [&](ElementBuilder &elements, ValueRange) { return from.emitInit(elements); });
  size_t count = types.size();
  SmallVector<Type> both(types);
  llvm::append_range(both, types);
  record(into.getCombine(), both, [&](ElementBuilder &elements, ValueRange values) {
    return from.emitCombine(elements, values.take_front(count), values.drop_front(count));
  });
  if (!definition.writes)
    recordAt(into, into.getFinish(), types,
             [&](BodyBuilder &body, ValueRange values) { return from.emitFinish(body, values); });
}

void Generalizer::recordPasses(GenericOp into) {
  SmallVector<Type> found;
  for (unsigned number = 0; number < definition.passes.size(); ++number) {
    SmallVector<Type> term = recordAt(into, into.getPassRegion(number), found,
                                      [&](BodyBuilder &body, ValueRange values) -> SmallVector<Value> {
                                        return {op.emitPass(body, number, values)};
                                      });
    term.push_back(builder.getIndexType());
    llvm::append_range(found, record(into.getFoundRegion(number), term,
                                     [&](ElementBuilder &elements, ValueRange values) -> SmallVector<Value> {
                                       return {op.emitFound(elements, number, values[0], values[1])};
                                     }));
  }
  found.push_back(builder.getIndexType());
  record(into.getBlockRegion(), found, [&](ElementBuilder &elements, ValueRange values) {
    return op.emitBlock(elements, values.drop_back(), values.back());
  });
}

/// Whether two regions have the same code.
static bool areEqual(Region &a, Region &b) {
  return OperationEquivalence::isRegionEquivalentTo(&a, &b, OperationEquivalence::IgnoreLocations);
}

bool Generalizer::hasNumbers(ReduceKind kind) {
  return llvm::all_of(op->getResultTypes(), [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    return !isNarrow(element) && (!element.isInteger(1) || kind == ReduceKind::Max || kind == ReduceKind::Min);
  });
}

GenericOp Generalizer::shorten(GenericOp generic) {
  for (ReduceKind kind : {ReduceKind::Sum, ReduceKind::Prod, ReduceKind::Max, ReduceKind::Min}) {
    if (!hasNumbers(kind))
      continue;
    GenericOp named = create(kind), plain = create();
    recordCombiner(cast<DefinitionOpInterface>(named.getOperation()), plain);
    bool isKind = areEqual(plain.getInit(), generic.getInit()) && areEqual(plain.getCombine(), generic.getCombine());
    bool isFinished = areEqual(plain.getFinish(), generic.getFinish());
    plain.erase();
    if (!isKind) {
      named.erase();
      continue;
    }
    if (!isFinished)
      named.getFinish().takeBody(generic.getFinish());
    named.getBody().takeBody(generic.getBody());
    for (auto [to, from] : llvm::zip_equal(named.getPasses(), generic.getPasses()))
      to.takeBody(from);
    named.getBlockRegion().takeBody(generic.getBlockRegion());
    generic.erase();
    return named;
  }
  // Accumulators that are elements, or are rounded to them.
  if (!generic.getFinish().empty() && generic.getAccumulatorTypes().size() == op->getNumResults()) {
    GenericOp plain = create(), unfinished = create();
    recordAt(plain, plain.getFinish(), generic.getAccumulatorTypes(),
             [&](BodyBuilder &body, ValueRange values) { return unfinished.emitFinish(body, values); });
    if (areEqual(plain.getFinish(), generic.getFinish()))
      generic.getFinish().getBlocks().clear();
    plain.erase();
    unfinished.erase();
  }
  return generic;
}

GenericOp Generalizer::run() {
  bool isLineProgram = !definition.lines.empty() && !definition.scan && !definition.writes;
  if (isa<GenericOp>(op) || isLineProgram || !isPure(op))
    return {};
  GenericOp generic = create();
  if (definition.passes.empty())
    recordAt(generic, generic.getBody(), {}, [&](BodyBuilder &body, ValueRange) { return op.emitBody(body); });
  else
    recordPasses(generic);
  if (definition.isFold || definition.scan || definition.writes) {
    recordCombiner(op, generic);
    generic = shorten(generic);
  }
  generic->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  generic.setFlags();
  return generic;
}

GenericOp dovetail::generalize(OpBuilder &builder, DefinitionOpInterface op) { return Generalizer(builder, op).run(); }
