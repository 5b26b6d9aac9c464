//===- GenericRegions.cpp - The code in regions of generics ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines emitRegion, which emits the code of a region of a generic.
//
//===----------------------------------------------------------------------===//

#include "GenericRegions.h"

#include "../Definition/ReductionSupport.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dovetail;
using layout::IndexExpr;

namespace {
class RegionEmitter {
public:
  RegionEmitter(ElementBuilder &elements, BodyBuilder *body, GenericOp op) : elements(elements), body(body), op(op) {}

  /// Returns what the terminator gives.
  SmallVector<Value> emit(Block &block, ValueRange arguments);

private:
  void emit(Operation &operation);
  /// Copies an operation of scalars, or folds it.
  void copy(Operation &operation);
  void emit(scf::ForOp loop);
  void emit(scf::IfOp branch);
  /// Calls `ask` with the body at the coordinates that `operation` states.
  template <typename OpT, typename Ask> auto askAt(OpT operation, Ask ask);

  SmallVector<Value> get(ValueRange values) const {
    return llvm::map_to_vector(values, [&](Value value) { return mapping.lookup(value); });
  }
  void set(ValueRange results, ArrayRef<Value> values) { mapping.map(results, values); }
  unsigned getLoop(StringRef name) { return *op.findLoop(name); }

  ElementBuilder &elements;
  BodyBuilder *body;
  GenericOp op;
  IRMapping mapping;
};
} // namespace

void RegionEmitter::copy(Operation &operation) {
  OpBuilder &builder = elements.getBuilder();
  Operation *copied = builder.clone(operation, mapping);
  SmallVector<Value> folded;
  if (copied->getNumResults() == 0 || failed(builder.tryFold(copied, folded)) || folded.empty())
    return;
  set(operation.getResults(), folded);
  copied->erase();
}

void RegionEmitter::emit(scf::ForOp loop) {
  Value lo = mapping.lookup(loop.getLowerBound()), hi = mapping.lookup(loop.getUpperBound());
  set(loop.getResults(), elements.forLoop(lo, hi, get(loop.getInitArgs()), [&](Value iv, ValueRange carried) {
    SmallVector<Value> arguments = {iv};
    llvm::append_range(arguments, carried);
    return emit(*loop.getBody(), arguments);
  }));
}

void RegionEmitter::emit(scf::IfOp branch) {
  auto emitBranch = [&](Region &region) { return region.empty() ? SmallVector<Value>() : emit(region.front(), {}); };
  SmallVector<Type> types(branch.getResultTypes());
  set(branch.getResults(),
      elements.ifElse(
          mapping.lookup(branch.getCondition()), types, [&] { return emitBranch(branch.getThenRegion()); },
          [&] { return emitBranch(branch.getElseRegion()); }));
}

template <typename OpT, typename Ask> auto RegionEmitter::askAt(OpT operation, Ask ask) {
  SmallVector<Value> before(body->getLoops());
  for (auto [name, coordinate] :
       llvm::zip_equal(operation.getLoops().template getAsRange<StringAttr>(), operation.getCoordinates()))
    body->setLoop(getLoop(name), mapping.lookup(coordinate));
  auto answer = ask();
  for (auto [loop, coordinate] : llvm::enumerate(before))
    body->setLoop(loop, coordinate);
  return answer;
}

void RegionEmitter::emit(Operation &operation) {
  llvm::TypeSwitch<Operation *>(&operation)
      .Case([&](scf::ForOp loop) { emit(loop); })
      .Case([&](scf::IfOp branch) { emit(branch); })
      // arith does not fold conversions that round.
      .Case<arith::ExtFOp, arith::TruncFOp>([&](auto conversion) {
        set(conversion->getResults(),
            elements.convertFloat(mapping.lookup(conversion.getIn()), cast<FloatType>(conversion.getType())));
      })
      .Case([&](ReadOp read) {
        set(read->getResults(), askAt(read, [&] { return body->read(read.getNumber(), get(read.getUnknowns())); }));
      })
      .Case([&](InsideOp inside) {
        set(inside->getResults(), askAt(inside, [&] {
              std::optional<uint64_t> dim = inside.getDim();
              return dim ? body->isInside(inside.getNumber(), *dim) : body->isInside(inside.getNumber());
            }));
      })
      .Case([&](PositionOp position) {
        set(position.getResults(),
            askAt(position, [&] { return body->getIndex(position.getNumber(), get(position.getUnknowns())); }));
      })
      .Case([&](IndexOp index) { set(index->getResults(), body->getLoop(getLoop(index.getLoop()))); })
      .Case([&](BoundsOp bounds) {
        auto [first, end] = body->getRange(getLoop(bounds.getLoop()));
        set(bounds->getResults(), {first, end});
      })
      .Case([&](LookUpOp lookUp) {
        unsigned loop = getLoop(lookUp.getLoop());
        Value isOwn = body->lookUp(loop);
        set(lookUp->getResults(), {isOwn, body->getLoop(loop)});
      })
      .Default([&](Operation *) { copy(operation); });
}

SmallVector<Value> RegionEmitter::emit(Block &block, ValueRange arguments) {
  mapping.map(block.getArguments(), arguments);
  for (Operation &operation : block.without_terminator())
    emit(operation);
  return get(block.getTerminator()->getOperands());
}

SmallVector<Value> dovetail::emitRegion(ElementBuilder &elements, BodyBuilder *body, GenericOp op, Region &region,
                                        ValueRange arguments) {
  return RegionEmitter(elements, body, op).emit(region.front(), arguments);
}

bool dovetail::isKnownInBody(const Definition &definition, unsigned loop) {
  if (definition.loops[loop].isLookup())
    return false;
  // Updates are those of iterations, wherever they go.
  if (definition.writes)
    return !definition.isLine(loop);
  // Where elements are asked for one by one, bodies go through all other loops themselves.
  return loop < definition.resultRank || definition.isFold;
}

bool dovetail::isKnownIn(GenericOp op, Region *region, unsigned loop) {
  const Definition &definition = op.getStatement().getDefinition();
  if (region == &op.getFinish())
    return loop < definition.resultRank;
  return isKnownInBody(definition, loop) && (region == &op.getBody() || definition.loops[loop].kind != LoopKind::Tap);
}

static unsigned countUnknowns(const IndexExpr &index) {
  unsigned count = 0;
  for (const IndexExpr::Term &term : index.getTerms()) {
    if (term.kind == IndexExpr::Kind::Unknown)
      count = std::max<unsigned>(count, term.number + 1);
    else if (term.hasOperand())
      count = std::max(count, countUnknowns(term.getOperand()));
  }
  return count;
}

unsigned dovetail::countUnknowns(const Access &access) {
  unsigned count = 0;
  for (const layout::AccessDim &dim : access.dims)
    count = std::max(count, ::countUnknowns(dim.index));
  return count;
}

Value dovetail::emitUpdate(ElementBuilder &builder, Type elementType, ReduceKind kind, Value old, Value update) {
  Value combined = emitReductionCombine(builder, kind, isUnsignedElement(elementType),
                                        emitReductionTerm(builder, kind, elementType, old),
                                        emitReductionTerm(builder, kind, elementType, update));
  return narrow(builder, combined, elementType);
}
