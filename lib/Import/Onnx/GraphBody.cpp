//===- GraphBody.cpp - Graphs of nodes -----------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements GraphImporter::Body, and what If, Loop and Scan share.
//
//===----------------------------------------------------------------------===//

#include "GraphBody.h"
#include "ModelFile.h"

using namespace dovetail;
using namespace dovetail::importer;

/// A node, and those of its graphs.
static int64_t countNodes(const onnx::NodeProto &node) {
  int64_t count = 1;
  for (const onnx::AttributeProto &attribute : node.attribute())
    for (const onnx::NodeProto &inner : attribute.g().node())
      count += countNodes(inner);
  return count;
}

llvm::LogicalResult GraphImporter::Body::prepare() {
  llvm::StringSet<> varying;
  for (const onnx::ValueInfoProto &input : graph.input())
    varying.insert(input.name());
  if (failed(importer.importInitializers(graph, common)))
    return llvm::failure();
  for (const onnx::NodeProto &inner : graph.node()) {
    if (!common.isNeeded(inner))
      continue;
    llvm::StringSet<> uses;
    addUses(inner, uses);
    bool varies = llvm::any_of(uses.keys(), [&](llvm::StringRef name) { return varying.contains(name); });
    if (!varies) {
      if (failed(importer.importNode(inner, common)))
        return llvm::failure();
      continue;
    }
    for (const std::string &output : inner.output())
      varying.insert(output);
    nodes.push_back(&inner);
    size += countNodes(inner);
  }
  // An iteration counts for something, or loops might never end.
  size = std::max<int64_t>(size, 1);
  return llvm::success();
}

llvm::LogicalResult GraphImporter::Body::checkSize(std::optional<int64_t> numLeft) {
  if (fits(numLeft))
    return llvm::success();
  std::string number = numLeft ? std::to_string(*numLeft) : "too many";
  return node.unsupported("it has " + number + " iterations of " + std::to_string(size) +
                              " nodes, but loops are expanded, to at most " + std::to_string(kMaxRepeatedNodes) +
                              " nodes in all",
                          "export the model with operators on whole sequences in its place, or with fewer iterations");
}

llvm::FailureOr<llvm::SmallVector<Binding>> GraphImporter::Body::getResults(const Scope &scope, size_t numUnsupported) {
  llvm::SmallVector<Binding> results;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    const Binding *result = scope.lookup(output.name());
    if (!result)
      return node.invalid("its " + attribute + " does not produce '" + output.name() + "'");
    results.push_back(importer.unsupported.size() > numUnsupported ? Binding::unknown() : *result);
  }
  return results;
}

llvm::FailureOr<llvm::SmallVector<Binding>> GraphImporter::Body::importIteration(int64_t number,
                                                                                 std::optional<int64_t> numLeft,
                                                                                 llvm::ArrayRef<Binding> arguments) {
  if (failed(checkSize(numLeft)))
    return llvm::failure();
  importer.numRepeated += size;
  Scope iteration;
  iteration.outer = &common;
  iteration.prefix = common.prefix + describeNode(node.getProto()) + "/" + std::to_string(number) + "/";
  iteration.source = common.source;
  iteration.needed = common.needed;
  iteration.opsets = common.opsets;
  iteration.attributes = common.attributes;
  iteration.owner = common.owner;
  for (auto [input, argument] : llvm::zip_equal(graph.input(), arguments))
    iteration.bind(input.name(), argument);
  size_t numUnsupported = importer.unsupported.size();
  for (const onnx::NodeProto *inner : nodes)
    if (failed(importer.importNode(*inner, iteration)))
      return llvm::failure();
  return getResults(iteration, numUnsupported);
}

llvm::FailureOr<llvm::SmallVector<Binding>> GraphImporter::Body::importBranch() {
  if (graph.input_size() != 0)
    return node.invalid("its " + attribute + " has inputs");
  if (graph.output_size() != node.getProto().output_size())
    return node.invalid("its " + attribute + " has " + llvm::Twine(graph.output_size()) + " results, but it has " +
                        llvm::Twine(node.getProto().output_size()));
  size_t numUnsupported = importer.unsupported.size();
  if (failed(prepare()))
    return llvm::failure();
  return getResults(common, numUnsupported);
}

llvm::FailureOr<Condition> dovetail::importer::readCondition(OnnxNode &node, Binding binding, llvm::StringRef what) {
  mlir::Value value = binding.value;
  if (!value || !OnnxNode::getType(value).getElementType().isInteger(1) ||
      OnnxNode::getType(value).getNumElements() != 1)
    return node.invalid(what + " is not a single boolean");
  if (mlir::ElementsAttr constant = OnnxNode::getConstant(value)) {
    if (isDataMissing(constant))
      return node.missing(what);
    if (auto values = readInts(constant))
      return Condition{values->front() != 0};
  }
  return Condition{true, node.reshape(value, {})};
}

bool dovetail::importer::isAnyUnknown(llvm::ArrayRef<Binding> bindings) {
  return llvm::any_of(bindings, [](const Binding &binding) { return binding.kind == Binding::Unknown; });
}

llvm::LogicalResult dovetail::importer::setUnknown(OnnxNode &node) {
  for (int number = 0; number < node.getProto().output_size(); ++number)
    (void)node.setBinding(number, Binding::unknown());
  return llvm::success();
}

llvm::LogicalResult dovetail::importer::append(OnnxNode &node, std::vector<mlir::Value> &stacked, const Binding &result,
                                               llvm::StringRef name) {
  if (result.kind != Binding::Known)
    return node.invalid("'" + name + "' is not a tensor in each iteration");
  if (!stacked.empty() && stacked.back().getType() != result.value.getType()) {
    std::string types;
    llvm::raw_string_ostream(types) << stacked.back().getType() << " and " << result.value.getType();
    return node.invalid("'" + name + "' is " + types + ", in different iterations");
  }
  stacked.push_back(result.value);
  return llvm::success();
}

mlir::Value dovetail::importer::stackNone(OnnxNode &node, mlir::Value example, int64_t axis) {
  mlir::RankedTensorType type = OnnxNode::getType(example);
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + axis, 0);
  return node.constant(mlir::DenseElementsAttr::get(type.clone(shape), llvm::ArrayRef<mlir::Attribute>()));
}
