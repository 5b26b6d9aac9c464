//===- GraphImporter.h - Importing graphs and functions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines GraphImporter.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_GRAPHIMPORTER_H
#define DOVETAIL_LIB_IMPORT_ONNX_GRAPHIMPORTER_H

#include "../Build/UnsupportedParts.h"
#include "Expansion.h"
#include "InputShapes.h"
#include "OnnxNode.h"
#include "Scope.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "onnx/defs/schema.h"

namespace dovetail::importer {

/// Imports one model that checkModel has accepted.
struct RepeatedLoop;

class GraphImporter {
public:
  /// `expandsLoops`: loops are expanded where that can be done, though data may end them long before.
  GraphImporter(std::shared_ptr<const onnx::ModelProto> model, const ImportOptions &options, Reporter &reporter,
                bool expandsLoops);

  /// The module, or null if an error was reported.
  mlir::OwningOpRef<mlir::ModuleOp> run();
  /// Whether a loop that could have been expanded was not.
  bool hasChosenRepeat() const { return choseRepeat; }

  /// Whether an operator of the default domain has graphs that are imported with the one that it is part of.
  static bool isControlFlow(llvm::StringRef opType) { return lookupControlFlow(opType) != nullptr; }

private:
  mlir::OwningOpRef<mlir::ModuleOp> createModule();
  llvm::LogicalResult importMain(mlir::func::FuncOp main, llvm::ArrayRef<const onnx::ValueInfoProto *> inputs,
                                 const InputTypes &types);
  /// Says which lengths, arguments behind the inputs, bound these. Returns the lengths.
  llvm::SmallVector<mlir::Value> bindLengths(mlir::func::FuncOp main, const InputTypes &types);
  /// Notes a tensor of too many dimensions among what is not supported.
  void checkRank(mlir::Value value, llvm::StringRef name);
  llvm::LogicalResult checkOutputType(const onnx::ValueInfoProto &output, mlir::Value value);

  llvm::LogicalResult importInitializers(const onnx::GraphProto &graph, Scope &scope);
  template <typename Nodes> llvm::LogicalResult importNodes(const Nodes &nodes, Scope &scope) {
    for (const onnx::NodeProto &node : nodes)
      if (scope.isNeeded(node) && failed(importNode(node, scope)))
        return llvm::failure();
    return llvm::success();
  }
  llvm::LogicalResult importNode(const onnx::NodeProto &node, Scope &scope);
  /// Checks a node against the schema of its operator.
  llvm::LogicalResult verifyNode(const onnx::NodeProto &node, const onnx::OpSchema &schema, const Scope &scope,
                                 llvm::ArrayRef<Binding> inputs);
  /// A node of another domain, which the model has no function for.
  llvm::LogicalResult importForeignNode(const onnx::NodeProto &node, Scope &scope, llvm::ArrayRef<Binding> inputs);
  /// A node of ONNX's own domain.
  llvm::LogicalResult importOnnxNode(const onnx::NodeProto &node, Scope &scope, llvm::ArrayRef<Binding> inputs);
  llvm::LogicalResult importOperator(const onnx::NodeProto &node, Scope &scope, llvm::ArrayRef<Binding> inputs,
                                     llvm::function_ref<llvm::LogicalResult(OnnxNode &)> import,
                                     bool takesSequences = false);

  // In ControlFlow.cpp and ScanNode.cpp: operators that have graphs.
  using ControlFlowFn = llvm::LogicalResult (GraphImporter::*)(OnnxNode &node, Scope &scope);
  /// Null for other operators.
  static ControlFlowFn lookupControlFlow(llvm::StringRef opType);
  llvm::LogicalResult importIf(OnnxNode &node, Scope &scope);
  llvm::LogicalResult importLoop(OnnxNode &node, Scope &scope);
  llvm::LogicalResult importScan(OnnxNode &node, Scope &scope);
  /// Scan of opset 8, which goes through each entry of a batch by itself.
  llvm::LogicalResult importBatchedScan(OnnxNode &node, Scope &scope);
  class Body;
  llvm::LogicalResult importRepeated(OnnxNode &node, Body &body, const RepeatedLoop &loop);

  // In Functions.cpp: functions of the model and of ONNX's schemas.
  static std::string getFunctionKey(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload);
  const onnx::FunctionProto *lookupFunction(const onnx::NodeProto &node) const;
  /// The body that the schema gives for a node; fails without an error if there is none.
  llvm::FailureOr<std::shared_ptr<const onnx::FunctionProto>> getSchemaFunction(const onnx::NodeProto &node,
                                                                                const onnx::OpSchema &schema,
                                                                                const Scope &scope,
                                                                                llvm::ArrayRef<Binding> inputs);
  llvm::LogicalResult importFunction(const onnx::NodeProto &node, const onnx::FunctionProto &function,
                                     const onnx::OpSchema *schema, std::shared_ptr<const void> owner, Scope &scope,
                                     llvm::ArrayRef<Binding> inputs, llvm::ArrayRef<NamedConstant> constants = {});
  /// Imports a node of an operator that ONNX does not have.
  llvm::LogicalResult importExpansion(const onnx::NodeProto &node, const ExpansionEntry &entry, Scope &scope,
                                      llvm::ArrayRef<Binding> inputs);

  /// Imports a node by the body that its schema gives; nothing if there is none.
  std::optional<llvm::LogicalResult> importBody(const onnx::NodeProto &node, const onnx::OpSchema &schema, Scope &scope,
                                                llvm::ArrayRef<Binding> inputs);

  /// Finds the bounded dimensions of what was imported for a node, behind `last`, of operands `values` some of which
  /// have such, or may have in its graphs. Returns why the node cannot be imported, if so.
  std::optional<Obstacle> inferBounds(llvm::ArrayRef<mlir::Value> values, llvm::ArrayRef<mlir::Value> results,
                                      mlir::Operation *last, bool hasGraphs);
  /// Lists a node among those that cannot be imported; its results are unknown from then on.
  llvm::LogicalResult addUnsupported(const onnx::NodeProto &node, Scope &scope, llvm::ArrayRef<Binding> inputs,
                                     Obstacle obstacle);
  mlir::InFlightDiagnostic invalidNode(const onnx::NodeProto &node, const Scope &scope);
  static void bindResults(const onnx::NodeProto &node, Scope &scope, llvm::ArrayRef<Binding> results);
  /// Gives the operations from `first` on that compute `results` the names of the node's results. Those in the body of
  /// a schema are not the model's.
  void nameResults(const onnx::NodeProto &node, const Scope &scope, llvm::ArrayRef<Binding> results,
                   mlir::Block::iterator first);
  static void bindUnknown(const onnx::NodeProto &node, Scope &scope);
  mlir::Location getLoc(const onnx::NodeProto &node, const Scope &scope) const;
  /// The source name of a node, or else of the node that it is a part of.
  static SourceName findSourceName(const onnx::NodeProto &node, const Scope &scope);

  std::shared_ptr<const onnx::ModelProto> model;
  const ImportOptions &options;
  Reporter &reporter;
  TensorReader tensors;
  mlir::OpBuilder builder;
  /// The dialect's operations that import one to one, by ONNX name.
  llvm::StringMap<mlir::RegisteredOperationName> oneToOne;
  llvm::StringMap<const onnx::FunctionProto *> functions;
  /// The functions whose bodies are being imported.
  llvm::SmallVector<const void *> activeFunctions;
  int64_t numNodes = 0;
  /// Nodes of graphs that loops repeat, once for each iteration.
  int64_t numRepeated = 0;
  /// Loops of the program, and choices.
  int64_t numLoops = 0, numChoices = 0;
  const bool expandsLoops;
  bool choseRepeat = false;
  UnsupportedParts unsupported;
  Bounds bounds;
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_GRAPHIMPORTER_H
