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
#include "ModelReport.h"

#include "dovetail/Driver/CommandLine.h"
#include "dovetail/Driver/Execution.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/tools/RunCommands.h"

#include <nlohmann/json.hpp>

using namespace dovetail;
using llvm::LogicalResult;
using llvm::StringRef;

namespace {
struct InspectCommand {
  explicit InspectCommand(CommandContext &context) : context(context) {}

  CommandContext &context;
  std::string path;
  bool json = false, all = false;
  int threads = 1;
  CompileArguments arguments;

  LogicalResult run(Diagnostics &diagnostics);

private:
  LogicalResult inspectModel(Diagnostics &diagnostics);
};
} // namespace

LogicalResult InspectCommand::inspectModel(Diagnostics &diagnostics) {
  llvm::FailureOr<CompileOptions> options = parseOptions(arguments, diagnostics);
  if (failed(options))
    return llvm::failure();
  llvm::FailureOr<nlohmann::json> report = describeModel(context.getModel(path), std::move(*options), diagnostics);
  if (failed(report))
    return llvm::failure();
  Progress::clear();
  // Names come from models, which may contain any bytes.
  context.out << (json ? report->dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                       : formatModel(*report, all));
  return llvm::success();
}

LogicalResult InspectCommand::run(Diagnostics &diagnostics) {
  StringRef name(path);
  if (name.ends_with(".onnx") || name.ends_with(".onnxtxt") || context.model)
    return inspectModel(diagnostics);
  if (!arguments.dims.empty() || !arguments.bounds.empty() || !arguments.shapes.empty())
    return diagnostics.error(ExitCode::Usage,
                             "--dim, --bound and --shape describe models (.onnx, .onnxtxt); the shapes of '" + path +
                                 "' are fixed");
  std::string text;
  absl::Status status = tools::inspectArtifact(path, json, threads, text);
  context.out << text;
  if (!status.ok())
    return diagnostics.error(getExitCode(status), std::string(status.message()));
  return llvm::success();
}

void dovetail::addInspectCommand(CLI::App &app, int &exitCode, CommandContext &context) {
  CLI::App *command = app.add_subcommand("inspect", "Show what is in a compiled program or in an ONNX model");
  command->footer(
      R"(For a model, the command lists inputs, dimensions without an extent, and tensors that --shard takes.

Examples:
  dovetail inspect unet.onnx
  dovetail inspect unet.onnx --dim N=1 --all
  dovetail inspect unet.dvt
  dovetail inspect unet.dvt --json)");
  auto state = std::make_shared<InspectCommand>(context);
  command->add_option("file", state->path, "Compiled program (.dvt) or ONNX model (.onnx, .onnxtxt)")->required();
  command->add_flag("--json", state->json, "Print everything as JSON.");
  command->add_flag("--all", state->all, "List all tensors of a model instead of the first 20.");
  command
      ->add_option("--threads", state->threads,
                   "Threads of each rank, for the scratch memory of library calls (compiled programs).")
      ->capture_default_str()
      ->type_name("N");
  addShapeOptions(*command, state->arguments);
  command->callback([state, &exitCode, &context] {
    Progress::Shown progress(/*isQuiet=*/!context.showsProgress);
    Diagnostics diagnostics(context.err);
    (void)state->run(diagnostics);
    exitCode = static_cast<int>(diagnostics.getExitCode());
  });
}
