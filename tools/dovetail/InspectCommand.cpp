//===- InspectCommand.cpp - dovetail inspect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shows what is in an artifact or in an ONNX model.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Driver/CommandLine.h"
#include "dovetail/Driver/Compilation.h"
#include "dovetail/Driver/Execution.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/Driver/Requests.h"
#include "dovetail/Sharding/ShardingUtils.h"
#include "dovetail/tools/RunCommands.h"
#include "dovetail/tools/Support.h"

using namespace dovetail;
using llvm::LogicalResult;
using llvm::StringRef;
using Rows = std::vector<std::vector<std::string>>;

namespace {
struct InspectCommand {
  std::string path;
  bool json = false;
  int threads = 1;
  CompileArguments arguments;

  LogicalResult run(Diagnostics &diagnostics);

private:
  LogicalResult inspectModel(Diagnostics &diagnostics);
};
} // namespace

static std::string toString(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static void printValues(StringRef title, llvm::ArrayRef<std::string> names, mlir::TypeRange types) {
  Rows rows = {{"name", "type"}};
  for (auto [name, type] : llvm::zip_equal(names, types))
    rows.push_back({name, toString(type)});
  llvm::outs() << "\n" << title << "\n" << tools::formatTable(rows);
}

/// How often each operation occurs, and what its results amount to.
static void printOperations(mlir::func::FuncOp main) {
  struct Usage {
    int64_t count = 0, bytes = 0;
  };
  std::map<std::string, Usage> usages;
  int64_t constantBytes = 0;
  for (mlir::Operation &op : main.getBody().front().without_terminator()) {
    int64_t bytes = getByteSize(llvm::cast<mlir::RankedTensorType>(op.getResult(0).getType()));
    if (llvm::isa<ConstantOp>(op)) {
      constantBytes += bytes;
      continue;
    }
    Usage &usage = usages[op.getName().stripDialect().str()];
    ++usage.count;
    usage.bytes += bytes;
  }
  Rows rows = {{"operation", "count", "results"}};
  for (const auto &[name, usage] : usages)
    rows.push_back({name, std::to_string(usage.count), tools::formatBytes(usage.bytes)});
  llvm::outs() << "\nOperations, after import\n" << tools::formatTable(rows);
  llvm::outs() << "\nConstants: " << tools::formatBytes(constantBytes) << "\n";
}

LogicalResult InspectCommand::inspectModel(Diagnostics &diagnostics) {
  if (json)
    return diagnostics.error(ExitCode::Usage, "--json describes compiled programs only; compile '" + path + "' first");
  llvm::FailureOr<CompileOptions> options = parseOptions(arguments, diagnostics);
  if (failed(options))
    return llvm::failure();
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  Compilation compilation(*context, std::move(*options), diagnostics);
  if (failed(compilation.import(path)))
    return llvm::failure();
  Progress::clear();
  mlir::ModuleOp module = compilation.getModule();
  auto text = [&](StringRef name) {
    auto attribute = module->getAttrOfType<mlir::StringAttr>(name);
    return attribute ? attribute.str() : "";
  };
  std::string opsets;
  if (auto all = module->getAttrOfType<mlir::DictionaryAttr>("dovetail.opsets"))
    for (mlir::NamedAttribute opset : all)
      opsets += (opsets.empty() ? "" : ", ") + opset.getName().str() + " " +
                std::to_string(llvm::cast<mlir::IntegerAttr>(opset.getValue()).getInt());
  llvm::outs() << tools::formatTable({{"file", path},
                                      {"model", text("dovetail.model")},
                                      {"producer", text("dovetail.producer")},
                                      {"operator sets", opsets}},
                                     "");
  mlir::func::FuncOp main = getMain(module);
  std::vector<std::string> inputs = getInputNames(main);
  printValues("Inputs", inputs, main.getArgumentTypes().take_front(inputs.size()));
  std::vector<std::string> outputs = getOutputNames(main);
  printValues("Outputs", outputs, main.getResultTypes().take_front(outputs.size()));
  printOperations(main);
  return llvm::success();
}

LogicalResult InspectCommand::run(Diagnostics &diagnostics) {
  StringRef name(path);
  if (name.ends_with(".onnx") || name.ends_with(".onnxtxt"))
    return inspectModel(diagnostics);
  if (!arguments.dims.empty() || !arguments.bounds.empty() || !arguments.shapes.empty())
    return diagnostics.error(ExitCode::Usage,
                             "--dim, --bound and --shape describe models (.onnx, .onnxtxt); the shapes of '" + path +
                                 "' are fixed");
  absl::Status status = tools::inspectArtifact(path, json, threads);
  if (!status.ok())
    return diagnostics.error(getExitCode(status), std::string(status.message()));
  return llvm::success();
}

void dovetail::addInspectCommand(CLI::App &app, int &exitCode) {
  CLI::App *command = app.add_subcommand("inspect", "Show what is in a compiled program or in an ONNX model");
  command->footer(R"(Examples:
  dovetail inspect unet.dvt
  dovetail inspect unet.dvt --json
  dovetail inspect unet.onnx --dim N=1)");
  auto state = std::make_shared<InspectCommand>();
  command->add_option("file", state->path, "Compiled program (.dvt) or ONNX model (.onnx, .onnxtxt)")->required();
  command->add_flag("--json", state->json, "Print JSON (compiled programs)");
  command
      ->add_option("--threads", state->threads,
                   "Threads of each rank: library calls take scratch memory for each (compiled programs)")
      ->capture_default_str()
      ->type_name("N");
  addShapeOptions(*command, state->arguments);
  command->callback([state, &exitCode] {
    Progress::Shown progress;
    Diagnostics diagnostics(llvm::errs());
    (void)state->run(diagnostics);
    exitCode = static_cast<int>(diagnostics.getExitCode());
  });
}
