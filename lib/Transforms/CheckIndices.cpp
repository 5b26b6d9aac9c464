//===- CheckIndices.cpp - Report indices that are out of range -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reports constant indices that are out of range, and has others be checked when they are read.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/Evaluation/ConstantReader.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Dialect/Dovetail/IR/Positions.h"
#include "dovetail/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

namespace dovetail {
#define GEN_PASS_DEF_CHECKINDICES
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// Checks an index of `op`. Returns whether it is a constant, and in range.
static FailureOr<bool> checkConstant(DefinitionOpInterface op, const Definition &definition, const DataIndex &index) {
  Value indices = op->getOperand(definition.reads[index.read].operand);
  Attribute constant;
  if (!matchPattern(indices, m_Constant(&constant)))
    return false;
  std::optional<ConstantReader> reader = ConstantReader::create(constant);
  if (!reader)
    return false;
  auto type = cast<RankedTensorType>(indices.getType());
  bool isUnsigned = isUnsignedElement(type);
  int64_t extent = definition.loops[index.loop].extent, step = index.component ? type.getShape().back() : 1;
  for (int64_t i = index.component.value_or(0), count = type.getNumElements(); i < count; i += step) {
    APInt given = reader->readBits(i);
    if (extent > 0 && lookUp(given, isUnsigned, extent))
      continue;
    SmallString<24> text;
    given.toString(text, 10, !isUnsigned);
    if (auto positions = op->getAttrOfType<IntegerAttr>(kPositionsAttrName))
      extent = positions.getInt();
    return op.emitOpError("has index ") << text << ", which is out of range where the extent is " << extent
                                        << "; valid ones are " << (isUnsigned ? 0 : -extent) << " to " << extent - 1;
  }
  return true;
}

/// Whether the index says how far extents are from what they have to be. Without a check, results would be wrong.
static bool comparesExtents(Operation *op) {
  auto positions = op->getAttrOfType<IntegerAttr>(kPositionsAttrName);
  return positions && positions.getInt() <= kDifferencePositions;
}

namespace {
struct CheckIndices : dovetail::impl::CheckIndicesBase<CheckIndices> {
  using CheckIndicesBase::CheckIndicesBase;

  void runOnOperation() override {
    bool hasFailed = false;
    getOperation()->walk([&](DefinitionOpInterface op) {
      Definition definition = op.getDefinition();
      for (const DataIndex &index : definition.getDataIndices()) {
        // A position that is no integer may be anywhere: the operation says what is there.
        if (isa<FloatType>(getElementTypeOrSelf(op->getOperand(definition.reads[index.read].operand).getType())))
          continue;
        // Nothing is looked up where there is nothing.
        if (definition.loops[index.loop].isLookup() && definition.loops[index.loop].extent == 0)
          continue;
        FailureOr<bool> isRight = checkConstant(op, definition, index);
        hasFailed |= failed(isRight);
        if ((atRunTime || comparesExtents(op)) && succeeded(isRight) && !*isRight)
          op->setAttr(kCheckIndicesAttrName, UnitAttr::get(&getContext()));
      }
    });
    if (hasFailed)
      signalPassFailure();
  }
};
} // namespace
