//===- Bounds.cpp - Dimensions whose extents depend on data ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Bounds: what follows from definitions, which name all that an operation reads. No operator is named here.
//
//===----------------------------------------------------------------------===//

#include "Bounds.h"
#include "dovetail/Dialect/Dovetail/IR/Positions.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

using namespace dovetail;
using namespace dovetail::importer;

Obstacle dovetail::importer::describeBounded(const llvm::Twine &what, unsigned dim, int64_t bound,
                                             const llvm::Twine &why) {
  return {(what + " has in dimension " + llvm::Twine(dim) + " an extent that varies from run to run, at most " +
           llvm::Twine(bound) + ", and " + why)
              .str(),
          "end the graph before it, or export the model with an extent that is constant"};
}

void Bounds::set(mlir::Value value, Counts given) {
  // A bound of 0 says the extent.
  for (auto [dim, count] : llvm::enumerate(given))
    if (count && llvm::cast<mlir::RankedTensorType>(value.getType()).getDimSize(dim) == 0)
      count = {};
  if (llvm::none_of(given, [](mlir::Value count) { return static_cast<bool>(count); }))
    given.clear();
  for (auto [dim, count] : llvm::enumerate(given))
    if (count)
      used.try_emplace(count, llvm::cast<mlir::RankedTensorType>(value.getType()).getDimSize(dim));
  counts[value] = std::move(given);
}

std::optional<CountForm> Bounds::combine(const Extent &a, const Extent &b, Compute compute) const {
  auto getForms = [&](const Extent &extent) -> llvm::SmallVector<CountForm, 2> {
    if (!extent.count)
      return {CountForm::constant(extent.number)};
    return {getForm(extent.count), CountForm::of(extent.count)};
  };
  auto getSize = [](const CountForm &form) { return std::pair(form.terms.size(), form.divisor); };
  std::optional<CountForm> best;
  for (const CountForm &formA : getForms(a))
    for (const CountForm &formB : getForms(b))
      if (std::optional<CountForm> form = compute(formA, formB); form && (!best || getSize(*form) < getSize(*best)))
        best = std::move(form);
  return best;
}

/// `scalar`, where `excess`, a scalar of i64 that is at least 0, is 0. Otherwise the run ends with an error of `kind`.
static mlir::Value checkExcess(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value scalar, mlir::Value excess,
                               int64_t kind) {
  auto type = llvm::cast<mlir::RankedTensorType>(scalar.getType());
  auto vector = mlir::RankedTensorType::get(1, type.getElementType());
  auto indices = mlir::RankedTensorType::get(1, builder.getIntegerType(64, /*isSigned=*/false));
  mlir::Value index =
      CastOp::create(builder, loc, indices, ReshapeOp::create(builder, loc, vector, excess), indices.getElementType());
  auto looked = GatherOp::create(builder, loc, vector, ReshapeOp::create(builder, loc, vector, scalar), index,
                                 /*axis=*/int64_t(0));
  looked->setAttr(kPositionsAttrName, builder.getI64IntegerAttr(kind));
  return ReshapeOp::create(builder, loc, type, looked);
}

mlir::Value Bounds::agree(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, unsigned dim,
                          mlir::Value count) {
  Counts given(get(value));
  mlir::Type scalar = count.getType();
  mlir::Value difference = AbsOp::create(builder, loc, scalar, SubOp::create(builder, loc, scalar, given[dim], count));
  mlir::Value checked = checkExcess(builder, loc, given[dim], difference, kDifferencePositions);
  mlir::Value agreed = ClearTailOp::create(builder, loc, value.getType(), value, checked, static_cast<int64_t>(dim));
  given[dim] = count;
  set(agreed, given);
  return agreed;
}

mlir::Value Bounds::require(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, const CountForm &form,
                            int64_t least) {
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  // A tensor without dimensions has no extents that are asked for.
  if (type.getRank() == 0)
    return value;
  auto scalar = mlir::RankedTensorType::get({}, builder.getI64Type());
  auto number = [&](int64_t given) -> mlir::Value {
    return ConstantOp::create(builder, loc, scalar, mlir::DenseElementsAttr::get(scalar, given));
  };
  mlir::Value shortage = number(least - form.added);
  for (const CountForm::Term &term : form.terms)
    shortage = SubOp::create(builder, loc, scalar, shortage,
                             MulOp::create(builder, loc, scalar, term.count, number(term.factor)));
  shortage = MaxOp::create(builder, loc, scalar, shortage, number(0));
  Counts given(get(value));
  int64_t dim = 0;
  for (auto [candidate, count] : llvm::enumerate(given))
    if (count)
      dim = static_cast<int64_t>(candidate);
  mlir::Value extent = given.empty() ? number(type.getDimSize(dim)) : given[dim];
  mlir::Value checked = checkExcess(builder, loc, extent, shortage, kShortagePositions);
  mlir::Value required = ClearTailOp::create(builder, loc, type, value, checked, dim);
  // Of a result without elements nothing is computed: the count itself is looked up.
  if (!given.empty()) {
    forms.try_emplace(checked, getForm(extent));
    given[dim] = checked;
  }
  set(required, given);
  return required;
}

void Bounds::forget(mlir::Value value) {
  counts.erase(value);
  if (auto form = forms.find(value); form != forms.end()) {
    if (auto made = formed.find(form->second.getKey()); made != formed.end() && made->second == value)
      formed.erase(made);
    forms.erase(form);
  }
  if (auto derivation = derivations.find(value); derivation != derivations.end()) {
    derived.erase(derivation->second);
    derivations.erase(derivation);
  }
}

int64_t Bounds::getBound(mlir::Value count) const {
  auto known = used.find(count);
  if (known != used.end())
    return known->second;
  auto form = forms.find(count);
  return form == forms.end() ? std::numeric_limits<int64_t>::max() : getBound(form->second);
}

mlir::Value dovetail::importer::clearTails(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                                           llvm::ArrayRef<mlir::Value> counts) {
  for (auto [dim, count] : llvm::enumerate(counts))
    if (count)
      value = ClearTailOp::create(builder, loc, value, count, static_cast<int64_t>(dim));
  return value;
}

void Bounds::clearTails(mlir::Operation *op, unsigned operand, llvm::ArrayRef<mlir::Value> which) {
  mlir::OpBuilder builder(op);
  mlir::Value value = op->getOperand(operand);
  Counts given(get(value));
  mlir::Value cleared = importer::clearTails(builder, op->getLoc(), value, which);
  set(cleared, given);
  op->setOperand(operand, cleared);
}

namespace {
/// The dimensions of the results of one operation.
class ResultBounds {
public:
  ResultBounds(const Bounds &bounds, DefinitionOpInterface op)
      : bounds(bounds), op(op), definition(op.getDefinition()), counts(definition.loops.size()) {}

  std::optional<Obstacle> infer();
  Counts getCounts() const { return Counts(llvm::ArrayRef(counts).take_front(definition.resultRank)); }
  /// The counts of the dimensions of an operand over which products of its elements are summed: zeros in their tails,
  /// and in those of the other factor, add nothing.
  Counts getSummed(unsigned operand) const;
  const Definition &getDefinition() const { return definition; }
  /// A dimension of an operand that meets one of another operand, which `count` bounds.
  struct Meeting {
    unsigned operand, dim;
    mlir::Value count;
  };
  llvm::ArrayRef<Meeting> getMeetings() const { return meetings; }

private:
  /// The loop that gives the coordinates of a dimension that is read, one for each and in order, if it is of the result
  /// and an element depends on no other of its iterations, or on those before it alone; or if products are summed over
  /// it.
  std::optional<unsigned> getLoop(const layout::AccessDim &dim, int64_t extent) const;
  Obstacle describe(unsigned operand, unsigned dim, const llvm::Twine &why) const;

  const Bounds &bounds;
  DefinitionOpInterface op;
  Definition definition;
  Counts counts; ///< For each loop.
  llvm::SmallVector<Meeting> meetings;
};
} // namespace

std::optional<unsigned> ResultBounds::getLoop(const layout::AccessDim &dim, int64_t extent) const {
  std::optional<int> loop = dim.index.asLoop();
  if (!loop || dim.divisor != 1 || definition.loops[*loop].extent != extent)
    return std::nullopt;
  if (*loop >= static_cast<int>(definition.resultRank))
    return definition.isProduct && definition.loops[*loop].kind == LoopKind::Reduction ? loop : std::nullopt;
  bool isForward = definition.scan && static_cast<int>(definition.scan->loop) == *loop && !definition.scan->isReversed;
  if (!isForward && (definition.isLine(*loop) || definition.loops[*loop].kind == LoopKind::Scan))
    return std::nullopt;
  return *loop;
}

Obstacle ResultBounds::describe(unsigned operand, unsigned dim, const llvm::Twine &why) const {
  int64_t bound = llvm::cast<mlir::RankedTensorType>(op->getOperand(operand).getType()).getDimSize(dim);
  return describeBounded("operand " + llvm::Twine(operand) + " of its " + op->getName().stripDialect(), dim, bound,
                         why);
}

std::optional<Obstacle> ResultBounds::infer() {
  auto getExtent = [&](unsigned operand, unsigned dim) {
    return llvm::cast<mlir::RankedTensorType>(op->getOperand(operand).getType()).getDimSize(dim);
  };
  for (const Access &read : definition.reads)
    for (auto [dim, count] : llvm::enumerate(bounds.get(op->getOperand(read.operand)))) {
      if (!count)
        continue;
      std::optional<unsigned> loop = getLoop(read.dims[dim], getExtent(read.operand, dim));
      if (!loop)
        return describe(read.operand, dim, "its result depends on that extent");
      if (counts[*loop] && counts[*loop] != count)
        meetings.push_back({read.operand, static_cast<unsigned>(dim), counts[*loop]});
      else
        counts[*loop] = count;
    }
  // What is read along a bounded dimension is bounded by the same count, or broadcast.
  for (const Access &read : definition.reads) {
    llvm::ArrayRef<mlir::Value> own = bounds.get(op->getOperand(read.operand));
    for (auto [dim, access] : llvm::enumerate(read.dims)) {
      if ((!own.empty() && own[dim]) || getExtent(read.operand, dim) == 1)
        continue;
      for (auto [loop, count] : llvm::enumerate(counts))
        if (count && access.index.dependsOn(loop))
          return describeBounded(loop < definition.resultRank ? "its result" : "its sum", loop,
                                 definition.loops[loop].extent,
                                 "operand " + llvm::Twine(read.operand) + " is read along it, but has the extent " +
                                     llvm::Twine(getExtent(read.operand, dim)) + " in dimension " + llvm::Twine(dim));
    }
  }
  return std::nullopt;
}

Counts ResultBounds::getSummed(unsigned operand) const {
  Counts summed;
  for (const Access &read : definition.reads)
    if (read.operand == operand)
      for (auto [dim, access] : llvm::enumerate(read.dims)) {
        std::optional<int> loop = access.index.asLoop();
        summed.resize(read.dims.size());
        if (loop && *loop >= static_cast<int>(definition.resultRank))
          summed[dim] = counts[*loop];
      }
  return summed;
}

std::optional<Obstacle> Bounds::infer(mlir::Operation *op) {
  if (llvm::any_of(op->getResults(), [&](mlir::Value result) { return isKnown(result); }))
    return std::nullopt;
  if (llvm::none_of(op->getOperands(), [&](mlir::Value operand) { return isBounded(operand); })) {
    // What is made of values that have no tails any more has none.
    if (llvm::any_of(op->getOperands(), [&](mlir::Value operand) { return isKnown(operand); }))
      for (mlir::Value result : op->getResults())
        set(result, {});
    return std::nullopt;
  }
  auto definitionOp = llvm::dyn_cast<DefinitionOpInterface>(op);
  if (!definitionOp)
    return Obstacle{"its " + op->getName().stripDialect().str() + " has an operand whose extent varies from run to run",
                    "export the model with an extent that is constant"};
  ResultBounds results(*this, definitionOp);
  if (std::optional<Obstacle> obstacle = results.infer())
    return obstacle;
  for (const ResultBounds::Meeting &meeting : results.getMeetings())
    // Another read of the operand may have seen to it.
    if (mlir::Value operand = op->getOperand(meeting.operand); get(operand)[meeting.dim] != meeting.count) {
      mlir::OpBuilder builder(op);
      op->setOperand(meeting.operand, agree(builder, op->getLoc(), operand, meeting.dim, meeting.count));
    }
  for (unsigned operand = 0; operand < op->getNumOperands() && results.getDefinition().isProduct; ++operand)
    clearTails(op, operand, results.getSummed(operand));
  // An index in a tail is nobody's: it must not be reported.
  for (const DataIndex &index : results.getDefinition().getDataIndices())
    if (unsigned operand = results.getDefinition().reads[index.read].operand; isBounded(op->getOperand(operand)))
      clearTails(op, operand, Counts(get(op->getOperand(operand))));
  for (mlir::Value result : op->getResults())
    set(result, results.getCounts());
  return std::nullopt;
}
