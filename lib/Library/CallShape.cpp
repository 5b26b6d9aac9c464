//===- CallShape.cpp - Calls as libraries see them -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the shapes of calls.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Library/CallShape.h"

using namespace mlir;
using namespace dovetail;

std::optional<CallShape> CallShape::find(Operation *op) {
  // Most operations are elementwise, whose definitions nobody has to look at.
  auto defined = dyn_cast<DefinitionOpInterface>(op);
  if (!defined || op->hasTrait<dovetail::Elementwise>())
    return std::nullopt;
  std::optional<CallForm> form = classify(op);
  if (!form)
    return std::nullopt;
  CallShape shape;
  shape.form = *std::move(form);
  Definition definition = defined.getDefinition();
  shape.loops = getExtents(definition.loops);
  if (auto loops = op->getAttrOfType<LoopShardingsAttr>(kLoopsAttrName))
    shape.splits.assign(loops.getLoops().begin(), loops.getLoops().end());
  for (const Access &read : definition.reads) {
    if (!readsOperand(shape.form, read.operand))
      continue;
    shape.reads.emplace_back(read.dims);
    shape.operands.push_back(cast<RankedTensorType>(op->getOperand(read.operand).getType()));
  }
  shape.result = cast<RankedTensorType>(op->getResult(0).getType());
  return shape;
}

CallShape CallShape::get(plan::CallOpInterface call) {
  CallShape shape;
  shape.form = *call.getCallForm();
  shape.loops = plan::getExtents(call.getLoops());
  shape.splits = plan::getDims(call.getLoops());
  for (auto read : call.getReads().getAsRange<plan::AccessAttr>())
    shape.reads.push_back(read.getDims());
  shape.operands = llvm::map_to_vector(call.getCallOperands(), plan::getTensor);
  shape.result = plan::getTensor(call.getOutput());
  return shape;
}

int64_t CallShape::countTerms() const {
  return ShapedType::getNumElements(ArrayRef(loops).drop_front(result.getRank()));
}

int64_t CallShape::getPadBehind(size_t dim, const layout::Window &window) const {
  // A transposed window is one over the result.
  int64_t read = operands.front().getDimSize(dim + 2), computed = result.getDimSize(dim + 2);
  if (window.isTransposed)
    std::swap(read, computed);
  return (computed - 1) * window.stride + window.reach() - window.pad - read;
}
