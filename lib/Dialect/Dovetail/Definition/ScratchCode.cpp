//===- ScratchCode.cpp - Code of an element that nobody runs --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements emitScratch.
//
//===----------------------------------------------------------------------===//

#include "ScratchCode.h"

#include "dovetail/Dialect/Dovetail/Definition/LineBuilder.h"

using namespace mlir;
using namespace dovetail;

namespace {
/// Values from nowhere.
class Anything : public ElementSource, public ElementSink {
public:
  Anything(ElementBuilder &builder, Operation *op, ArrayRef<int64_t> ends, ReadMarks *marks)
      : builder(builder), op(op), ends(ends), marks(marks) {}

  Value read(unsigned operand, ArrayRef<Value> index) override {
    Value value = make(op->getOperand(operand).getType(), marks ? index : ArrayRef<Value>());
    if (marks && llvm::is_contained(marks->operands, operand))
      marks->found.insert(value);
    return value;
  }
  std::pair<Value, Value> getLoopRange(unsigned loop) override { return {builder.index(0), builder.index(ends[loop])}; }
  void write(unsigned, ArrayRef<Value>, Value) override {}
  Value readBack(unsigned result, ArrayRef<Value>) override { return make(op->getResult(result).getType()); }
  Value createScratch(Type, int64_t) override { return {}; }
  Value loadScratch(Value, Type type, Value) override { return make(type); }
  void storeScratch(Value, Value, Value) override {}

private:
  Value make(Type type, ArrayRef<Value> of = {}) {
    Type scalar = ElementBuilder::scalarType(getElementTypeOrSelf(type));
    return UnrealizedConversionCastOp::create(builder.getBuilder(), builder.getLoc(), scalar, ValueRange(of))
        .getResult(0);
  }

  ElementBuilder &builder;
  Operation *op;
  ArrayRef<int64_t> ends;
  ReadMarks *marks;
};
} // namespace

SmallVector<Value> dovetail::emitScratch(Block &block, DefinitionOpInterface op, const Definition &definition,
                                         ArrayRef<int64_t> ends, ReadMarks *marks) {
  OpBuilder builder(op.getContext());
  builder.setInsertionPointToStart(&block);
  Location location = op.getLoc();
  ElementBuilder elements(builder, location);
  SmallVector<Value> index;
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    index.push_back(block.addArgument(builder.getIndexType(), location));
  Anything anything(elements, op, ends, marks);
  if (definition.lines.empty())
    return emitElement(op, definition, elements, index, anything);
  index.resize(definition.loops.size());
  for (unsigned loop : definition.lines)
    index[loop] = {};
  LineBuilder line(elements, op, definition, index, anything, anything);
  op.emitLine(line);
  return {};
}
