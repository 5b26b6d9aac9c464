//===- OperatorsCommand.cpp - dovetail operators --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lists the ONNX operators that are known, or says of models what moves where their inputs are split.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Dovetail/IR/TensorName.h"
#include "dovetail/Driver/CommandLine.h"
#include "dovetail/Driver/Compilation.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/Driver/Requests.h"
#include "dovetail/Import/Operators.h"
#include "dovetail/Sharding/SplitFacts.h"
#include "dovetail/Text/SourceName.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/StringExtras.h"

#include <nlohmann/json.hpp>

using namespace dovetail;
using llvm::LogicalResult;
using nlohmann::json;

namespace {
struct OperatorsCommand {
  std::vector<std::string> models;
  bool isJson = false;
  CompileArguments arguments;

  LogicalResult run(Diagnostics &diagnostics);

private:
  LogicalResult describe(const std::string &path, mlir::MLIRContext &context, json &described,
                         Diagnostics &diagnostics);
};
} // namespace

static const char *getWay(KnownOperator::Way way) {
  switch (way) {
  case KnownOperator::Import:
    return "import";
  case KnownOperator::Operation:
    return "operation";
  case KnownOperator::Function:
    return "function";
  case KnownOperator::Expansion:
    return "expansion";
  }
  llvm_unreachable("covered switch");
}

/// `halo (conv1), sum (head)`: what moves, and the first node because of which it does.
static std::string describeMoves(const json &facts, const json &nodes, const json &sources) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < facts.size(); ++i) {
    auto node = (sources[i] == "" ? nodes : sources)[i].get<std::string>();
    parts.push_back(facts[i].get<std::string>() + (node.empty() ? "" : " (" + node + ")"));
  }
  return parts.empty() ? "nothing" : llvm::join(parts, ", ");
}

/// Adds the inputs of a model to `described`, each with its type. For each dimension it says what moves, and the nodes
/// that cause it.
LogicalResult OperatorsCommand::describe(const std::string &path, mlir::MLIRContext &context, json &described,
                                         Diagnostics &diagnostics) {
  llvm::FailureOr<CompileOptions> options = parseOptions(arguments, diagnostics);
  if (failed(options))
    return llvm::failure();
  Compilation compilation(context, std::move(*options), diagnostics);
  // Ranks compute the graph that is left then.
  if (failed(compilation.import(path)) || failed(compilation.runTo(Phase::Legalize)))
    return llvm::failure();
  mlir::func::FuncOp main = getMain(compilation.getModule());
  json inputs = json::array();
  for (auto [name, argument] : llvm::zip(getInputNames(main), main.getArguments())) {
    auto type = llvm::cast<mlir::RankedTensorType>(argument.getType());
    std::string text;
    llvm::raw_string_ostream(text) << type.getElementType();
    json dims = json::array(), causes = json::array(), titles = json::array();
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      json facts = json::array(), nodes = json::array(), sources = json::array();
      for (auto [fact, op] : getSplitFacts(argument, dim)) {
        facts.push_back(stringifySplitFact(fact).str());
        nodes.push_back(getNodeName(op->getLoc()).str());
        sources.push_back(getSourceName(op->getLoc()));
      }
      dims.push_back(std::move(facts));
      causes.push_back(std::move(nodes));
      titles.push_back(std::move(sources));
    }
    inputs.push_back({{"name", name},
                      {"type", text},
                      {"shape", type.getShape().vec()},
                      {"moves", std::move(dims)},
                      {"nodes", std::move(causes)},
                      {"sources", std::move(titles)}});
  }
  described.push_back({{"model", path}, {"inputs", std::move(inputs)}});
  return llvm::success();
}

LogicalResult OperatorsCommand::run(Diagnostics &diagnostics) {
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  if (models.empty()) {
    json operators = json::array();
    std::vector<std::vector<std::string>> rows = {{"operator", "imported by"}};
    std::vector<std::vector<std::string>> added = {{"operator that ONNX Runtime adds", "domain"}};
    for (const KnownOperator &known : listOperators(*context)) {
      std::string domain = known.domain.empty() ? "ai.onnx" : known.domain;
      operators.push_back({{"domain", domain}, {"name", known.name}, {"way", getWay(known.way)}});
      if (known.way == KnownOperator::Expansion)
        added.push_back({known.name, domain});
      else
        rows.push_back({known.name, getWay(known.way)});
    }
    std::string tables = tools::formatTable(rows) + "\n" + tools::formatTable(added);
    llvm::outs() << (isJson ? operators.dump(1) + "\n" : tables);
    return llvm::success();
  }
  json described = json::array();
  for (const std::string &model : models)
    if (failed(describe(model, *context, described, diagnostics)))
      return llvm::failure();
  Progress::clear();
  if (isJson) {
    // Names come from models, which may contain any bytes.
    llvm::outs() << described.dump(1, ' ', false, json::error_handler_t::replace) << "\n";
    return llvm::success();
  }
  // Names in models may have any characters, and must not act on a terminal.
  auto clean = [](const json &name) { return text::clean(name.get<std::string>(), std::string::npos); };
  for (const json &model : described) {
    std::vector<std::vector<std::string>> rows = {{"input", "dimension", "extent", "what moves"}};
    for (const json &input : model["inputs"])
      for (size_t dim = 0; dim < input["shape"].size(); ++dim)
        rows.push_back({clean(input["name"]), std::to_string(dim), std::to_string(input["shape"][dim].get<int64_t>()),
                        clean(describeMoves(input["moves"][dim], input["nodes"][dim], input["sources"][dim]))});
    llvm::outs() << clean(model["model"]) << "\n" << tools::formatTable(rows);
  }
  return llvm::success();
}

void dovetail::addOperatorsCommand(CLI::App &app, int &exitCode) {
  CLI::App *command = app.add_subcommand(
      "operators", "List the known ONNX operators, or what ranks exchange if inputs of a model are split");
  command->footer(
      R"(What moves between ranks if a dimension is split in the middle, and the first node that causes it:
  nothing  ranks compute their parts
  halo     elements beyond the cuts
  order    elements that go to another rank, as a dimension is reversed, joined or repeated
  sum      parts of sums, means, maxima, of the result's extents
  parts    what each rank's terms come to, combined by all
  carry    what running sums come to at each cut
  owner    what is looked up, from the rank that has it
  whole    all of the dimension, or another one is split instead

Examples:
  dovetail operators
  dovetail operators unet.onnx --dim N=1)");
  auto state = std::make_shared<OperatorsCommand>();
  command->add_option("models", state->models, "ONNX models (.onnx, .onnxtxt)");
  command->add_flag("--json", state->isJson, "Print JSON.");
  addShapeOptions(*command, state->arguments);
  command->callback([state, &exitCode] {
    Progress::Shown progress;
    Diagnostics diagnostics(llvm::errs());
    (void)state->run(diagnostics);
    exitCode = static_cast<int>(diagnostics.getExitCode());
  });
}
