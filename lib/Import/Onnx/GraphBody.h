//===- GraphBody.h - Graphs of nodes -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines GraphImporter::Body, a graph that is an attribute of a node, and what If, Loop and Scan share.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_GRAPHBODY_H
#define DOVETAIL_LIB_IMPORT_ONNX_GRAPHBODY_H

#include "GraphImporter.h"

namespace dovetail::importer {

/// How many nodes the iterations of all loops may have: what decides about graphs looks at all of them at once.
inline constexpr int64_t kMaxRepeatedNodes = 8192;

/// A graph of a node's. What depends on none of its inputs is imported once, all else in each iteration.
class GraphImporter::Body {
public:
  Body(GraphImporter &importer, OnnxNode &node, Scope &scope, llvm::StringRef attribute)
      : importer(importer), node(node), graph(node.getAttr(attribute)->g()), attribute(attribute) {
    common.outer = &scope;
    common.prefix = scope.prefix;
    common.source = importer.findSourceName(node.getProto(), scope);
    common.opsets = scope.opsets;
    common.attributes = scope.attributes;
    common.owner = scope.owner;
    collectUses(graph, common.needed);
  }

  int getNumInputs() const { return graph.input_size(); }
  int getNumOutputs() const { return graph.output_size(); }
  llvm::StringRef getOutputName(int number) const { return graph.output(number).name(); }

  /// Imports what all iterations have in common.
  llvm::LogicalResult prepare();
  /// Whether so many iterations, of an unknown number one, are few enough to be imported each by itself.
  bool fits(std::optional<int64_t> numLeft) const {
    return numLeft.value_or(1) <= (kMaxRepeatedNodes - importer.numRepeated) / size;
  }
  /// The results of iteration `number`, all unknown if something is not supported. `numLeft`: how many iterations there
  /// may be from this one on, if that is known.
  llvm::FailureOr<llvm::SmallVector<Binding>> importIteration(int64_t number, std::optional<int64_t> numLeft,
                                                              llvm::ArrayRef<Binding> arguments);
  /// The results of a graph without inputs.
  llvm::FailureOr<llvm::SmallVector<Binding>> importBranch();

private:
  llvm::LogicalResult checkSize(std::optional<int64_t> numLeft);
  llvm::FailureOr<llvm::SmallVector<Binding>> getResults(const Scope &scope, size_t numUnsupported);

  GraphImporter &importer;
  OnnxNode &node;
  const onnx::GraphProto &graph;
  llvm::StringRef attribute;
  Scope common;
  /// The nodes of each iteration, and how many they are with those of their own graphs, or 1.
  llvm::SmallVector<const onnx::NodeProto *> nodes;
  int64_t size = 0;
};

/// A loop of which one iteration is imported, as it is repeated when the program runs.
struct RepeatedLoop {
  llvm::ArrayRef<Binding> initial; ///< What it carries.
  int numStacked;                  ///< Results of each iteration that are stacked.
  /// How many iterations there are at most, of i64; null: no number bounds them. `length`: the same, if it is known.
  mlir::Value trips = {};
  std::optional<int64_t> length = std::nullopt;
  /// Whether there is a first one, a boolean of rank 0; null: there is.
  mlir::Value on = {};
  /// Of Loop: the body has the iteration's number and a condition as its first arguments, and as its first result
  /// whether there is another iteration.
  bool hasCondition = true;
  /// Of Scan: what the body reads of sequences in iteration `trip`, and where results are stacked along.
  llvm::function_ref<mlir::Value(int number, mlir::Value trip)> getEntry = {};
  int numEntries = 0;
  llvm::ArrayRef<int64_t> axes = {}, directions = {};
};

/// A condition: known, or a boolean of rank 0 if not.
struct Condition {
  bool isTrue = true;
  mlir::Value value = {};
};
/// The operation that was built last; null if none was.
mlir::Operation *getLastOp(OnnxNode &node);
/// Has everything built behind `last` look up index 0 where the condition does not hold, and its loops have no
/// iteration then: an index of what ONNX does not compute may be out of range, and a loop that it does not begin may
/// never end.
llvm::LogicalResult guardLookups(OnnxNode &node, mlir::Operation *last, mlir::Value condition);
llvm::FailureOr<Condition> readCondition(OnnxNode &node, Binding binding, llvm::StringRef what);
/// Whether something before them is not supported.
bool isAnyUnknown(llvm::ArrayRef<Binding> bindings);
/// Makes all results of a node unknown.
llvm::LogicalResult setUnknown(OnnxNode &node);
/// Collects one result of all iterations, of one type. `name` is that in the graph.
llvm::LogicalResult append(OnnxNode &node, std::vector<mlir::Value> &stacked, const Binding &result,
                           llvm::StringRef name);
/// A tensor of no iterations, each of which would give one of the type of `example`.
mlir::Value stackNone(OnnxNode &node, mlir::Value example, int64_t axis);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_GRAPHBODY_H
