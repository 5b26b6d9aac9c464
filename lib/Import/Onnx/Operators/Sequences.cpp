//===- Sequences.cpp - Import of sequences and optional values ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operators on sequences and optional values, which become the tensors that they consist of.
//
//===----------------------------------------------------------------------===//

#include "../OnnxNode.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

#include <numeric>

using namespace dovetail;
using namespace dovetail::importer;

static llvm::LogicalResult setSequence(OnnxNode &node, std::vector<mlir::Value> elements) {
  return node.setBinding(0, Binding::sequence(std::move(elements)));
}

/// Operand 1, a single number of [-size, end), counted from the end if negative; `otherwise` without one.
static llvm::FailureOr<int64_t> readPosition(OnnxNode &node, unsigned operand, int64_t size, int64_t end,
                                             int64_t otherwise) {
  int64_t position = otherwise;
  if (node.hasInput(operand)) {
    auto values = node.getConstantInts(operand, "position");
    if (failed(values))
      return llvm::failure();
    if (values->size() != 1)
      return node.invalid("'position' is not a single number");
    position = values->front();
  }
  if (position < -size || position >= end)
    return node.invalid("position " + llvm::Twine(position) + " is outside of the sequence's [" + llvm::Twine(-size) +
                        ", " + llvm::Twine(end) + ")");
  return position < 0 ? position + size : position;
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

static OperatorImport sequenceEmpty("SequenceEmpty", [](OnnxNode &node) { return setSequence(node, {}); });

static OperatorImport sequenceConstruct("SequenceConstruct", [](OnnxNode &node) -> llvm::LogicalResult {
  for (mlir::Value element : node.getInputs())
    if (OnnxNode::getType(element).getElementType() != OnnxNode::getType(node.getInput(0)).getElementType())
      return node.invalid("tensors of a sequence have one element type");
  return setSequence(node, std::vector<mlir::Value>(node.getInputs()));
});

static llvm::LogicalResult importSequenceAt(OnnxNode &node) {
  auto elements = node.getSequence(0);
  if (failed(elements) || !node.hasInput(1))
    return failed(elements) ? llvm::failure() : node.invalid("'position' is not a tensor");
  if (elements->empty())
    return node.invalid("the sequence is empty");
  int64_t size = elements->size();
  mlir::Value position = node.getInput(1);
  bool isAlike =
      llvm::all_of(*elements, [&](mlir::Value element) { return element.getType() == elements->front().getType(); });
  if (!OnnxNode::getConstant(position) && isAlike && OnnxNode::getType(position).getNumElements() == 1)
    return node.setResult(node.create<GatherOp>(node.stack(*elements, 0), node.reshape(position, {}), 0));
  auto index = readPosition(node, 1, size, size, 0);
  return failed(index) ? llvm::failure() : node.setResult((*elements)[*index]);
}
static OperatorImport sequenceAt("SequenceAt", importSequenceAt, /*takesSequences=*/true);

static llvm::LogicalResult importSequenceInsert(OnnxNode &node) {
  auto elements = node.getSequence(0);
  mlir::Value element = node.getInput(1);
  if (failed(elements) || !element)
    return failed(elements) ? llvm::failure() : node.invalid("the element to insert is not a tensor");
  int64_t size = elements->size();
  auto position = readPosition(node, 2, size, size + 1, size);
  if (failed(position))
    return llvm::failure();
  if (size > 0 && OnnxNode::getType(element).getElementType() != OnnxNode::getType(elements->front()).getElementType())
    return node.invalid("tensors of a sequence have one element type");
  elements->insert(elements->begin() + *position, element);
  return setSequence(node, std::move(*elements));
}
static OperatorImport sequenceInsert("SequenceInsert", importSequenceInsert, /*takesSequences=*/true);

static llvm::LogicalResult importSequenceErase(OnnxNode &node) {
  auto elements = node.getSequence(0);
  if (failed(elements))
    return llvm::failure();
  int64_t size = elements->size();
  auto position = readPosition(node, 1, size, size, size - 1);
  if (failed(position))
    return llvm::failure();
  elements->erase(elements->begin() + *position);
  return setSequence(node, std::move(*elements));
}
static OperatorImport sequenceErase("SequenceErase", importSequenceErase, /*takesSequences=*/true);

static llvm::LogicalResult importSequenceLength(OnnxNode &node) {
  auto elements = node.getSequence(0);
  if (failed(elements))
    return llvm::failure();
  return node.setResult(node.reshape(node.constantInts(static_cast<int64_t>(elements->size())), {}));
}
static OperatorImport sequenceLength("SequenceLength", importSequenceLength, /*takesSequences=*/true);

static llvm::LogicalResult importConcatFromSequence(OnnxNode &node) {
  auto elements = node.getSequence(0);
  if (failed(elements))
    return llvm::failure();
  if (elements->empty())
    return node.invalid("the sequence is empty");
  bool isNew = node.getInt("new_axis", 0) != 0;
  auto axis = node.normalizeAxis(node.getInt("axis", 0), OnnxNode::getRank(elements->front()) + (isNew ? 1 : 0));
  if (failed(axis))
    return llvm::failure();
  if (isNew)
    return node.setResult(node.stack(*elements, *axis));
  if (elements->size() == 1)
    return node.setResult(elements->front());
  return node.setResult(node.create<ConcatOp>(mlir::ValueRange(*elements), *axis));
}
static OperatorImport concatFromSequence("ConcatFromSequence", importConcatFromSequence, /*takesSequences=*/true);

static OperatorImport splitToSequence("SplitToSequence", [](OnnxNode &node) -> llvm::LogicalResult {
  mlir::Value input = node.getInput(0);
  llvm::SmallVector<int64_t> shape(OnnxNode::getShape(input));
  auto axis = node.normalizeAxis(node.getInt("axis", 0), shape.size());
  if (failed(axis))
    return llvm::failure();
  int64_t extent = shape[*axis];
  llvm::SmallVector<int64_t> parts;
  if (!node.hasInput(1)) {
    parts.assign(extent, 1);
  } else {
    auto given = node.getConstantInts(1, "split");
    if (failed(given))
      return llvm::failure();
    parts = *given;
    if (OnnxNode::getRank(node.getInput(1)) == 0) {
      int64_t size = parts.front();
      if (size < 1)
        return node.invalid("'split' is " + llvm::Twine(size) + ", but must be positive");
      parts.assign(extent / size, size);
      if (extent % size != 0)
        parts.push_back(extent % size);
    }
    if (llvm::any_of(parts, [&](int64_t part) { return part < 0 || part > extent; }) ||
        std::accumulate(parts.begin(), parts.end(), int64_t(0)) != extent)
      return node.invalid("'split' must give extents that add up to " + llvm::Twine(extent));
  }
  bool keepsDimension = node.hasInput(1) || node.getInt("keepdims", 1) != 0;
  llvm::SmallVector<int64_t> starts(shape.size(), 0), steps(shape.size(), 1), squeezed(shape);
  squeezed.erase(squeezed.begin() + *axis);
  std::vector<mlir::Value> elements;
  for (int64_t part : parts) {
    shape[*axis] = part;
    mlir::Value element = node.slice(input, starts, shape, steps);
    elements.push_back(keepsDimension ? element : node.reshape(element, squeezed));
    if (!elements.back())
      return llvm::failure();
    starts[*axis] += part;
  }
  return setSequence(node, std::move(elements));
});

//===----------------------------------------------------------------------===//
// Optional values
//===----------------------------------------------------------------------===//

static llvm::LogicalResult importOptional(OnnxNode &node) {
  Binding operand = node.getOperand(0);
  return node.setBinding(0, operand.kind == Binding::Absent ? Binding::nothing() : operand);
}
static OperatorImport optional("Optional", importOptional, /*takesSequences=*/true);

static llvm::LogicalResult importOptionalGetElement(OnnxNode &node) {
  Binding operand = node.getOperand(0);
  if (operand.kind == Binding::Nothing)
    return node.invalid("the optional value is empty");
  return node.setBinding(0, operand);
}
static OperatorImport optionalGetElement("OptionalGetElement", importOptionalGetElement, /*takesSequences=*/true);

static llvm::LogicalResult importOptionalHasElement(OnnxNode &node) {
  Binding::Kind kind = node.getOperand(0).kind;
  bool has = kind != Binding::Nothing && kind != Binding::Absent;
  auto type = mlir::RankedTensorType::get({}, node.getBuilder().getI1Type());
  return node.setResult(node.constant(mlir::DenseElementsAttr::get(type, llvm::ArrayRef(has))));
}
static OperatorImport optionalHasElement("OptionalHasElement", importOptionalHasElement, /*takesSequences=*/true);
