//===- OnnxNode.cpp - A node while it is imported -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the reading of nodes.
//
//===----------------------------------------------------------------------===//

#include "OnnxNode.h"

using namespace dovetail;
using namespace dovetail::importer;

//===----------------------------------------------------------------------===//
// Operands and attributes
//===----------------------------------------------------------------------===//

llvm::LogicalResult OnnxNode::requireRank(unsigned index, int64_t minRank) {
  int64_t rank = getRank(inputs[index]);
  if (rank >= minRank)
    return llvm::success();
  return invalid("input '" + llvm::Twine(proto.input(index)) + "' has rank " + llvm::Twine(rank) + ", but at least " +
                 llvm::Twine(minRank) + " is needed");
}

llvm::FailureOr<std::vector<mlir::Value>> OnnxNode::getSequence(unsigned index) {
  Binding operand = getOperand(index);
  if (operand.kind != Binding::Sequence)
    return invalid("its operand " + llvm::Twine(index) + " is not a sequence");
  return *operand.elements;
}

llvm::FailureOr<llvm::SmallVector<int64_t>> OnnxNode::getConstantInts(unsigned index, llvm::StringRef what) {
  mlir::ElementsAttr constant = getConstant(getInput(index));
  if (!constant)
    return unsupported(describeNotConstant("'" + what + "'"));
  if (isDataMissing(constant))
    return missing(what);
  if (auto values = readInts(constant))
    return std::move(*values);
  return invalid("'" + what + "' is not a tensor of integers");
}

llvm::FailureOr<llvm::SmallVector<Extent>> OnnxNode::getExtents(unsigned index, llvm::StringRef what) {
  if (mlir::Value input = getInput(index); input && !getConstant(input))
    if (auto numbers = traceExtents(input))
      return llvm::map_to_vector(*numbers, [&](const SignedExtent &number) {
        if (number.exact)
          requirements.emplace_back(*number.exact, 0);
        return number.extent;
      });
  auto numbers = getConstantInts(index, what);
  if (failed(numbers))
    return llvm::failure();
  return llvm::map_to_vector(*numbers, [](int64_t number) { return Extent{number, {}}; });
}

llvm::FailureOr<OnnxNode::SignedExtent> OnnxNode::getSignedExtent(unsigned index, llvm::StringRef what) {
  mlir::Value input = getInput(index);
  if (input && getType(input).getNumElements() != 1)
    return invalid("'" + what + "' is not a single number");
  if (input && !getConstant(input))
    if (auto numbers = traceExtents(input); numbers && numbers->size() == 1)
      return numbers->front();
  auto numbers = getConstantInts(index, what);
  if (failed(numbers))
    return llvm::failure();
  return SignedExtent{{numbers->front(), {}}};
}

llvm::FailureOr<llvm::SmallVector<double>> OnnxNode::getConstantFloats(unsigned index, llvm::StringRef what) {
  mlir::ElementsAttr constant = getConstant(getInput(index));
  if (!constant)
    return unsupported(describeNotConstant("'" + what + "'"));
  if (isDataMissing(constant))
    return missing(what);
  if (auto values = readFloats(constant))
    return std::move(*values);
  return unsupported("'" + what + "' is not a tensor of f32 or f64");
}

const onnx::AttributeProto *OnnxNode::getAttr(llvm::StringRef name) const {
  for (const onnx::AttributeProto &attribute : proto.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

int64_t OnnxNode::getInt(llvm::StringRef name, int64_t defaultValue) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? attribute->i() : defaultValue;
}

double OnnxNode::getFloat(llvm::StringRef name, float defaultValue) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? attribute->f() : defaultValue;
}

llvm::StringRef OnnxNode::getString(llvm::StringRef name, llvm::StringRef defaultValue) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  return attribute ? llvm::StringRef(attribute->s()) : defaultValue;
}

llvm::SmallVector<int64_t> OnnxNode::getInts(llvm::StringRef name) const {
  const onnx::AttributeProto *attribute = getAttr(name);
  if (!attribute)
    return {};
  return llvm::SmallVector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

llvm::FailureOr<std::optional<llvm::SmallVector<int64_t>>>
OnnxNode::getIntsAttrOrInput(llvm::StringRef name, unsigned index, int64_t inputSince) {
  using Result = std::optional<llvm::SmallVector<int64_t>>;
  if (getOpset() < inputSince)
    return hasAttr(name) ? Result(getInts(name)) : Result();
  if (!hasInput(index))
    return Result();
  auto values = getConstantInts(index, name);
  if (failed(values))
    return llvm::failure();
  return Result(std::move(*values));
}

mlir::Value OnnxNode::constantTensor(const onnx::TensorProto &tensor) {
  return constant(surroundings.tensors.read(tensor, "the tensor of node '" + context.name + "'", surroundings.owner));
}

//===----------------------------------------------------------------------===//
// Results and errors
//===----------------------------------------------------------------------===//

llvm::LogicalResult OnnxNode::setResult(unsigned index, mlir::Value value) {
  if (!value)
    return llvm::failure();
  if (!requirements.empty() && failed(inferBounds(value)))
    return llvm::failure();
  for (const auto &[form, least] : requirements)
    value = context.bounds.require(context.builder, context.loc, value, form, least);
  return setBinding(index, Binding::known(value));
}

llvm::LogicalResult OnnxNode::setBinding(unsigned index, Binding binding) {
  if (index < results.size())
    results[index] = std::move(binding);
  return llvm::success();
}

bool OnnxNode::isResultUsed(unsigned index) const {
  return index < results.size() && !proto.output(index).empty() && surroundings.isUsed(proto.output(index));
}

std::string OnnxNode::describeOperands() const {
  std::string types;
  llvm::raw_string_ostream os(types);
  llvm::interleaveComma(operands, os, [&](const Binding &operand) {
    // As diagnostics write types.
    llvm::StringRef quote = operand.kind == Binding::Known ? "'" : "";
    os << quote << operand << quote;
  });
  return types;
}

Obstacle OnnxNode::describeUnsupportedElements(int32_t type) {
  if (type == onnx::TensorProto::STRING)
    return {"strings are not supported, as programs compute with numbers",
            "process strings before the model, or after it"};
  return {"elements of type " + describeElementType(type) + " are not supported",
          "export the model with floats of at most 64 bits, integers of 2 to 64 bits, or booleans"};
}

//===----------------------------------------------------------------------===//
// Operators that the dialect has
//===----------------------------------------------------------------------===//

/// The attributes that `attribute` may become: integers have several types.
static llvm::SmallVector<mlir::Attribute> convertAttribute(const onnx::AttributeProto &attribute,
                                                           mlir::Builder &builder) {
  switch (attribute.type()) {
  case onnx::AttributeProto::INT:
    return {builder.getI64IntegerAttr(attribute.i()),
            builder.getIntegerAttr(builder.getIntegerType(64, /*isSigned=*/true), attribute.i()),
            builder.getBoolAttr(attribute.i() != 0)};
  case onnx::AttributeProto::FLOAT:
    return {builder.getF32FloatAttr(attribute.f())};
  case onnx::AttributeProto::STRING:
    return {builder.getStringAttr(attribute.s())};
  case onnx::AttributeProto::INTS:
    return {builder.getDenseI64ArrayAttr(llvm::SmallVector<int64_t>(attribute.ints().begin(), attribute.ints().end()))};
  case onnx::AttributeProto::FLOATS:
    return {
        builder.getDenseF32ArrayAttr(llvm::SmallVector<float>(attribute.floats().begin(), attribute.floats().end()))};
  default:
    return {};
  }
}

llvm::LogicalResult dovetail::importer::importOneToOne(OnnxNode &node, mlir::RegisteredOperationName name) {
  mlir::OperationState state(node.getLoc(), name);
  for (auto [index, input] : llvm::enumerate(node.getInputs())) {
    if (!input)
      return node.unsupported("it has no operand " + std::to_string(index));
    state.operands.push_back(input);
  }
  for (const onnx::AttributeProto &attribute : node.getProto().attribute()) {
    if (!llvm::is_contained(name.getAttributeNames(), attribute.name()))
      return node.unsupported("attribute '" + attribute.name() + "' is not known");
    auto candidates = convertAttribute(attribute, node.getBuilder());
    auto *fitting = llvm::find_if(candidates, [&](mlir::Attribute candidate) {
      mlir::NamedAttrList list;
      list.set(attribute.name(), candidate);
      // That one candidate does not fit is no error.
      mlir::ScopedDiagnosticHandler silence(name.getContext(), [](mlir::Diagnostic &) { return llvm::success(); });
      return succeeded(name.verifyInherentAttrs(list, [&] { return mlir::emitError(node.getLoc()); }));
    });
    if (fitting == candidates.end())
      return node.unsupported("attribute '" + attribute.name() + "' has a value that is not supported");
    state.addAttribute(attribute.name(), *fitting);
  }
  state.addTypes(node.getBuilder().getNoneType());
  return node.setResult(node.finish(state));
}
