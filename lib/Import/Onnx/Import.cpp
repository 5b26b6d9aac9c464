//===- Import.cpp - From ONNX models to the dovetail dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements importOnnx, and the part of GraphImporter that makes the module and its main function.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Import/Import.h"

#include "GraphImporter.h"
#include "InputShapes.h"
#include "ModelFile.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace dovetail;
using namespace dovetail::importer;

/// Twice as many loops are as many as a kernel may have; operators such as a convolution need that.
static constexpr int64_t kMaxRank = 32;

mlir::OwningOpRef<mlir::ModuleOp> GraphImporter::createModule() {
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(reporter.getFileLoc());
  llvm::SmallVector<mlir::NamedAttribute> opsets;
  for (const onnx::OperatorSetIdProto &opset : model->opset_import())
    opsets.push_back(builder.getNamedAttr(opset.domain().empty() ? "ai.onnx" : opset.domain(),
                                          builder.getI64IntegerAttr(opset.version())));
  llvm::StringRef version = model->producer_version();
  std::string producer = model->producer_name() + (version.empty() ? "" : " " + version.str());
  mlir::NamedAttrList sorted;
  for (mlir::NamedAttribute opset : opsets)
    sorted.set(opset.getName(), opset.getValue());
  (*module)->setAttr("dovetail.model", builder.getStringAttr(model->graph().name()));
  (*module)->setAttr("dovetail.producer", builder.getStringAttr(producer));
  (*module)->setAttr("dovetail.ir_version", builder.getI64IntegerAttr(model->ir_version()));
  (*module)->setAttr("dovetail.opsets", sorted.getDictionary(builder.getContext()));
  return module;
}

/// Annotations for several devices are hints about shardings, which this version does not read.
static void warnOfDevices(const onnx::ModelProto &model, Reporter &reporter) {
  for (const onnx::NodeProto &node : model.graph().node())
    if (node.device_configurations_size() > 0) {
      mlir::emitWarning(reporter.getFileLoc())
          << "the model says how nodes are split over devices (device_configurations, first at node '" << node.name()
          << "'): the compiler ignores this; state it with --mesh and --shard";
      return;
    }
}

mlir::OwningOpRef<mlir::ModuleOp> GraphImporter::run() {
  const onnx::GraphProto &graph = model->graph();
  warnOfDevices(*model, reporter);
  llvm::SmallVector<const onnx::ValueInfoProto *> inputs = getInputs(graph);
  auto resolved = resolveInputTypes(inputs, options, reporter);
  if (failed(resolved))
    return {};
  auto arguments = llvm::to_vector_of<mlir::Type>(resolved->types);
  arguments.append(resolved->names.size(), mlir::RankedTensorType::get({}, builder.getI64Type()));

  mlir::OwningOpRef<mlir::ModuleOp> module = createModule();
  builder.setInsertionPointToEnd(module->getBody());
  auto main =
      mlir::func::FuncOp::create(builder, reporter.getFileLoc(), "main", builder.getFunctionType(arguments, {}));
  if (failed(importMain(main, inputs, *resolved)))
    return {};
  return module;
}

llvm::SmallVector<mlir::Value> GraphImporter::bindLengths(mlir::func::FuncOp main, const InputTypes &types) {
  unsigned numInputs = types.types.size();
  auto lengths = llvm::to_vector_of<mlir::Value>(main.getArguments().drop_front(numInputs));
  for (auto [number, name] : llvm::enumerate(types.names)) {
    main.setArgAttr(numInputs + number, "dovetail.name", builder.getStringAttr(name));
    main.setArgAttr(numInputs + number, kCountAttrName, builder.getUnitAttr());
    main.getArgument(numInputs + number).setLoc(reporter.getLoc(name));
  }
  for (auto [index, numbers] : llvm::enumerate(types.lengths)) {
    if (numbers.empty())
      continue;
    main.setArgAttr(index, kCountsAttrName, builder.getDenseI64ArrayAttr(numbers));
    bounds.set(main.getArgument(index), llvm::map_to_vector(numbers, [&](int64_t number) {
                 return number < 0 ? mlir::Value() : lengths[number];
               }));
  }
  return lengths;
}

llvm::LogicalResult GraphImporter::importMain(mlir::func::FuncOp main,
                                              llvm::ArrayRef<const onnx::ValueInfoProto *> inputs,
                                              const InputTypes &types) {
  const onnx::GraphProto &graph = model->graph();
  mlir::Block *block = main.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  Scope scope;
  scope.owner = model;
  for (const onnx::OperatorSetIdProto &opset : model->opset_import())
    scope.opsets[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
  // All at once: each change makes a new list of all of them.
  llvm::SmallVector<mlir::DictionaryAttr> argAttrs(main.getNumArguments(), builder.getDictionaryAttr({}));
  for (auto [index, input] : llvm::enumerate(inputs))
    argAttrs[index] =
        builder.getDictionaryAttr(builder.getNamedAttr("dovetail.name", builder.getStringAttr(input->name())));
  main.setAllArgAttrs(argAttrs);
  for (auto [index, input] : llvm::enumerate(inputs)) {
    block->getArgument(index).setLoc(reporter.getLoc(input->name()));
    scope.bind(input->name(), Binding::known(block->getArgument(index)));
  }
  // Those of the inputs come first.
  llvm::SmallVector<mlir::Value> counts = bindLengths(main, types);
  size_t numLengths = counts.size();
  collectUses(graph, scope.needed);
  if (failed(importInitializers(graph, scope)) || failed(importNodes(graph.node(), scope)))
    return llvm::failure();
  for (auto [input, value] : llvm::zip(inputs, block->getArguments()))
    checkRank(value, input->name());
  for (mlir::Operation &op : *block)
    for (mlir::Value result : op.getResults())
      checkRank(result, getTensorName(op.getLoc()));
  if (!unsupported.empty())
    return unsupported.report(reporter);

  llvm::SmallVector<mlir::Value> results;
  llvm::SmallVector<mlir::Type> resultTypes;
  llvm::SmallVector<mlir::DictionaryAttr> resultAttrs, countAttrs;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    const Binding *result = scope.lookup(output.name());
    if (result && result->isSequenceOrNothing())
      return reporter.error(ImportError::Unsupported)
             << "output '" << output.name() << "' is not a tensor: return the tensors of a sequence one by one";
    if (!result || result->kind != Binding::Known)
      return reporter.invalid() << "output '" << output.name() << "' is not computed";
    if (failed(checkOutputType(output, result->value)))
      return llvm::failure();
    results.push_back(result->value);
    mlir::NamedAttrList attributes;
    attributes.set("dovetail.name", builder.getStringAttr(output.name()));
    llvm::SmallVector<int64_t> numbers;
    for (auto [dim, count] : llvm::enumerate(bounds.get(result->value))) {
      numbers.push_back(count ? llvm::find(counts, count) - counts.begin() : -1);
      if (numbers.back() < static_cast<int64_t>(counts.size()))
        continue;
      counts.push_back(count);
      countAttrs.push_back(builder.getDictionaryAttr(
          {builder.getNamedAttr("dovetail.name", builder.getStringAttr(output.name() + ":" + std::to_string(dim))),
           builder.getNamedAttr(kCountAttrName, builder.getUnitAttr())}));
    }
    if (!numbers.empty())
      attributes.set(kCountsAttrName, builder.getDenseI64ArrayAttr(numbers));
    resultAttrs.push_back(attributes.getDictionary(builder.getContext()));
  }
  if (results.empty())
    return reporter.invalid() << "graph '" << graph.name() << "' has no outputs";
  // Who runs the program is to know the counts of its outputs.
  results.append(counts.begin() + numLengths, counts.end());
  resultAttrs.append(countAttrs);
  for (mlir::Value result : results)
    resultTypes.push_back(result.getType());
  mlir::func::ReturnOp::create(builder, reporter.getFileLoc(), results);
  main.setFunctionType(builder.getFunctionType(block->getArgumentTypes(), resultTypes));
  main.setAllResultAttrs(resultAttrs);
  // What only served to compute shapes is of no more use.
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
    if (mlir::isOpTriviallyDead(&op))
      op.erase();
  return llvm::success();
}

void GraphImporter::checkRank(mlir::Value value, llvm::StringRef name) {
  int64_t rank = OnnxNode::getType(value).getRank();
  if (rank > kMaxRank)
    unsupported.add(
        "tensor", reporter.getLoc(name), "", "",
        {"it has " + std::to_string(rank) + " dimensions, but at most " + std::to_string(kMaxRank) + " are supported",
         "export the model with dimensions merged"});
}

llvm::LogicalResult GraphImporter::checkOutputType(const onnx::ValueInfoProto &output, mlir::Value value) {
  mlir::RankedTensorType type = OnnxNode::getType(value);
  llvm::ArrayRef<mlir::Value> counts = bounds.get(value);
  if (!output.type().has_tensor_type())
    return llvm::success();
  const auto &declared = output.type().tensor_type();
  if (declared.elem_type() != onnx::TensorProto::UNDEFINED &&
      declared.elem_type() != convertElementType(type.getElementType()))
    return reporter.invalid() << "output '" << output.name() << "' is declared with elements of type "
                              << describeElementType(declared.elem_type()) << " but has type " << type;
  if (!declared.has_shape())
    return llvm::success();
  bool agrees = declared.shape().dim_size() == type.getRank();
  for (int64_t i = 0; agrees && i < type.getRank(); ++i)
    agrees = !declared.shape().dim(i).has_dim_value() || declared.shape().dim(i).dim_value() < 0 ||
             declared.shape().dim(i).dim_value() == type.getDimSize(i) || (!counts.empty() && counts[i]);
  if (!agrees)
    mlir::emitWarning(reporter.getFileLoc())
        << "output '" << output.name() << "' has type " << type << ", not the shape that the model declares";
  return llvm::success();
}

/// Emits diagnostics in their order; of warnings that differ in their nodes alone the first one, with their number.
static void emitAll(std::vector<mlir::Diagnostic> &diagnostics, mlir::MLIRContext &context) {
  std::map<std::string, int64_t> warnings;
  for (const mlir::Diagnostic &diagnostic : diagnostics)
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning)
      ++warnings[diagnostic.str()];
  for (mlir::Diagnostic &diagnostic : diagnostics) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning) {
      int64_t count = std::exchange(warnings[diagnostic.str()], 0);
      if (count == 0)
        continue;
      if (count > 1)
        diagnostic << " (the same holds for " << count - 1 << " more)";
    }
    context.getDiagEngine().emit(std::move(diagnostic));
  }
}

/// Imports the model that `read` gets, at `path`.
static ImportResult importModel(llvm::StringRef path, const ImportOptions &options, mlir::MLIRContext &context,
                                llvm::function_ref<std::shared_ptr<const onnx::ModelProto>(Reporter &reporter)> read) {
  context.loadDialect<DovetailDialect, mlir::func::FuncDialect>();
  Reporter reporter(context, path);
  auto failure = [&] { return ImportResult{nullptr, reporter.getFirstError().value_or(ImportError::InvalidModel)}; };
  try {
    std::shared_ptr<const onnx::ModelProto> model = read(reporter);
    if (!model || failed(checkModel(*model, reporter)))
      return failure();
    std::optional<Reporter> attempt(reporter);
    std::vector<mlir::Diagnostic> diagnostics;
    mlir::OwningOpRef<mlir::ModuleOp> module;
    {
      mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
        diagnostics.push_back(std::move(diagnostic));
        return mlir::success();
      });
      GraphImporter importer(model, options, *attempt, /*expandsLoops=*/false);
      module = importer.run();
      // What cannot be repeated may be expanded, as when its shapes depend on the iteration.
      if (!module && importer.hasChosenRepeat()) {
        diagnostics.clear();
        attempt.emplace(reporter);
        module = GraphImporter(model, options, *attempt, /*expandsLoops=*/true).run();
      }
    }
    emitAll(diagnostics, context);
    if (!module)
      return ImportResult{nullptr, attempt->getFirstError().value_or(ImportError::InvalidModel)};
    return ImportResult{std::move(module), {}, attempt->getExternalFiles(), attempt->getMissingFiles()};
  } catch (const std::exception &error) {
    // Only libonnx and protobuf throw.
    reporter.invalid() << "model '" << path << "' cannot be read: " << error.what();
    return failure();
  }
}

ImportResult dovetail::importOnnx(llvm::StringRef path, const ImportOptions &options, mlir::MLIRContext &context) {
  return importModel(path, options, context, readModel);
}

ImportResult dovetail::importOnnx(llvm::MemoryBufferRef model, const ImportOptions &options,
                                  mlir::MLIRContext &context) {
  return importModel(model.getBufferIdentifier(), options, context,
                     [&](Reporter &reporter) { return parseModel(model.getBuffer(), reporter); });
}
