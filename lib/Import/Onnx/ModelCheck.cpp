//===- ModelCheck.cpp - What must hold for a model as a whole -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements checkModel: versions, and the names of every graph and function.
//
//===----------------------------------------------------------------------===//

#include "ModelFile.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"

using namespace dovetail;
using namespace dovetail::importer;

std::string dovetail::importer::describeNode(const onnx::NodeProto &node) {
  if (!node.name().empty())
    return node.name();
  for (const std::string &output : node.output())
    if (!output.empty())
      return node.op_type() + ":" + output;
  return node.op_type();
}

namespace {

/// The names that a graph and those around it define.
struct Names {
  explicit Names(const Names *outer = nullptr) : outer(outer) {}

  bool contains(llvm::StringRef name) const { return defined.contains(name) || (outer && outer->contains(name)); }

  const Names *outer;
  llvm::StringSet<> defined;
};

class NameChecker {
public:
  explicit NameChecker(Reporter &reporter) : reporter(reporter) {}

  llvm::LogicalResult checkGraph(const onnx::GraphProto &graph, const Names *outer) {
    Names names(outer);
    for (const onnx::ValueInfoProto &input : graph.input())
      if (failed(define(names, input.name(), "an input of graph '" + graph.name() + "'")))
        return llvm::failure();
    llvm::StringSet<> initializers;
    for (const onnx::TensorProto &tensor : graph.initializer()) {
      if (tensor.name().empty())
        return reporter.invalid() << "graph '" << graph.name() << "' has an initializer without a name";
      if (!initializers.insert(tensor.name()).second)
        return reporter.invalid() << "graph '" << graph.name() << "' has two initializers '" << tensor.name() << "'";
      names.defined.insert(tensor.name());
    }
    for (const onnx::SparseTensorProto &tensor : graph.sparse_initializer())
      names.defined.insert(tensor.values().name());
    if (failed(checkNodes(graph.node(), names)))
      return llvm::failure();
    for (const onnx::ValueInfoProto &output : graph.output())
      if (!names.contains(output.name()))
        return reporter.invalid() << "graph '" << graph.name() << "' returns '" << output.name()
                                  << "', which none of its nodes produces";
    return llvm::success();
  }

  llvm::LogicalResult checkFunction(const onnx::FunctionProto &function) {
    Names names;
    for (const std::string &input : function.input())
      if (failed(define(names, input, "an input of function '" + function.name() + "'")))
        return llvm::failure();
    if (failed(checkNodes(function.node(), names)))
      return llvm::failure();
    for (const std::string &output : function.output())
      if (!names.contains(output))
        return reporter.invalid() << "function '" << function.name() << "' returns '" << output
                                  << "', which none of its nodes produces";
    return llvm::success();
  }

private:
  llvm::LogicalResult define(Names &names, llvm::StringRef name, const llvm::Twine &definition) {
    if (name.empty())
      return reporter.invalid() << definition << " has no name";
    if (!names.defined.insert(name).second)
      return reporter.invalid() << "'" << name << "' is defined twice, the second time as " << definition
                                << ": names must be unique";
    return llvm::success();
  }

  template <typename Nodes> llvm::LogicalResult checkNodes(const Nodes &nodes, Names &names) {
    for (const onnx::NodeProto &node : nodes) {
      if (node.op_type().empty())
        return reporter.invalid() << "node '" << describeNode(node) << "' names no operator";
      for (const std::string &input : node.input())
        if (!input.empty() && !names.contains(input))
          return undefined(nodes, node, input);
      for (const onnx::AttributeProto &attribute : node.attribute()) {
        if (attribute.has_g() && failed(checkGraph(attribute.g(), &names)))
          return llvm::failure();
        for (const onnx::GraphProto &graph : attribute.graphs())
          if (failed(checkGraph(graph, &names)))
            return llvm::failure();
      }
      for (const std::string &output : node.output())
        if (!output.empty() &&
            failed(define(names, output, "a result of node '" + describeNode(node) + "' (" + node.op_type() + ")")))
          return llvm::failure();
    }
    return llvm::success();
  }

  template <typename Nodes>
  llvm::LogicalResult undefined(const Nodes &nodes, const onnx::NodeProto &user, llvm::StringRef name) {
    auto diagnostic = reporter.invalid();
    diagnostic << "node '" << describeNode(user) << "' (" << user.op_type() << ") uses '" << name << "', which ";
    for (const onnx::NodeProto &node : nodes)
      for (const std::string &output : node.output())
        if (output == name)
          return diagnostic << "node '" << describeNode(node)
                            << "' produces only later: the graph has a cycle or is not sorted";
    return diagnostic << "is neither an input, an initializer, nor a result of an earlier node";
  }

  Reporter &reporter;
};

llvm::LogicalResult checkVersions(const onnx::ModelProto &model, Reporter &reporter) {
  llvm::StringRef path = reporter.getPath();
  if (!model.has_graph() || model.graph().ByteSizeLong() == 0)
    return reporter.invalid() << "model '" << path << "' has no graph: is it an ONNX file?";
  int64_t version = model.ir_version();
  if (version < onnx::IR_VERSION_2017_11_3)
    return reporter.invalid() << "model '" << path << "' has IR version " << version << ", older than "
                              << static_cast<int64_t>(onnx::IR_VERSION_2017_11_3)
                              << ": convert it with onnx.version_converter";
  if (version > onnx::IR_VERSION)
    return reporter.invalid() << "model '" << path << "' has IR version " << version << ", newer than "
                              << static_cast<int64_t>(onnx::IR_VERSION)
                              << ", the newest known: export it with an older version of ONNX";
  llvm::StringMap<int64_t> opsets;
  for (const onnx::OperatorSetIdProto &opset : model.opset_import()) {
    llvm::StringRef domain = opset.domain() == "ai.onnx" ? "" : llvm::StringRef(opset.domain());
    auto [it, inserted] = opsets.try_emplace(domain, opset.version());
    if (!inserted && it->second != opset.version())
      return reporter.invalid() << "model '" << path << "' imports domain '" << opset.domain() << "' in versions "
                                << it->second << " and " << opset.version();
  }
  auto it = opsets.find("");
  if (opsets.empty())
    return reporter.invalid() << "model '" << path << "' does not say which operator sets it uses (opset_import)";
  if (it == opsets.end())
    return llvm::success();
  if (it->second < 1)
    return reporter.invalid() << "model '" << path << "' uses opset " << it->second << ", which is not a valid version";
  if (it->second < kMinOpset || it->second > kMaxOpset)
    return reporter.error(ImportError::Unsupported)
           << "model '" << path << "' uses opset " << it->second << "; opsets " << kMinOpset << " to " << kMaxOpset
           << " are supported: "
           << (it->second < kMinOpset ? "convert it with onnx.version_converter or export it anew"
                                      : "export it for an earlier one");
  return llvm::success();
}

} // namespace

llvm::LogicalResult dovetail::importer::checkModel(const onnx::ModelProto &model, Reporter &reporter) {
  if (failed(checkVersions(model, reporter)))
    return llvm::failure();
  NameChecker checker(reporter);
  if (failed(checker.checkGraph(model.graph(), nullptr)))
    return llvm::failure();
  llvm::StringSet<> functions;
  for (const onnx::FunctionProto &function : model.functions()) {
    if (failed(checker.checkFunction(function)))
      return llvm::failure();
    if (!functions.insert(function.domain() + "\n" + function.name() + "\n" + function.overload()).second)
      return reporter.invalid() << "model '" << reporter.getPath() << "' defines function '" << function.name()
                                << "' of domain '" << function.domain() << "' twice";
  }
  return llvm::success();
}
