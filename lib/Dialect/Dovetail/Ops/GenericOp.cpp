//===- GenericOp.cpp - An operation that is its definition ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what GenericOp answers as a DefinitionOpInterface.
//
//===----------------------------------------------------------------------===//

#include "../Definition/ReductionSupport.h"
#include "GenericRegions.h"

#include "dovetail/Dialect/Dovetail/IR/DefinitionText.h"

#include "dovetail/Dialect/Dovetail/Definition/CountElement.h"

using namespace mlir;
using namespace dovetail;
using layout::AccessDim;
using layout::IndexExpr;

void GenericOp::build(OpBuilder &builder, OperationState &state, TypeRange types, ValueRange inputs,
                      const Definition &definition, ArrayRef<std::string> names, std::optional<ReduceKind> kind) {
  MLIRContext *context = builder.getContext();
  state.addTypes(types);
  state.addOperands(inputs);
  SmallVector<StringRef> texts(names.begin(), names.end());
  SmallVector<std::string> defaults;
  for (unsigned loop = texts.size(); loop < definition.loops.size(); ++loop)
    defaults.push_back(getLoopName({}, loop));
  llvm::append_range(texts, defaults);
  state.addAttribute(getStatementAttrName(state.name), DefinitionAttr::get(context, definition));
  state.addAttribute(getLoopNamesAttrName(state.name), builder.getStrArrayAttr(texts));
  if (kind)
    state.addAttribute(getKindAttrName(state.name), ReduceKindAttr::get(context, *kind));
  constexpr unsigned fixedRegions = 5;
  for (unsigned region = 0; region < fixedRegions + 2 * definition.passes.size(); ++region)
    state.addRegion();
}

std::optional<unsigned> GenericOp::findLoop(StringRef name) {
  for (auto [number, other] : llvm::enumerate(getLoopNames().getAsRange<StringAttr>()))
    if (other.getValue() == name)
      return number;
  return std::nullopt;
}

SmallVector<std::string> GenericOp::getNames() {
  return llvm::map_to_vector(getLoopNames().getAsRange<StringAttr>(), [](StringAttr name) { return name.str(); });
}

//===----------------------------------------------------------------------===//
// Flags that follow from regions
//===----------------------------------------------------------------------===//

/// The read whose element `value` is, as a factor is widened; -1 if it is none.
static int getFactor(Value value, Type accumulator, const Definition &definition, TypeRange operands) {
  if (value.getType() != accumulator)
    return -1;
  Operation *defining = value.getDefiningOp(), *extension = nullptr;
  if (isa_and_present<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(defining)) {
    extension = defining;
    defining = extension->getOperand(0).getDefiningOp();
  }
  auto read = dyn_cast_if_present<ReadOp>(defining);
  if (!read || !read.getUnknowns().empty() || !read.getCoordinates().empty() ||
      read.getNumber() >= definition.reads.size())
    return -1;
  unsigned operand = definition.reads[read.getNumber()].operand;
  if (operand >= operands.size())
    return -1;
  bool isUnsigned = isUnsignedElement(operands[operand]);
  if (isa_and_present<arith::ExtSIOp>(extension) ? isUnsigned
                                                 : isa_and_present<arith::ExtUIOp>(extension) && !isUnsigned)
    return -1;
  return static_cast<int>(read.getNumber());
}

/// Whether the body is the product of the elements of reads 0 and 1, of operands 0 and 1, as accumulators are.
static bool isProduct(const Definition &definition, TypeRange operands, TypeRange results, Region &body) {
  if (results.size() != 1 || operands.size() != 2 || definition.reads.size() != 2 || !definition.passes.empty() ||
      !body.hasOneBlock() || body.front().empty())
    return false;
  for (auto [number, read] : llvm::enumerate(definition.reads))
    if (read.operand != number || countUnknowns(read) != 0)
      return false;
  for (const Loop &loop : definition.loops)
    if (loop.isLookup() || loop.kind == LoopKind::Part)
      return false;
  Type accumulator = getAccumulatorType(getElementTypeOrSelf(results.front()));
  auto result = dyn_cast<ReturnOp>(body.front().back());
  if (!result || result.getNumOperands() != 1)
    return false;
  Operation *product = result.getOperand(0).getDefiningOp();
  if (!isa_and_present<arith::MulFOp, arith::MulIOp>(product))
    return false;
  return llvm::all_of(llvm::enumerate(product->getOperands()), [&](auto factor) {
    return getFactor(factor.value(), accumulator, definition, operands) == static_cast<int>(factor.index());
  });
}

Definition dovetail::withFlags(Definition definition, std::optional<ReduceKind> kind, TypeRange operands,
                               TypeRange results, Region &combine, Region &finish, Region &body) {
  if (!definition.scan)
    definition.lines.clear();
  if (definition.writes)
    for (auto [loop, written] : llvm::enumerate(*definition.writes))
      if (written.index.hasUnknown())
        definition.lines.push_back(loop);
  bool combines = kind || !combine.empty();
  definition.isFold = combines && !definition.scan && !definition.writes;
  definition.isProduct =
      definition.isFold && kind == ReduceKind::Sum && finish.empty() && isProduct(definition, operands, results, body);
  return definition;
}

void GenericOp::setFlags() {
  setStatementAttr(
      DefinitionAttr::get(getContext(), withFlags(getStatement().getDefinition(), getKind(), getOperandTypes(),
                                                  getResultTypes(), getCombine(), getFinish(), getBody())));
}

SmallVector<Type> GenericOp::getAccumulatorTypes() {
  SmallVector<Type> types;
  if (std::optional<ReduceKind> kind = getKind()) {
    bool isWide = kind == ReduceKind::Sum || kind == ReduceKind::Prod;
    for (Type type : getResultTypes()) {
      Type element = getElementTypeOrSelf(type);
      types.push_back(isWide ? getAccumulatorType(element) : ElementBuilder::scalarType(element));
    }
  } else if (!getInit().empty()) {
    llvm::append_range(types, getInit().front().getTerminator()->getOperandTypes());
  }
  return types;
}

//===----------------------------------------------------------------------===//
// DefinitionOpInterface
//===----------------------------------------------------------------------===//

Definition GenericOp::getDefinition() { return getStatement().getDefinition(); }

static Type getElementType(GenericOp op, unsigned result) {
  return getElementTypeOrSelf(op.getResult(result).getType());
}

SmallVector<Value> GenericOp::emitBody(BodyBuilder &body) {
  SmallVector<Value> values = emitRegion(body.elements, &body, *this, getBody(), {});
  if (std::optional<ReduceKind> kind = getKind(); kind && !getStatement().getDefinition().writes)
    for (auto [number, value] : llvm::enumerate(values))
      value = emitReductionTerm(body.elements, *kind, getElementType(*this, number), value);
  return values;
}

SmallVector<Value> GenericOp::emitInit(ElementBuilder &builder) {
  std::optional<ReduceKind> kind = getKind();
  if (!kind)
    return getInit().empty() ? SmallVector<Value>() : emitRegion(builder, nullptr, *this, getInit(), {});
  SmallVector<Value> values;
  for (unsigned number = 0; number < getNumResults(); ++number)
    values.push_back(emitReductionInit(builder, *kind, getElementType(*this, number)));
  return values;
}

SmallVector<Value> GenericOp::emitCombine(ElementBuilder &builder, ValueRange accumulators, ValueRange term) {
  std::optional<ReduceKind> kind = getKind();
  if (!kind) {
    SmallVector<Value> arguments(accumulators);
    llvm::append_range(arguments, term);
    return emitRegion(builder, nullptr, *this, getCombine(), arguments);
  }
  bool isUpdate = getStatement().getDefinition().writes.has_value();
  SmallVector<Value> values;
  for (auto [number, a, b] : llvm::enumerate(accumulators, term)) {
    Type type = getElementType(*this, number);
    values.push_back(isUpdate ? emitUpdate(builder, type, *kind, a, b)
                              : emitReductionCombine(builder, *kind, isUnsignedElement(type), a, b));
  }
  return values;
}

SmallVector<Value> GenericOp::emitFinish(BodyBuilder &body, ValueRange accumulators) {
  if (!getFinish().empty())
    return emitRegion(body.elements, &body, *this, getFinish(), accumulators);
  SmallVector<Value> values;
  for (auto [number, value] : llvm::enumerate(accumulators))
    values.push_back(narrow(body.elements, value, getElementType(*this, number)));
  return values;
}

Value GenericOp::emitPass(BodyBuilder &body, unsigned pass, ValueRange found) {
  return emitRegion(body.elements, &body, *this, getPassRegion(pass), found).front();
}

Value GenericOp::emitFound(ElementBuilder &builder, unsigned pass, Value folded, Value count) {
  Region &region = getFoundRegion(pass);
  return region.empty() ? folded : emitRegion(builder, nullptr, *this, region, {folded, count}).front();
}

SmallVector<Value> GenericOp::emitBlock(ElementBuilder &builder, ValueRange found, Value count) {
  if (getBlockRegion().empty())
    return SmallVector<Value>(found);
  SmallVector<Value> arguments(found);
  arguments.push_back(count);
  return emitRegion(builder, nullptr, *this, getBlockRegion(), arguments);
}

//===----------------------------------------------------------------------===//
// Answers for costs and formats
//===----------------------------------------------------------------------===//

bool GenericOp::isCheapElement() {
  // Functions such as error functions take about as long as this many additions, and are computed anew.
  constexpr double mostOperations = 128;
  Definition definition = getDefinition();
  if (!definition.isCheap())
    return false;
  // An element that an index names is one element. Others are found at positions, or in loops.
  if (llvm::any_of(ArrayRef(definition.loops).drop_front(definition.resultRank),
                   [](const Loop &loop) { return loop.reduction != ReduceKind::Owner; }))
    return false;
  // Several elements at unknown values, such as those around a point.
  llvm::SmallDenseMap<unsigned, unsigned> places;
  bool isSpread = false;
  getBody().walk([&](ReadOp read) {
    if (!read.getUnknowns().empty())
      isSpread |= ++places[read.getNumber()] > 1;
  });
  return !isSpread && countElement(*this, definition, getExtents(definition.loops)) <= mostOperations;
}

/// Whether a dimension is read at several places for one element: those of a window, or those that data name.
static bool isSpread(const Definition &definition, const AccessDim &dim) {
  if (dim.index.hasUnknown())
    return true;
  for (auto [number, loop] : llvm::enumerate(definition.loops))
    if ((loop.kind == LoopKind::Tap || loop.isLookup()) && dim.index.dependsOn(number))
      return true;
  return false;
}

/// Whether a read takes dimensions apart or together, or adds or leaves out some, and moves all elements in their
/// order.
static bool isReshaped(const Definition &definition, const Access &read) {
  if (definition.isFold || definition.reads.size() != 1 || definition.loops.size() != definition.resultRank)
    return false;
  bool changes = read.dims.size() != definition.resultRank;
  for (const AccessDim &dim : read.dims)
    for (const IndexExpr::Term &term : dim.index.getTerms())
      changes |= term.kind == IndexExpr::Kind::Quotient || term.kind == IndexExpr::Kind::Remainder;
  auto isUsed = [&](auto loop) {
    return loop.value().extent == 1 || llvm::any_of(read.dims, [&](const AccessDim &dim) {
             return dim.index.dependsOn(static_cast<int>(loop.index()));
           });
  };
  return changes && llvm::all_of(llvm::enumerate(definition.loops), isUsed);
}

/// A window over positions, or over channels, is best served by channels that are neighbours in memory.
FormatPreference GenericOp::getFormatPreference() {
  const Definition &definition = getStatement().getDefinition();
  if (definition.scan || definition.writes)
    return FormatPreference::Any;
  if (definition.isProduct && definition.getNumTaps() == 0)
    return FormatPreference::RowMajor;
  // Elements that are moved by an index are neighbours before and after that.
  bool moves = llvm::any_of(definition.loops, [](const Loop &loop) { return loop.reduction == ReduceKind::Owner; });
  bool hasPart = llvm::any_of(definition.loops, [](const Loop &loop) { return loop.kind == LoopKind::Part; });
  if (moves || hasPart)
    return FormatPreference::Any;
  for (const Access &read : definition.reads) {
    if (isReshaped(definition, read))
      return FormatPreference::RowMajor;
    if (definition.resultRank >= 3 && read.dims.size() == definition.resultRank &&
        llvm::any_of(ArrayRef(read.dims).drop_front(1),
                     [&](const AccessDim &dim) { return isSpread(definition, dim); }))
      return FormatPreference::ChannelsLast;
  }
  return FormatPreference::Any;
}
