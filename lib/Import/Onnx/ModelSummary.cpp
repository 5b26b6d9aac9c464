//===- ModelSummary.cpp - What a model states of itself -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements summarizeModel from the protobuf alone: nothing is imported.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Import/ModelSummary.h"

#include "InputShapes.h"
#include "ModelFile.h"
#include "TensorData.h"

#include "llvm/ADT/StringSet.h"

using namespace dovetail;
using namespace dovetail::importer;

bool ModelSummary::isOpen() const {
  return llvm::any_of(inputs, [](const TensorSummary &input) {
    return !input.hasShape || llvm::any_of(input.dims, [](const DimSummary &dim) { return !dim.extent; });
  });
}

/// Adds the declared type of a tensor.
static void summarizeType(const onnx::TypeProto &type, TensorSummary &summary, Reporter &reporter) {
  if (mlir::Type element = convertElementType(type.tensor_type().elem_type(), reporter.getContext()))
    llvm::raw_string_ostream(summary.type) << element;
  summary.hasShape = type.tensor_type().has_shape();
  for (const onnx::TensorShapeProto::Dimension &dim : type.tensor_type().shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() >= 0)
      summary.dims.push_back({std::to_string(dim.dim_value()), dim.dim_value()});
    else
      summary.dims.push_back({dim.dim_param().empty() ? "?" : dim.dim_param()});
  }
}

/// Adds the tensors that the nodes of a graph compute.
static void summarizeNodes(const onnx::GraphProto &graph, ModelSummary &summary, Reporter &reporter) {
  llvm::StringMap<const onnx::ValueInfoProto *> declared;
  llvm::StringMap<size_t> outputs;
  for (const onnx::ValueInfoProto &value : graph.value_info())
    declared[value.name()] = &value;
  for (auto [index, output] : llvm::enumerate(summary.outputs))
    outputs[output.name] = index;
  for (const onnx::NodeProto &node : graph.node()) {
    for (const std::string &name : node.output()) {
      if (auto output = outputs.find(name); output != outputs.end()) {
        summary.outputs[output->second].node = node.name();
        continue;
      }
      if (name.empty() || (node.domain().empty() && node.op_type() == "Constant"))
        continue;
      TensorSummary &tensor = summary.tensors.emplace_back();
      tensor.name = name;
      tensor.node = node.name();
      if (const onnx::ValueInfoProto *value = declared.lookup(name))
        summarizeType(value->type(), tensor, reporter);
    }
  }
}

static SummaryResult summarize(llvm::StringRef path, const ImportOptions &options, mlir::MLIRContext &context,
                               llvm::function_ref<std::shared_ptr<const onnx::ModelProto>(Reporter &)> read) {
  context.loadDialect<DovetailDialect>();
  Reporter reporter(context, path);
  auto failure = [&] {
    return SummaryResult{std::nullopt, reporter.getFirstError().value_or(ImportError::InvalidModel)};
  };
  try {
    std::shared_ptr<const onnx::ModelProto> model = read(reporter);
    if (!model || failed(checkModel(*model, reporter)))
      return failure();
    const onnx::GraphProto &graph = model->graph();
    llvm::SmallVector<const onnx::ValueInfoProto *> inputs = getInputs(graph);
    llvm::FailureOr<std::vector<InputSummary>> shapes = summarizeInputs(inputs, options, reporter);
    if (failed(shapes))
      return failure();
    ModelSummary summary;
    summary.name = graph.name();
    summary.producer =
        model->producer_name() + (model->producer_version().empty() ? "" : " ") + model->producer_version();
    for (const onnx::OperatorSetIdProto &opset : model->opset_import())
      summary.opsets.emplace_back(opset.domain().empty() ? "ai.onnx" : opset.domain(), opset.version());
    for (auto [input, shape] : llvm::zip_equal(inputs, *shapes)) {
      TensorSummary &tensor = summary.inputs.emplace_back();
      tensor.name = input->name();
      summarizeType(input->type(), tensor, reporter);
      tensor.hasShape = shape.hasShape;
      tensor.dims = std::move(shape.dims);
    }
    for (const onnx::ValueInfoProto &output : graph.output()) {
      TensorSummary &tensor = summary.outputs.emplace_back();
      tensor.name = output.name();
      summarizeType(output.type(), tensor, reporter);
    }
    summarizeNodes(graph, summary, reporter);
    return {std::move(summary)};
  } catch (const std::exception &error) {
    // Only libonnx and protobuf throw.
    reporter.invalid() << "model '" << path << "' cannot be read: " << error.what();
    return failure();
  }
}

SummaryResult dovetail::summarizeModel(llvm::StringRef path, const ImportOptions &options, mlir::MLIRContext &context) {
  return summarize(path, options, context, readModel);
}

SummaryResult dovetail::summarizeModel(llvm::MemoryBufferRef model, const ImportOptions &options,
                                       mlir::MLIRContext &context) {
  return summarize(model.getBufferIdentifier(), options, context,
                   [&](Reporter &reporter) { return parseModel(model.getBuffer(), reporter); });
}
