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

#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// Reads operands from constants, at constant coordinates.
class ConstantSource : public ElementSource {
public:
  ConstantSource(ElementBuilder &builder, ArrayRef<ConstantReader> readers, Operation *op, const Definition &definition)
      : builder(builder), readers(readers), op(op), definition(definition) {}

  Value read(unsigned operand, ArrayRef<Value> index) override {
    auto type = cast<RankedTensorType>(op->getOperand(operand).getType());
    int64_t position = 0;
    for (auto [coordinate, extent] : llvm::zip_equal(index, type.getShape())) {
      std::optional<int64_t> constant = ElementBuilder::getConstantIndex(coordinate);
      if (!constant || *constant < 0 || *constant >= extent) {
        failed = true;
        return builder.zero(type.getElementType());
      }
      position = position * extent + *constant;
    }
    return arith::ConstantOp::create(builder.getBuilder(), builder.getLoc(), readers[operand].read(position));
  }

  std::pair<Value, Value> getLoopRange(unsigned loop) override {
    return {builder.index(0), builder.index(definition.loops[loop].extent)};
  }

  /// Whether a coordinate was not a constant inside of its tensor.
  bool hasFailed() const { return failed; }

private:
  ElementBuilder &builder;
  ArrayRef<ConstantReader> readers;
  Operation *op;
  const Definition &definition;
  bool failed = false;
};
} // namespace

/// True if all loops together have at most `limit` iterations.
static bool isSmall(ArrayRef<Loop> loops, int64_t limit) {
  int64_t count = 1;
  for (const Loop &loop : loops)
    if (llvm::MulOverflow(count, std::max<int64_t>(loop.extent, 1), count) || count > limit)
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

FailureOr<DenseElementsAttr> dovetail::evaluate(Operation *op, ArrayRef<Attribute> operands, int64_t maxElements) {
  auto partitionable = dyn_cast<PartitionableOpInterface>(op);
  if (!partitionable || operands.size() != op->getNumOperands())
    return failure();
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  Definition definition = partitionable.getDefinition();
  // A reduction may run over more elements than its result has, but not without bounds.
  constexpr int64_t maxTermsPerElement = 64;
  ArrayRef<Loop> loops = definition.loops;
  if (!isSmall(loops.take_front(definition.resultRank), maxElements) ||
      !isSmall(loops.drop_back(definition.getNumTaps()), maxTermsPerElement * maxElements))
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
  SmallVector<Attribute> values;
  for (int64_t i = 0, count = type.getNumElements(); i < count; ++i) {
    Value scalar = emitElement(op, definition, builder, getCoordinates(builder, i, type.getShape()), source);
    TypedAttr constant;
    if (source.hasFailed() || !matchPattern(scalar, m_Constant(&constant)))
      return failure();
    values.push_back(constant);
    scratch.clear();
    ops.setInsertionPointToStart(&scratch);
  }
  // One value stands for all when they are equal.
  if (!values.empty() && llvm::all_equal(values))
    values.truncate(1);
  if (isa<FloatType>(type.getElementType()))
    return DenseElementsAttr::get(
        type, llvm::map_to_vector(values, [](Attribute value) { return cast<FloatAttr>(value).getValue(); }));
  return DenseElementsAttr::get(
      type, llvm::map_to_vector(values, [](Attribute value) { return cast<IntegerAttr>(value).getValue(); }));
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }
