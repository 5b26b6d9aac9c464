//===- Extents.cpp - Shapes that nodes are given --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements OnnxNode::getExtents, which knows what Shape of a bounded dimension has become on its way to a node.
//
//===----------------------------------------------------------------------===//

#include "OnnxNode.h"

using namespace dovetail;
using namespace dovetail::importer;

/// More operations than lie between a Shape and what it is for.
static constexpr unsigned kMaxDepth = 64;

/// The elements of `value`, row-major; none if something else makes them than moving numbers and counts.
static std::optional<llvm::SmallVector<Extent>> trace(mlir::Value value, const Bounds &bounds, unsigned depth) {
  if (mlir::ElementsAttr constant = OnnxNode::getConstant(value)) {
    auto numbers = isDataMissing(constant) ? std::nullopt : readInts(constant);
    if (!numbers)
      return std::nullopt;
    return llvm::map_to_vector(*numbers, [](int64_t number) { return Extent{number, {}}; });
  }
  if (bounds.isCount(value))
    return llvm::SmallVector<Extent>{{bounds.getBound(value), value}};
  mlir::Operation *op = value.getDefiningOp();
  if (!op || depth == 0)
    return std::nullopt;
  if (llvm::isa<ReshapeOp, CastOp>(op)) {
    // Of other integers some are too narrow.
    mlir::Type type = OnnxNode::getType(value).getElementType();
    return type.isInteger(64) || type.isInteger(32) ? trace(op->getOperand(0), bounds, depth - 1) : std::nullopt;
  }
  // All others are vectors.
  if (OnnxNode::getRank(value) > 1 || !llvm::isa<ConcatOp, GatherOp, SliceOp>(op))
    return std::nullopt;
  llvm::SmallVector<Extent> result;
  if (llvm::isa<ConcatOp>(op)) {
    for (mlir::Value operand : op->getOperands()) {
      auto part = trace(operand, bounds, depth - 1);
      if (!part)
        return std::nullopt;
      result.append(*part);
    }
    return result;
  }
  mlir::Value source = op->getOperand(0);
  auto all = OnnxNode::getRank(source) == 1 ? trace(source, bounds, depth - 1) : std::nullopt;
  if (!all)
    return std::nullopt;
  auto size = static_cast<int64_t>(all->size());
  if (auto slice = llvm::dyn_cast<SliceOp>(op)) {
    for (int64_t i = 0; i < slice.getSizes()[0]; ++i)
      result.push_back((*all)[slice.getStarts()[0] + i * slice.getSteps()[0]]);
    return result;
  }
  mlir::ElementsAttr indices = OnnxNode::getConstant(op->getOperand(1));
  auto numbers = indices && !isDataMissing(indices) ? readInts(indices) : std::nullopt;
  if (!numbers)
    return std::nullopt;
  for (int64_t index : *numbers) {
    if (index < -size || index >= size)
      return std::nullopt;
    result.push_back((*all)[index < 0 ? index + size : index]);
  }
  return result;
}

llvm::FailureOr<llvm::SmallVector<Extent>> OnnxNode::getExtents(unsigned index, llvm::StringRef what) {
  if (mlir::Value input = getInput(index); input && !getConstant(input))
    if (auto extents = trace(input, context.bounds, kMaxDepth))
      return std::move(*extents);
  auto numbers = getConstantInts(index, what);
  if (failed(numbers))
    return llvm::failure();
  return llvm::map_to_vector(*numbers, [](int64_t number) { return Extent{number, {}}; });
}

mlir::Value OnnxNode::stateUnbounded(mlir::Value value) {
  if (value)
    context.bounds.set(value, {});
  return value;
}
