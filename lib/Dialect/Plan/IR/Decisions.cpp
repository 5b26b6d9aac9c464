//===- Decisions.cpp - Attributes of a graph that is lowered -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and verifies the attributes with which passes write what they have decided into the graph.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Plan/IR/PackedWeights.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace dovetail;
using namespace dovetail::plan;

FormatAttr plan::getFormat(Value value) {
  if (auto result = dyn_cast<OpResult>(value)) {
    auto formats = result.getOwner()->getAttrOfType<ArrayAttr>(kFormatsAttrName);
    return formats ? cast<FormatAttr>(formats[result.getResultNumber()]) : FormatAttr();
  }
  auto argument = cast<BlockArgument>(value);
  auto function = dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return function ? function.getArgAttrOfType<FormatAttr>(argument.getArgNumber(), kFormatAttrName) : FormatAttr();
}

void plan::setFormats(Operation *op, ArrayRef<FormatAttr> formats) {
  SmallVector<Attribute> attributes(formats.begin(), formats.end());
  op->setAttr(kFormatsAttrName, ArrayAttr::get(op->getContext(), attributes));
}

std::optional<PostOpAttr> plan::getPostOp(OpOperand &use, Value &tensor) {
  auto op = dyn_cast<PostOpInterface>(use.getOwner());
  std::optional<PostOp> postOp = op ? op.getPostOp(use.getOperandNumber()) : std::nullopt;
  if (!postOp)
    return std::nullopt;
  tensor = postOp->operand ? op->getOperand(*postOp->operand) : Value();
  if (postOp->parameters)
    return PostOpAttr::get(op.getContext(), postOp->kind, postOp->parameters->alpha, postOp->parameters->beta);
  return PostOpAttr::get(op.getContext(), postOp->kind);
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

static LogicalResult verifyFormat(Operation *op, const Twine &what, Attribute attribute, Type type) {
  auto format = dyn_cast<FormatAttr>(attribute);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!format || !tensor || format.getRank() != tensor.getRank())
    return op->emitOpError() << what << " of type " << type << " cannot have format " << attribute;
  return success();
}

static LogicalResult verifyFormats(Operation *op, Attribute attribute) {
  auto formats = dyn_cast<ArrayAttr>(attribute);
  if (!formats || formats.size() != op->getNumResults())
    return op->emitOpError("has ") << op->getNumResults() << " results, which " << kFormatsAttrName << " = "
                                   << attribute << " does not fit";
  for (auto [number, format, type] : llvm::enumerate(formats, op->getResultTypes()))
    if (failed(verifyFormat(op, "result " + Twine(number), format, type)))
      return failure();
  return success();
}

static LogicalResult verifyPrologue(Operation *op) {
  if (op->hasAttr(kEachRunAttrName))
    return op->emitOpError("is part of the prologue, but computed in each run");
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || (!isa<ConstantOp>(producer) && !producer->hasAttr(kPrologueAttrName)))
      return op->emitOpError("is part of the prologue, but operand ")
             << number << " is neither constant nor part of it";
  }
  return success();
}

/// The buffer that holds `value`; null if that has not been decided.
static StorageOp getStorage(Value value) {
  for (Operation *user : value.getUsers())
    if (auto storage = dyn_cast<StorageOp>(user))
      return storage;
  return {};
}

static LogicalResult verifyView(Operation *op) {
  if (!isa<ReshardOp>(op))
    return op->emitOpError("has ") << kViewAttrName << ", but is not a reshard";
  StorageOp storage = getStorage(op->getResult(0));
  if (!storage || storage != getStorage(op->getOperand(0)))
    return op->emitOpError("is a view, but its operand does not lie in the memory of its result");
  return success();
}

LogicalResult PlanDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kFormatsAttrName)
    return verifyFormats(op, attribute.getValue());
  if (name == kPrologueAttrName)
    return verifyPrologue(op);
  if (name == kViewAttrName)
    return verifyView(op);
  if (name == kEachRunAttrName || name == kGeneratedAttrName)
    return isa<UnitAttr>(attribute.getValue())
               ? success()
               : op->emitOpError("has ") << name << " = " << attribute.getValue() << ", which has no value to be";
  return op->emitOpError("has an attribute ") << attribute.getName() << ", which the plan dialect does not have";
}

LogicalResult PlanDialect::verifyRegionArgAttribute(Operation *op, unsigned region, unsigned argument,
                                                    NamedAttribute attribute) {
  if (attribute.getName() != kFormatAttrName)
    return op->emitOpError("has an attribute ") << attribute.getName() << ", which the plan dialect does not have";
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function)
    return op->emitOpError("has an argument with ") << kFormatAttrName << ", but is not a function";
  return verifyFormat(op, "argument " + Twine(argument), attribute.getValue(), function.getArgumentTypes()[argument]);
}
