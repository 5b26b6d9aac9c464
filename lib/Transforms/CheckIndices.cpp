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
#include "dovetail/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

namespace dovetail {
#define GEN_PASS_DEF_CHECKINDICES
#include "dovetail/Transforms/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// Checks the elements of `indices`, which take turns at dimensions of `extents`. Returns whether they are constants,
/// and in range.
static FailureOr<bool> checkConstant(Operation *op, Value indices, ArrayRef<int64_t> extents) {
  Attribute constant;
  if (!matchPattern(indices, m_Constant(&constant)))
    return false;
  std::optional<ConstantReader> reader = ConstantReader::create(constant);
  if (!reader)
    return false;
  bool isUnsigned = isUnsignedElement(indices.getType());
  for (int64_t i = 0, count = cast<RankedTensorType>(indices.getType()).getNumElements(); i < count; ++i) {
    APInt index = reader->readBits(i);
    int64_t extent = extents[i % extents.size()];
    if (extent > 0 && lookUp(index, isUnsigned, extent))
      continue;
    SmallString<24> text;
    index.toString(text, 10, !isUnsigned);
    return op->emitOpError("has index ") << text << ", which is out of range where the extent is " << extent
                                         << "; valid ones are " << (isUnsigned ? 0 : -extent) << " to " << extent - 1;
  }
  return true;
}

/// The dimensions, by extent, that the elements of an operation's indices are of, in turns, and these indices.
static SmallVector<std::pair<Value, SmallVector<int64_t>>> getIndices(DefinitionOpInterface op) {
  SmallVector<std::pair<Value, SmallVector<int64_t>>> indices;
  Definition definition = op.getDefinition();
  auto getRead = [&](unsigned read) { return op->getOperand(definition.reads[read].operand); };
  // Nothing is looked up where there is nothing.
  for (unsigned loop : definition.getLookups())
    if (int64_t extent = definition.loops[loop].extent; extent > 0)
      indices.push_back({getRead(definition.loops[loop].index), {extent}});
  if (!definition.writes)
    return indices;
  SmallVector<int64_t> extents;
  for (auto [dim, written] : llvm::enumerate(*definition.writes))
    if (written.index.hasUnknown())
      extents.push_back(definition.loops[dim].extent);
  indices.push_back({getRead(definition.indexRead), extents});
  return indices;
}

namespace {
struct CheckIndices : dovetail::impl::CheckIndicesBase<CheckIndices> {
  using CheckIndicesBase::CheckIndicesBase;

  void runOnOperation() override {
    bool hasFailed = false;
    getOperation()->walk([&](DefinitionOpInterface op) {
      for (auto &[indices, extents] : getIndices(op)) {
        FailureOr<bool> isRight = checkConstant(op, indices, extents);
        hasFailed |= failed(isRight);
        if (atRunTime && succeeded(isRight) && !*isRight)
          op->setAttr(kCheckIndicesAttrName, UnitAttr::get(&getContext()));
      }
    });
    if (hasFailed)
      signalPassFailure();
  }
};
} // namespace
