//===- Evaluate.cpp - Constants computed from element definitions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the evaluation of operations on constants.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Evaluation/Evaluate.h"

#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.h"
#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"
#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;

/// The position of an element in row-major order, if its coordinates are constants, and in a tensor of `shape`.
static std::optional<int64_t> getPosition(ArrayRef<Value> index, ArrayRef<int64_t> shape) {
  int64_t position = 0;
  for (auto [coordinate, extent] : llvm::zip_equal(index, shape)) {
    std::optional<int64_t> constant = ElementBuilder::getConstantIndex(coordinate);
    if (!constant || *constant < 0 || *constant >= extent)
      return std::nullopt;
    position = position * extent + *constant;
  }
  return position;
}

namespace {
/// Reads operands from constants, at constant coordinates.
class ConstantSource : public ElementSource {
public:
  ConstantSource(ElementBuilder &builder, ArrayRef<ConstantReader> readers, Operation *op, const Definition &definition)
      : builder(builder), readers(readers), op(op), definition(definition) {}

  Value read(unsigned operand, ArrayRef<Value> index) override {
    auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
    if (std::optional<int64_t> position = getPosition(index, type.getShape()))
      return arith::ConstantOp::create(builder.getBuilder(), builder.getLoc(), readers[operand].read(*position));
    failed = true;
    return builder.zero(type.getElementType());
  }

  std::pair<Value, Value> getLoopRange(unsigned loop) override {
    return {builder.index(0), builder.index(definition.loops[loop].extent)};
  }

  void checkIndex(unsigned, Value isWrong, Value) override { failed |= !matchPattern(isWrong, m_Zero()); }

  /// Whether a coordinate, or an index, was not a constant inside of its tensor.
  bool hasFailed() const { return failed; }

private:
  ElementBuilder &builder;
  ArrayRef<ConstantReader> readers;
  Operation *op;
  const Definition &definition;
  bool failed = false;
};

/// The elements of a result in row-major order.
using Elements = SmallVector<Attribute>;

/// Keeps the elements of results, which are constants.
class ConstantSink : public ElementSink {
public:
  ConstantSink(ElementBuilder &builder, Operation *op) : builder(builder), op(op) {
    for (Type type : op->getResultTypes())
      values.emplace_back(cast<RankedTensorType>(type).getNumElements());
  }

  void write(unsigned result, ArrayRef<Value> index, Value element) override {
    TypedAttr constant;
    std::optional<int64_t> position = getPosition(index, getType(result).getShape());
    if (position && matchPattern(element, m_Constant(&constant)))
      values[result][*position] = constant;
    else
      failed = true;
  }
  Value readBack(unsigned result, ArrayRef<Value> index) override {
    std::optional<int64_t> position = getPosition(index, getType(result).getShape());
    if (position && values[result][*position])
      return arith::ConstantOp::create(builder.getBuilder(), builder.getLoc(),
                                       cast<TypedAttr>(values[result][*position]));
    failed = true;
    return builder.zero(getType(result).getElementType());
  }

  Value createScratch(Type type, int64_t size) override {
    scratch.emplace_back(size);
    return builder.index(static_cast<int64_t>(scratch.size()) - 1);
  }
  Value loadScratch(Value memory, Type type, Value position) override {
    if (Attribute *entry = getScratch(memory, position); entry && *entry)
      return arith::ConstantOp::create(builder.getBuilder(), builder.getLoc(), cast<TypedAttr>(*entry));
    failed = true;
    return builder.zero(type);
  }
  void storeScratch(Value memory, Value position, Value scalar) override {
    TypedAttr constant;
    Attribute *entry = getScratch(memory, position);
    if (entry && matchPattern(scalar, m_Constant(&constant)))
      *entry = constant;
    else
      failed = true;
  }

  /// The elements of all results, if all of them were written as constants.
  FailureOr<SmallVector<Elements>> getValues() const {
    auto isThere = [](Attribute value) { return static_cast<bool>(value); };
    if (failed || !llvm::all_of(values, [&](const Elements &each) { return llvm::all_of(each, isThere); }))
      return failure();
    return values;
  }

private:
  RankedTensorType getType(unsigned result) const { return cast<RankedTensorType>(op->getResult(result).getType()); }
  /// Null if it is not known which place is meant.
  Attribute *getScratch(Value memory, Value position) {
    std::optional<int64_t> number = ElementBuilder::getConstantIndex(memory);
    std::optional<int64_t> place = ElementBuilder::getConstantIndex(position);
    return number && place ? &scratch[*number][*place] : nullptr;
  }

  ElementBuilder &builder;
  Operation *op;
  SmallVector<Elements> values, scratch;
  bool failed = false;
};
} // namespace

/// True if all loops that are gone through have at most `limit` iterations together.
static bool isSmall(ArrayRef<Loop> loops, int64_t limit) {
  int64_t count = 1;
  for (const Loop &loop : loops)
    if (!loop.isLookup() && (llvm::MulOverflow(count, std::max<int64_t>(loop.extent, 1), count) || count > limit))
      return false;
  return true;
}

/// The coordinates of element number `position`.
static SmallVector<Value> getCoordinates(ElementBuilder &builder, int64_t position, ArrayRef<int64_t> shape) {
  SmallVector<Value> coordinates(shape.size());
  for (size_t dim = shape.size(); dim-- > 0; position /= shape[dim])
    coordinates[dim] = builder.index(position % shape[dim]);
  return coordinates;
}

/// Removes what was built so far, none of which is needed any more.
static void clear(ElementBuilder &builder) {
  Block *scratch = builder.getBuilder().getBlock();
  scratch->clear();
  builder.getBuilder().setInsertionPointToStart(scratch);
}

/// The elements of results that are asked for one by one; fails if one is not constant.
static FailureOr<SmallVector<Elements>> evaluateElements(Operation *op, const Definition &definition,
                                                         ElementBuilder &builder, ConstantSource &source) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<Elements> values(op->getNumResults());
  for (int64_t i = 0, count = type.getNumElements(); i < count; ++i) {
    SmallVector<Value> scalars =
        emitElement(op, definition, builder, getCoordinates(builder, i, type.getShape()), source);
    for (auto [scalar, elements] : llvm::zip_equal(scalars, values)) {
      TypedAttr constant;
      if (source.hasFailed() || !matchPattern(scalar, m_Constant(&constant)))
        return failure();
      elements.push_back(constant);
    }
    clear(builder);
  }
  return values;
}

/// The elements of results that are written line by line.
static FailureOr<SmallVector<Elements>> evaluateLines(DefinitionOpInterface op, const Definition &definition,
                                                      ElementBuilder &builder, ConstantSource &source) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  ConstantSink sink(builder, op);
  SmallVector<int64_t> lines(type.getShape());
  for (unsigned loop : definition.lines)
    lines[loop] = 1;
  for (int64_t i = 0, count = type.getNumElements() == 0 ? 0 : ShapedType::getNumElements(lines); i < count; ++i) {
    SmallVector<Value> loops = getCoordinates(builder, i, lines);
    for (unsigned loop : definition.lines)
      loops[loop] = {};
    LineBuilder line(builder, op, definition, loops, source, sink);
    op.emitLine(line);
    if (source.hasFailed())
      return failure();
    clear(builder);
  }
  return sink.getValues();
}

/// The elements as an attribute.
static DenseElementsAttr getConstant(RankedTensorType type, Elements &values) {
  // One value stands for all when they are equal.
  if (!values.empty() && llvm::all_equal(values))
    values.truncate(1);
  if (isNarrow(type.getElementType()) && !values.empty())
    return DenseElementsAttr::getFromRawBuffer(type, llvm::map_to_vector(values, [](Attribute value) {
                                                 return static_cast<char>(
                                                     cast<IntegerAttr>(value).getValue().getZExtValue());
                                               }));
  if (isa<FloatType>(type.getElementType()))
    return DenseElementsAttr::get(
        type, llvm::map_to_vector(values, [](Attribute value) { return cast<FloatAttr>(value).getValue(); }));
  return DenseElementsAttr::get(
      type, llvm::map_to_vector(values, [](Attribute value) { return cast<IntegerAttr>(value).getValue(); }));
}

/// True if an evaluation that makes at most `maxElements` elements goes through few iterations.
static bool isSmall(const Definition &definition, int64_t maxElements) {
  // A reduction may run over more elements than its result has, but not without bounds.
  constexpr int64_t maxTermsPerElement = 64;
  ArrayRef<Loop> loops = definition.loops, results = loops.take_front(definition.resultRank);
  if (!isSmall(results, maxElements))
    return false;
  if (definition.lines.empty())
    return isSmall(loops.drop_back(definition.getNumTaps()), maxTermsPerElement * maxElements);
  SmallVector<Loop> rest(loops.drop_front(definition.resultRank));
  for (auto [number, loop] : llvm::enumerate(results))
    if (!definition.isLine(number))
      rest.push_back(loop);
  return isSmall(rest, maxTermsPerElement * maxElements);
}

FailureOr<SmallVector<DenseElementsAttr>> dovetail::evaluate(Operation *op, ArrayRef<Attribute> operands,
                                                             int64_t maxElements) {
  auto partitionable = dyn_cast<DefinitionOpInterface>(op);
  if (!partitionable || !isPure(op) || operands.size() != op->getNumOperands())
    return failure();
  Definition definition = partitionable.getDefinition();
  if (!isSmall(definition, maxElements))
    return failure();
  SmallVector<ConstantReader> readers;
  for (Attribute operand : operands) {
    std::optional<ConstantReader> reader = ConstantReader::create(operand);
    if (!reader)
      return failure();
    readers.push_back(*reader);
  }

  Block scratch;
  OpBuilder ops(op->getContext());
  ops.setInsertionPointToStart(&scratch);
  ElementBuilder builder(ops, op->getLoc(), /*unrollLoops=*/true);
  ConstantSource source(builder, readers, op, definition);
  FailureOr<SmallVector<Elements>> evaluated = definition.lines.empty()
                                                   ? evaluateElements(op, definition, builder, source)
                                                   : evaluateLines(partitionable, definition, builder, source);
  if (failed(evaluated))
    return failure();
  SmallVector<DenseElementsAttr> constants;
  for (auto [elements, result] : llvm::zip_equal(*evaluated, op->getResultTypes()))
    constants.push_back(getConstant(cast<RankedTensorType>(result), elements));
  return constants;
}
