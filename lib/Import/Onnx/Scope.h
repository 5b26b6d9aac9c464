//===- Scope.h - What names mean in a graph or function -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Scope and collectUses.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_SCOPE_H
#define DOVETAIL_LIB_IMPORT_ONNX_SCOPE_H

#include "Binding.h"
#include "SourceNames.h"
#include "onnx/onnx_pb.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace dovetail::importer {

/// A graph or function while its nodes are imported.
struct Scope {
  /// The graph around a branch; null for the model's graph and for functions.
  const Scope *outer = nullptr;
  /// Put before the names of nodes and tensors of functions.
  std::string prefix;
  /// The source name of nodes without one of their own: that of the node that calls the function, or has the graph.
  SourceName source;
  llvm::StringMap<Binding> bindings;
  /// Names that results depend on.
  llvm::StringSet<> needed;
  /// Versions of operator sets by domain, "" for ONNX's own.
  llvm::StringMap<int64_t> opsets;
  /// Values of the attributes of a function; null outside of functions.
  const llvm::StringMap<onnx::AttributeProto> *attributes = nullptr;
  /// Keeps the tensors of this scope alive; null if they are temporary.
  std::shared_ptr<const void> owner;

  const Binding *lookup(llvm::StringRef name) const {
    auto it = bindings.find(name);
    if (it != bindings.end())
      return &it->second;
    return outer ? outer->lookup(name) : nullptr;
  }
  void bind(llvm::StringRef name, Binding binding) {
    if (!name.empty())
      bindings.insert_or_assign(name, binding);
  }
  bool isNeeded(llvm::StringRef name) const { return !name.empty() && needed.contains(name); }
  bool isNeeded(const onnx::NodeProto &node) const {
    return llvm::any_of(node.output(), [&](const std::string &name) { return isNeeded(name); });
  }
};

/// Adds the names that `graph` takes from around it, or defines and uses.
inline void collectUses(const onnx::GraphProto &graph, llvm::StringSet<> &uses);

/// Adds the names that a node takes, those that its graphs take from around them included.
inline void addUses(const onnx::NodeProto &node, llvm::StringSet<> &uses) {
  for (const std::string &input : node.input())
    uses.insert(input);
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      collectUses(attribute.g(), uses);
    for (const onnx::GraphProto &graph : attribute.graphs())
      collectUses(graph, uses);
  }
}

/// Adds to `needed`, which holds the names of results, all names that they depend on.
template <typename Nodes> void addNeededNames(const Nodes &nodes, llvm::StringSet<> &needed) {
  for (const onnx::NodeProto &node : llvm::reverse(nodes))
    if (llvm::any_of(node.output(), [&](const std::string &name) { return needed.contains(name); }))
      addUses(node, needed);
}

inline void collectUses(const onnx::GraphProto &graph, llvm::StringSet<> &uses) {
  for (const onnx::ValueInfoProto &output : graph.output())
    uses.insert(output.name());
  addNeededNames(graph.node(), uses);
}

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_SCOPE_H
