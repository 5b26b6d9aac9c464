//===- GraphImporter.cpp - Importing graphs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements the import of graphs, node by node. Nodes that no result depends on are left out. A node that is not
// supported does not stop the import: its results are unknown from then on, so that all such nodes are reported at
// once.
//
//===----------------------------------------------------------------------===//

#include "GraphImporter.h"
#include "ModelFile.h"
#include "SourceNames.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/NarrowOps.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace dovetail;
using namespace dovetail::importer;

/// More nodes than any model has: functions that call functions can grow without bound.
static constexpr int64_t kMaxNodes = 2'000'000;

GraphImporter::GraphImporter(std::shared_ptr<const onnx::ModelProto> model, const ImportOptions &options,
                             Reporter &reporter, bool expandsLoops)
    : model(std::move(model)), options(options), reporter(reporter), tensors(reporter, options.mayMissData),
      builder(reporter.getContext()), expandsLoops(expandsLoops) {
  for (mlir::RegisteredOperationName name : reporter.getContext()->getRegisteredOperations())
    if (auto *interface = name.getInterface<OnnxOpInterface>())
      oneToOne.try_emplace(interface->getOnnxName(), name);
  for (const onnx::FunctionProto &function : this->model->functions())
    functions[getFunctionKey(function.domain(), function.name(), function.overload())] = &function;
}

//===----------------------------------------------------------------------===//
// Names, places and errors
//===----------------------------------------------------------------------===//

mlir::Location GraphImporter::getLoc(const onnx::NodeProto &node, const Scope &scope) const {
  return reporter.getLoc(scope.prefix + describeNode(node), findSourceName(node, scope));
}

SourceName GraphImporter::findSourceName(const onnx::NodeProto &node, const Scope &scope) {
  SourceName source = getSourceName(node);
  return source ? source : scope.source;
}

mlir::InFlightDiagnostic GraphImporter::invalidNode(const onnx::NodeProto &node, const Scope &scope) {
  auto diagnostic = reporter.error(ImportError::InvalidModel, getLoc(node, scope));
  diagnostic << "node '" << scope.prefix << describeNode(node) << "' (" << node.op_type() << "): ";
  return diagnostic;
}

llvm::LogicalResult GraphImporter::addUnsupported(const onnx::NodeProto &node, Scope &scope,
                                                  llvm::ArrayRef<Binding> inputs, Obstacle obstacle) {
  llvm::StringRef domain = node.domain() == "ai.onnx" ? "" : llvm::StringRef(node.domain());
  std::string what, details;
  llvm::raw_string_ostream(what) << node.op_type() << " of domain '" << (domain.empty() ? "ai.onnx" : domain)
                                 << "', opset " << scope.opsets.lookup(domain);
  llvm::raw_string_ostream os(details);
  os << ", on (";
  llvm::interleaveComma(inputs, os);
  os << ")";
  unsupported.add("node", getLoc(node, scope), std::move(what), std::move(details), std::move(obstacle));
  bindUnknown(node, scope);
  return llvm::success();
}

void GraphImporter::bindResults(const onnx::NodeProto &node, Scope &scope, llvm::ArrayRef<Binding> results) {
  for (auto [name, result] : llvm::zip(node.output(), results))
    scope.bind(name, result);
}

void GraphImporter::bindUnknown(const onnx::NodeProto &node, Scope &scope) {
  for (const std::string &name : node.output())
    scope.bind(name, Binding::unknown());
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

llvm::LogicalResult GraphImporter::importInitializers(const onnx::GraphProto &graph, Scope &scope) {
  for (const onnx::SparseTensorProto &tensor : graph.sparse_initializer())
    if (scope.isNeeded(tensor.values().name()))
      return reporter.error(ImportError::Unsupported)
             << "initializer '" << tensor.values().name() << "' is sparse, which is not supported";
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    if (!scope.isNeeded(tensor.name()))
      continue;
    if (onnx::TensorProto::DataType_IsValid(tensor.data_type()) && tensor.data_type() != onnx::TensorProto::UNDEFINED &&
        !convertElementType(tensor.data_type(), builder.getContext())) {
      unsupported.add("initializer", reporter.getLoc(scope.prefix + tensor.name()), "", "",
                      OnnxNode::describeUnsupportedElements(tensor.data_type()));
      scope.bind(tensor.name(), Binding::unknown());
      continue;
    }
    mlir::RankedTensorType unpacked;
    mlir::ElementsAttr value = tensors.readPacked(tensor, "initializer '" + tensor.name() + "'", scope.owner, unpacked);
    if (!value)
      return llvm::failure();
    std::string name = scope.prefix + tensor.name();
    mlir::Location loc = withTensorName(reporter.getLoc(name), builder.getStringAttr(name));
    mlir::Value constant = ConstantOp::create(builder, loc, value.getShapedType(), value);
    if (unpacked)
      constant = UnpackOp::create(builder, loc, unpacked, constant, unpacked.getRank() - 1);
    scope.bind(tensor.name(), Binding::known(constant));
  }
  return llvm::success();
}

/// `node` with attributes that refer to those of the function around it replaced by their values, or dropped if the
/// caller gave none.
static onnx::NodeProto resolveReferences(const onnx::NodeProto &node,
                                         const llvm::StringMap<onnx::AttributeProto> &values) {
  onnx::NodeProto resolved = node;
  resolved.clear_attribute();
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      *resolved.add_attribute() = attribute;
      continue;
    }
    auto it = values.find(attribute.ref_attr_name());
    if (it == values.end())
      continue;
    *resolved.add_attribute() = it->second;
    resolved.mutable_attribute()->rbegin()->set_name(attribute.name());
  }
  return resolved;
}

/// What ONNX says of an operator of another domain of its own than the main one; null for what it does not know.
static const onnx::OpSchema *lookupForeignSchema(const onnx::NodeProto &node, const Scope &scope) {
  auto opset = scope.opsets.find(node.domain());
  return opset == scope.opsets.end() ? nullptr
                                     : onnx::OpSchemaRegistry::Schema(node.op_type(), opset->second, node.domain());
}

/// Two operands whose elements `schema` wants to be of one type, and that have different ones.
static std::optional<std::pair<size_t, size_t>> findTypeConflict(const onnx::OpSchema &schema,
                                                                 llvm::ArrayRef<Binding> inputs) {
  llvm::StringMap<size_t> first;
  for (auto [index, input] : llvm::enumerate(inputs)) {
    const auto &formal = schema.inputs()[std::min(index, schema.inputs().size() - 1)];
    if (input.kind != Binding::Known || !formal.GetIsHomogeneous())
      continue;
    auto [it, isNew] = first.try_emplace(formal.GetTypeStr(), index);
    if (!isNew &&
        OnnxNode::getType(inputs[it->second].value).getElementType() != OnnxNode::getType(input.value).getElementType())
      return std::pair(it->second, index);
  }
  return std::nullopt;
}

/// What is said of operators that ONNX has, and nothing here.
static Obstacle describeMissing() {
  return {"this operator is not implemented",
          "export the model with other operators in its place, or end the graph before it"};
}

llvm::LogicalResult GraphImporter::importNode(const onnx::NodeProto &original, Scope &scope) {
  if (++numNodes > kMaxNodes)
    return reporter.invalid() << "the model expands to more than " << kMaxNodes << " nodes";
  llvm::SmallVector<Binding> inputs;
  for (const std::string &name : original.input()) {
    const Binding *binding = name.empty() ? nullptr : scope.lookup(name);
    if (!name.empty() && !binding)
      return invalidNode(original, scope) << "no input, initializer or earlier node gives its operand '" << name << "'";
    inputs.push_back(binding ? *binding : Binding::absent());
  }
  bool hasReferences = llvm::any_of(
      original.attribute(), [](const onnx::AttributeProto &attribute) { return !attribute.ref_attr_name().empty(); });
  if (hasReferences && !scope.attributes)
    return invalidNode(original, scope) << "an attribute refers to one of a function, but the node is in none";
  onnx::NodeProto resolved;
  if (hasReferences)
    resolved = resolveReferences(original, *scope.attributes);
  const onnx::NodeProto &node = hasReferences ? resolved : original;
  // A copy of the node dies before its tensors do.
  std::shared_ptr<const void> owner;
  if (hasReferences)
    std::swap(scope.owner, owner);
  llvm::scope_exit restoreOwner([&] {
    if (hasReferences)
      std::swap(scope.owner, owner);
  });

  llvm::StringRef domain = node.domain() == "ai.onnx" ? "" : llvm::StringRef(node.domain());
  const onnx::FunctionProto *function = lookupFunction(node);
  if (domain.empty() && (!function || lookupImport(node.op_type()) || oneToOne.contains(node.op_type())))
    return importOnnxNode(node, scope, inputs);
  if (function)
    return importFunction(node, *function, nullptr, model, scope, inputs);
  return importForeignNode(node, scope, inputs);
}

/// The obstacle of a domain whose nodes are made for one machine; empty for others.
static llvm::StringRef describeMachineDomain(llvm::StringRef domain) {
  if (domain == "com.microsoft.nchwc" || domain == "com.ms.internal.nhwc")
    return "ONNX Runtime has optimised this copy for one machine";
  return {};
}

llvm::LogicalResult GraphImporter::importForeignNode(const onnx::NodeProto &node, Scope &scope,
                                                     llvm::ArrayRef<Binding> inputs) {
  const std::string &domain = node.domain();
  llvm::StringRef machine = describeMachineDomain(domain);
  if (!machine.empty())
    return addUnsupported(node, scope, inputs,
                          {machine.str(), "give the model before optimisation, or save it with "
                                          "GraphOptimizationLevel.ORT_ENABLE_EXTENDED"});
  if (int64_t newest = getNewestVersion(domain)) {
    auto opset = scope.opsets.find(domain);
    if (opset == scope.opsets.end())
      return invalidNode(node, scope) << "the model or function around it does not import the operator set '" << domain
                                      << "'";
    if (opset->second < 1 || opset->second > newest)
      return addUnsupported(node, scope, inputs,
                            {"version " + std::to_string(newest) + " of this domain is the newest that is known",
                             "export the model for version " + std::to_string(newest)});
    if (const ExpansionEntry *entry = lookupExpansion(domain, node.op_type()))
      return importExpansion(node, *entry, scope, inputs);
    return addUnsupported(node, scope, inputs, describeMissing());
  }
  if (const onnx::OpSchema *schema = lookupForeignSchema(node, scope)) {
    if (failed(verifyNode(node, *schema, scope, inputs)))
      return llvm::failure();
    std::optional<llvm::LogicalResult> imported = importBody(node, *schema, scope, inputs);
    return imported ? *imported : addUnsupported(node, scope, inputs, describeMissing());
  }
  return addUnsupported(node, scope, inputs,
                        {"neither this domain is known nor does the model define a function of this name",
                         "export the model with operators of ONNX, or with a function of this name"});
}

llvm::LogicalResult GraphImporter::verifyNode(const onnx::NodeProto &node, const onnx::OpSchema &schema,
                                              const Scope &scope, llvm::ArrayRef<Binding> inputs) {
  try {
    schema.Verify(node);
  } catch (const std::exception &error) {
    return invalidNode(node, scope) << error.what();
  }
  // The schema has looked at names alone; a function's caller may have left an operand out, or a variadic one may lack
  // a name.
  for (auto [index, input] : llvm::enumerate(inputs)) {
    const auto &formal = schema.inputs()[std::min(index, schema.inputs().size() - 1)];
    if (input.kind == Binding::Absent && formal.GetOption() != onnx::OpSchema::Optional)
      return invalidNode(node, scope) << "its operand " << index << " is missing";
  }
  if (auto conflict = findTypeConflict(schema, inputs)) {
    auto describe = [&](size_t index) {
      std::string text;
      llvm::raw_string_ostream(text) << "'" << node.input(static_cast<int>(index)) << "' (" << inputs[index] << ")";
      return text;
    };
    return invalidNode(node, scope) << "the operator takes one type of elements for its inputs "
                                    << describe(conflict->first) << " and " << describe(conflict->second)
                                    << "; convert one of them with a Cast";
  }
  return llvm::success();
}

std::optional<llvm::LogicalResult> GraphImporter::importBody(const onnx::NodeProto &node, const onnx::OpSchema &schema,
                                                             Scope &scope, llvm::ArrayRef<Binding> inputs) {
  auto function = getSchemaFunction(node, schema, scope, inputs);
  if (succeeded(function))
    return importFunction(node, **function, &schema, nullptr, scope, inputs);
  // A body that depends on types may exist, but not be known for unknown ones.
  bool hasUnknown = llvm::any_of(inputs, [](const Binding &input) { return input.kind == Binding::Unknown; });
  if (!hasUnknown || !schema.HasContextDependentFunction())
    return std::nullopt;
  bindUnknown(node, scope);
  return llvm::success();
}

/// Operators that ONNX Runtime had, in ONNX's domain, before ONNX: models that it saves have them in older opsets, too.
static bool isOlderInOnnxRuntime(llvm::StringRef opType) {
  return opType == "LayerNormalization" || opType == "ThresholdedRelu" || opType == "MeanVarianceNormalization";
}

llvm::LogicalResult GraphImporter::importOnnxNode(const onnx::NodeProto &node, Scope &scope,
                                                  llvm::ArrayRef<Binding> inputs) {
  auto opset = scope.opsets.find("");
  if (opset == scope.opsets.end())
    return invalidNode(node, scope) << "the model or function around it does not import the operator set 'ai.onnx'";
  const onnx::OpSchema *schema = nullptr;
  try {
    schema = onnx::OpSchemaRegistry::Schema(node.op_type(), opset->second, "");
    // A form that a newer one has replaced (GroupNormalization of opset 18) has its operands and attributes.
    const onnx::OpSchema *newest = onnx::OpSchemaRegistry::Schema(node.op_type(), "");
    if (schema ? schema->Deprecated() && !newest->Deprecated() : isOlderInOnnxRuntime(node.op_type()))
      schema = newest;
  } catch (const std::exception &error) {
    return invalidNode(node, scope) << error.what();
  }
  if (!schema) {
    if (const onnx::OpSchema *newest = onnx::OpSchemaRegistry::Schema(node.op_type(), ""))
      return invalidNode(node, scope) << "opset " << opset->second
                                      << " does not have this operator (its newest form is of opset "
                                      << newest->SinceVersion() << ")";
    if (const ExpansionEntry *entry = lookupExpansion("", node.op_type()))
      return importExpansion(node, *entry, scope, inputs);
    return addUnsupported(
        node, scope, inputs,
        {"ONNX has no operator of this name", "give the operator its domain, or define it as a function in the model"});
  }
  if (failed(verifyNode(node, *schema, scope, inputs)))
    return llvm::failure();
  auto isBounded = [&](mlir::Value value) { return value && bounds.isBounded(value); };
  for (auto [index, input] : llvm::enumerate(inputs))
    if ((lookupControlFlow(node.op_type()) && isBounded(input.value)) ||
        (input.elements && llvm::any_of(*input.elements, isBounded)))
      return addUnsupported(node, scope, inputs,
                            {"its operand " + std::to_string(index) +
                             " has an extent that varies from run to run, which loops and sequences do not support"});
  if (auto import = lookupControlFlow(node.op_type()))
    return importOperator(
        node, scope, inputs, [&](OnnxNode &onnxNode) { return (this->*import)(onnxNode, scope); },
        /*takesSequences=*/true);
  if (const ImportEntry *entry = lookupImport(node.op_type()))
    return importOperator(node, scope, inputs, entry->fn, entry->takesSequences);
  if (auto it = oneToOne.find(node.op_type()); it != oneToOne.end())
    return importOperator(node, scope, inputs,
                          [&](OnnxNode &onnxNode) { return importOneToOne(onnxNode, it->second); });
  if (std::optional<llvm::LogicalResult> imported = importBody(node, *schema, scope, inputs))
    return *imported;
  return addUnsupported(node, scope, inputs, describeMissing());
}

llvm::LogicalResult GraphImporter::importOperator(const onnx::NodeProto &node, Scope &scope,
                                                  llvm::ArrayRef<Binding> inputs,
                                                  llvm::function_ref<llvm::LogicalResult(OnnxNode &)> import,
                                                  bool takesSequences) {
  if (llvm::any_of(inputs, [](const Binding &input) { return input.kind == Binding::Unknown; })) {
    bindUnknown(node, scope);
    return llvm::success();
  }
  for (auto [number, input] : llvm::enumerate(inputs))
    if (input.isSequenceOrNothing() && !takesSequences) {
      std::string what;
      llvm::raw_string_ostream(what) << input;
      return invalidNode(node, scope) << "its operand " << number << " is " << what << ", but it takes tensors";
    }
  mlir::Location loc = getLoc(node, scope);
  auto isUsed = [&](llvm::StringRef name) { return scope.isNeeded(name); };
  mlir::Operation *last = builder.getBlock()->empty() ? nullptr : &builder.getBlock()->back();
  OnnxNode onnxNode(node, inputs, {builder, reporter, bounds, loc, scope.prefix + describeNode(node), node.op_type()},
                    {tensors, scope.opsets.lookup(""), scope.owner, isUsed});
  if (failed(import(onnxNode))) {
    if (reporter.getFirstError())
      return llvm::failure();
    if (!onnxNode.getObstacle())
      return invalidNode(node, scope) << "it could not be imported";
    return addUnsupported(node, scope, inputs, *onnxNode.getObstacle());
  }
  llvm::SmallVector<mlir::Value> values, results;
  for (const Binding &input : inputs)
    values.push_back(input.value);
  for (const Binding &result : onnxNode.getResults()) {
    results.push_back(result.value);
    if (result.elements)
      llvm::append_range(results, *result.elements);
  }
  bool hasGraphs = isControlFlow(node.op_type());
  if (std::optional<Obstacle> obstacle = inferBounds(values, results, last, hasGraphs))
    return addUnsupported(node, scope, inputs, std::move(*obstacle));
  // To ask for the order of operations in a block that grows numbers all of them anew.
  llvm::SmallPtrSet<mlir::Operation *, 16> created;
  mlir::Block *block = builder.getBlock();
  for (auto op = last ? std::next(last->getIterator()) : block->begin(); op != block->end(); ++op)
    created.insert(&*op);
  for (auto [number, name, result] : llvm::enumerate(node.output(), onnxNode.getResults())) {
    if (result.kind == Binding::Absent) {
      if (scope.isNeeded(name))
        return addUnsupported(node, scope, inputs,
                              {"its result number " + std::to_string(number) + " is not computed"});
      continue;
    }
    scope.bind(name, result);
    mlir::Operation *op = result.kind == Binding::Known ? result.value.getDefiningOp() : nullptr;
    if (op && created.contains(op) && getTensorName(op->getLoc()).empty())
      op->setLoc(withTensorName(loc, builder.getStringAttr(scope.prefix + name)));
  }
  return llvm::success();
}

std::optional<Obstacle> GraphImporter::inferBounds(llvm::ArrayRef<mlir::Value> values,
                                                   llvm::ArrayRef<mlir::Value> results, mlir::Operation *last,
                                                   bool hasGraphs) {
  auto bounded = llvm::find_if(values, [&](mlir::Value value) { return bounds.isBounded(value); });
  // Graphs use values that are no operands.
  if (bounded == values.end() && !hasGraphs)
    return std::nullopt;
  // What the import did not use after all need not be right.
  llvm::SmallVector<mlir::Operation *> created;
  mlir::Block *block = builder.getBlock();
  for (mlir::Operation *op = block->empty() ? nullptr : &block->back(); op && op != last;) {
    mlir::Operation *before = op->getPrevNode();
    bool stays = llvm::any_of(op->getResults(), [&](mlir::Value value) {
      return bounds.isCount(value) || llvm::is_contained(results, value);
    });
    if (stays || !mlir::isOpTriviallyDead(op)) {
      created.push_back(op);
    } else {
      llvm::for_each(op->getResults(), [&](mlir::Value value) { bounds.forget(value); });
      op->erase();
    }
    op = before;
  }
  for (mlir::Operation *op : llvm::reverse(created))
    if (std::optional<Obstacle> obstacle = bounds.infer(op))
      return obstacle;
  // What no operation makes of the operand, such as its shape, follows from its bound.
  for (auto [number, result] : llvm::enumerate(results))
    if (bounded != values.end() && result && !bounds.isKnown(result)) {
      llvm::ArrayRef<mlir::Value> counts = bounds.get(*bounded);
      unsigned dim = llvm::find_if(counts, [](mlir::Value count) { return static_cast<bool>(count); }) - counts.begin();
      return describeBounded("operand " + llvm::Twine(bounded - values.begin()), dim, OnnxNode::getShape(*bounded)[dim],
                             "result " + llvm::Twine(number) + " of the operator follows from it");
    }
  return std::nullopt;
}
