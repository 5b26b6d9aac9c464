//===- Functions.cpp - Functions of models and of ONNX schemas -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the part of GraphImporter that expands a node through the body of a function.
//
//===----------------------------------------------------------------------===//

#include "GraphImporter.h"
#include "ModelFile.h"

#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h"
#include "dovetail/Text/SourceName.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace dovetail;
using namespace dovetail::importer;

/// Deeper than any exporter nests functions, and safe for the stack.
static constexpr size_t kMaxFunctionDepth = 64;

std::string GraphImporter::getFunctionKey(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload) {
  return ((domain == "ai.onnx" ? "" : domain) + "\n" + name + "\n" + overload).str();
}

const onnx::FunctionProto *GraphImporter::lookupFunction(const onnx::NodeProto &node) const {
  return functions.lookup(getFunctionKey(node.domain(), node.op_type(), node.overload()));
}

/// The type of a value as ONNX describes it; without one if it is not known. Extents that depend on data are none.
static onnx::TypeProto describeType(const Binding &binding, const Bounds &bounds) {
  onnx::TypeProto type;
  if (binding.kind == Binding::Sequence) {
    onnx::TypeProto *element = type.mutable_sequence_type()->mutable_elem_type();
    // The element type of an empty sequence is not known, and shapes of elements differ.
    element->mutable_tensor_type()->set_elem_type(
        binding.elements->empty() ? onnx::TensorProto::FLOAT
                                  : convertElementType(OnnxNode::getType(binding.elements->front()).getElementType()));
    return type;
  }
  if (binding.kind != Binding::Known)
    return type;
  auto tensor = OnnxNode::getType(binding.value);
  type.mutable_tensor_type()->set_elem_type(convertElementType(tensor.getElementType()));
  auto *shape = type.mutable_tensor_type()->mutable_shape();
  llvm::ArrayRef<mlir::Value> counts = bounds.get(binding.value);
  for (auto [dim, extent] : llvm::enumerate(tensor.getShape())) {
    auto *described = shape->add_dim();
    if (counts.empty() || !counts[dim])
      described->set_dim_value(extent);
  }
  return type;
}

llvm::FailureOr<std::shared_ptr<const onnx::FunctionProto>>
GraphImporter::getSchemaFunction(const onnx::NodeProto &node, const onnx::OpSchema &schema, const Scope &scope,
                                 llvm::ArrayRef<Binding> inputs) {
  int opset = scope.opsets.lookup("");
  try {
    // A body whose operators have changed since it was written counts as invalid at newer opsets; it is still right in
    // the opset that it imports.
    for (bool validate : {true, false})
      if (const onnx::FunctionProto *function = schema.HasFunction() ? schema.GetFunction(opset, validate) : nullptr)
        return std::make_shared<const onnx::FunctionProto>(*function);
    if (!schema.HasContextDependentFunction())
      return llvm::failure();
    std::vector<onnx::TypeProto> types;
    for (const Binding &input : inputs)
      types.push_back(describeType(input, bounds));
    onnx::FunctionBodyBuildContextImpl context(node, types);
    auto function = std::make_shared<onnx::FunctionProto>();
    if (!schema.BuildContextDependentFunction(context, *function, opset))
      return llvm::failure();
    // Bodies of other domains say the version of these alone.
    if (llvm::none_of(function->opset_import(), [](const auto &opset) { return opset.domain().empty(); }))
      function->add_opset_import()->set_version(opset);
    return std::shared_ptr<const onnx::FunctionProto>(std::move(function));
  } catch (const std::exception &) {
    // The schema has no body for these attributes and types.
    return llvm::failure();
  }
}

llvm::LogicalResult GraphImporter::importFunction(const onnx::NodeProto &node, const onnx::FunctionProto &function,
                                                  const onnx::OpSchema *schema, std::shared_ptr<const void> owner,
                                                  Scope &scope, llvm::ArrayRef<Binding> inputs,
                                                  llvm::ArrayRef<NamedConstant> constants) {
  // Bodies of schemas are made anew for each node; what they cannot do is call themselves forever.
  const void *identity = schema ? static_cast<const void *>(schema) : &function;
  if (llvm::is_contained(activeFunctions, identity) || activeFunctions.size() >= kMaxFunctionDepth)
    return invalidNode(node, scope) << "calls of function '" << function.name() << "' are recursive or nested too deep";
  if (static_cast<int>(inputs.size()) > function.input_size())
    return invalidNode(node, scope) << "it has " << inputs.size() << " operands, but function '" << function.name()
                                    << "' takes " << function.input_size();
  if (node.output_size() > function.output_size())
    return invalidNode(node, scope) << "it has " << node.output_size() << " results, but function '" << function.name()
                                    << "' has " << function.output_size();

  llvm::StringMap<onnx::AttributeProto> attributes;
  if (schema)
    for (const auto &[name, attribute] : schema->attributes())
      if (attribute.default_value.has_name())
        attributes[name] = attribute.default_value;
  for (const onnx::AttributeProto &attribute : function.attribute_proto())
    attributes[attribute.name()] = attribute;
  for (const onnx::AttributeProto &attribute : node.attribute())
    attributes[attribute.name()] = attribute;

  Scope body;
  body.prefix = scope.prefix + describeNode(node) + "/";
  body.source = findSourceName(node, scope);
  // The model's own functions are named by users, too.
  if (!schema && body.source)
    body.source.name += (body.source.name.empty() ? "" : ".") + text::clean(function.name(), text::maxSourceName);
  body.attributes = &attributes;
  body.owner = std::move(owner);
  for (const onnx::OperatorSetIdProto &opset : function.opset_import())
    body.opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
  if (auto it = body.opsets.find(""); it != body.opsets.end() && (it->second < 1 || it->second > kMaxOpset))
    return addUnsupported(node, scope, inputs,
                          {"function '" + function.name() + "' uses opset " + std::to_string(it->second),
                           "export it for opset " + std::to_string(kMaxOpset) + " or an older one"});
  for (int i = 0; i < function.input_size(); ++i)
    body.bind(function.input(i), i < static_cast<int>(inputs.size()) ? inputs[i] : Binding::absent());
  for (const auto &[name, value, packedType] : constants) {
    mlir::Value constant = ConstantOp::create(builder, getLoc(node, scope), value.getShapedType(), value);
    if (packedType)
      constant = UnpackOp::create(builder, getLoc(node, scope), packedType, constant, packedType.getRank() - 1);
    body.bind(name, Binding::known(constant));
  }
  for (int i = 0; i < node.output_size(); ++i)
    if (scope.isNeeded(node.output(i)))
      body.needed.insert(function.output(i));
  addNeededNames(function.node(), body.needed);

  mlir::Block *block = builder.getBlock();
  mlir::Operation *last = block->empty() ? nullptr : &block->back();
  activeFunctions.push_back(identity);
  llvm::LogicalResult imported = importNodes(function.node(), body);
  activeFunctions.pop_back();
  if (failed(imported))
    return llvm::failure();
  llvm::SmallVector<Binding> results;
  for (int i = 0; i < node.output_size(); ++i) {
    const Binding *result = body.lookup(function.output(i));
    results.push_back(result ? *result : Binding::unknown());
  }
  if (schema)
    nameResults(node, scope, results, last ? std::next(last->getIterator()) : block->begin());
  bindResults(node, scope, results);
  return llvm::success();
}

void GraphImporter::nameResults(const onnx::NodeProto &node, const Scope &scope, llvm::ArrayRef<Binding> results,
                                mlir::Block::iterator first) {
  llvm::SmallPtrSet<mlir::Operation *, 16> created;
  for (mlir::Operation &op : llvm::make_range(first, builder.getBlock()->end()))
    created.insert(&op);
  for (auto [name, result] : llvm::zip(node.output(), results)) {
    mlir::Operation *op = result.kind == Binding::Known ? result.value.getDefiningOp() : nullptr;
    if (op && created.contains(op) && !name.empty())
      op->setLoc(withTensorName(withoutTensorName(op->getLoc()), builder.getStringAttr(scope.prefix + name)));
  }
}

llvm::LogicalResult GraphImporter::importExpansion(const onnx::NodeProto &node, const ExpansionEntry &entry,
                                                   Scope &scope, llvm::ArrayRef<Binding> inputs) {
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (entry.schema.attributes().count(attribute.name()) == 0)
      return addUnsupported(node, scope, inputs,
                            {"its attribute '" + attribute.name() + "' is not known",
                             "remove the attribute if it does not change results, or export the model without"});
  if (failed(verifyNode(node, entry.schema, scope, inputs)))
    return llvm::failure();
  if (llvm::any_of(inputs, [](const Binding &input) { return input.kind == Binding::Unknown; })) {
    bindUnknown(node, scope);
    return llvm::success();
  }
  Expansion expansion(node, entry.schema, inputs, bounds, builder.getContext());
  if (succeeded(entry.expand(expansion)))
    return importFunction(node, expansion.getFunction(), &entry.schema, nullptr, scope, inputs,
                          expansion.getConstants());
  if (expansion.getObstacle())
    return addUnsupported(node, scope, inputs, *expansion.getObstacle());
  return invalidNode(node, scope) << expansion.getInvalid();
}
