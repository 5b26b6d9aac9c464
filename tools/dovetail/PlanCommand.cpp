//===- PlanCommand.cpp - dovetail plan ------------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Predicts how a model runs on a cluster.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "dovetail/Driver/CommandLine.h"
#include "dovetail/Driver/Prediction.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"

#include <new>
#include <nlohmann/json.hpp>

using namespace dovetail;
using llvm::LogicalResult;
using llvm::SmallVector;

namespace {

struct PlanCommand {
  explicit PlanCommand(CommandContext &context) : context(context) {}

  CommandContext &context;
  std::string model, json, trace, report;
  int threads = 1;
  bool remarks = false;
  CompileArguments arguments;

  LogicalResult run(Diagnostics &diagnostics);

private:
  /// That the files can be written, and are different ones and none of the model.
  LogicalResult checkFiles(Diagnostics &diagnostics) const;
};

} // namespace

/// That each rank has what it needs, which `dovetail compile` demands; said after what is predicted.
static LogicalResult checkMemory(const Prediction &prediction, Diagnostics &diagnostics) {
  SmallVector<int> tight;
  for (int rank = 0; rank < prediction.run.getNumRanks(); ++rank)
    if (!prediction.fits(rank))
      tight.push_back(rank);
  if (tight.empty())
    return llvm::success();
  auto getLack = [&](int rank) { return prediction.run.getMemory(rank) - prediction.getAvailable(rank); };
  int least = *std::max_element(tight.begin(), tight.end(), [&](int a, int b) { return getLack(a) < getLack(b); });
  return diagnostics.error(ExitCode::DoesNotFit, "the program does not fit: rank " + llvm::Twine(least) + " needs " +
                                                     tools::formatBytes(prediction.run.getMemory(least)) +
                                                     ", and has " + tools::formatBytes(prediction.getAvailable(least)));
}

LogicalResult PlanCommand::checkFiles(Diagnostics &diagnostics) const {
  const std::pair<const char *, const std::string *> files[] = {
      {"--json", &json}, {"--trace", &trace}, {"--report", &report}};
  for (auto [option, file] : files) {
    if (file->empty() || (file == &json && json == "-"))
      continue;
    if (absl::Status status = tools::checkWritable(*file); !status.ok())
      return diagnostics.error(ExitCode::File, std::string(status.message()));
    if (llvm::sys::fs::equivalent(*file, model))
      return diagnostics.error(ExitCode::Usage,
                               "'" + *file + "' is the model itself; give " + option + " another name");
    for (auto [other, otherFile] : files)
      if (otherFile != file && tools::isSameFile(*file, *otherFile))
        return diagnostics.error(ExitCode::Usage, "'" + *file + "' cannot be written by " + option + " and by " +
                                                      other + "; give one of them another name");
  }
  if (!report.empty() && !llvm::StringRef(report).ends_with(".html"))
    return diagnostics.error(ExitCode::Usage, "'--report " + report +
                                                  "': the report is an HTML page; give it a name that ends in .html");
  return llvm::success();
}

LogicalResult PlanCommand::run(Diagnostics &diagnostics) {
  if (llvm::StringRef(model).ends_with(".dvt"))
    return diagnostics.error(ExitCode::Usage,
                             "'" + model + "' is a compiled program, not a model; `dovetail plan` takes the model");
  if (threads < 1 || threads > 4096)
    return diagnostics.error(ExitCode::Usage, "--threads " + llvm::Twine(threads) + ": give a number from 1 to 4096");
  for (auto [given, name] : {std::pair(arguments.prepack, "--prepack"), std::pair(arguments.autotune, "--autotune")})
    if (given)
      return diagnostics.error(ExitCode::Usage, llvm::Twine("'") + name + "': `dovetail plan` runs nothing on this " +
                                                    "machine; give it to `dovetail compile`");
  llvm::FailureOr<CompileOptions> options = parseOptions(arguments, diagnostics);
  if (failed(options) || failed(checkFiles(diagnostics)))
    return llvm::failure();
  options->explain = remarks;
  options->advises = true;
  llvm::FailureOr<Prediction> prediction = predict(context.getModel(model), std::move(*options), threads, diagnostics);
  if (failed(prediction))
    return llvm::failure();
  Progress::clear();
  bool isJsonPrinted = json == "-";
  if (!isJsonPrinted)
    printPrediction(*prediction, context.out);
  // Names come from models, which may contain any bytes.
  auto dump = [](const nlohmann::json &value) {
    return value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  };
  auto write = [&](const std::string &path, llvm::function_ref<std::string()> getText) -> LogicalResult {
    if (path.empty())
      return llvm::success();
    if (absl::Status status = tools::writeText(path, getText()); !status.ok())
      return diagnostics.error(ExitCode::File, std::string(status.message()));
    return llvm::success();
  };
  if (isJsonPrinted)
    context.out << dump(describePrediction(*prediction));
  else if (failed(write(json, [&] { return dump(describePrediction(*prediction)); })))
    return llvm::failure();
  if (failed(write(trace, [&] { return dump(tracePrediction(*prediction)); })))
    return llvm::failure();
  auto getPage = [&] {
    std::string page;
    llvm::raw_string_ostream os(page);
    writePredictionPage(*prediction, os);
    return page;
  };
  if (failed(write(report, getPage)))
    return llvm::failure();
  context.out.flush();
  return checkMemory(*prediction, diagnostics);
}

void dovetail::addPlanCommand(CLI::App &app, int &exitCode, CommandContext &context) {
  CLI::App *command = app.add_subcommand("plan", "Predict how a model runs on a cluster that need not be there");
  command->footer(R"(The command runs nothing. Files of external data may be missing, because only shapes count.
If the memory of a rank does not suffice, the exit code is 6, after the whole prediction.

Examples:
  dovetail plan unet.onnx --mesh y=4 --shard image=_,_,y,_
  dovetail plan llama.onnx --target cuda --cluster h100 --mesh t=8 --objective bytes
  dovetail plan unet.onnx --mesh y=4 --shard image=_,_,y,_ --report unet.html --trace unet.json)");
  auto state = std::make_shared<PlanCommand>(context);
  command->add_option("model", state->model, "ONNX model (.onnx, .onnxtxt)")->required();
  addCompileOptions(*command, state->arguments);
  command
      ->add_option("--threads", state->threads,
                   "Threads of each rank on CPUs, for the scratch memory of library calls.")
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--json", state->json,
                   "Write the whole prediction to a file; '-' prints it instead of the text. Default: no file.")
      ->type_name("FILE");
  command->add_option("--trace", state->trace, "Write the simulated run to a file for Perfetto. Default: no file.")
      ->type_name("FILE");
  command->add_option("--report", state->report, "Write a page with pictures to a file. Default: no file.")
      ->type_name("FILE.html");
  command->add_flag("--remarks", state->remarks, "Print what the compiler decided.");
  command->callback([state, &exitCode, &context] {
    Progress::Shown progress(/*isQuiet=*/!context.showsProgress);
    Diagnostics diagnostics(context.err, state->remarks);
    try {
      (void)state->run(diagnostics);
    } catch (const std::bad_alloc &) {
      (void)diagnostics.error(ExitCode::DoesNotFit,
                              "'" + state->model + "': there is not enough memory for the tensors of this model");
    }
    exitCode = static_cast<int>(diagnostics.getExitCode());
  });
}
