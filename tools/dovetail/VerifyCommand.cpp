//===- VerifyCommand.cpp - dovetail verify -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares a model, partitioned, with the same model on one rank.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "dovetail/Driver/CommandLine.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/Driver/Verify.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

#include <nlohmann/json.hpp>

using namespace dovetail;
using llvm::LogicalResult;

namespace {

struct VerifyCommand {
  explicit VerifyCommand(CommandContext &context) : context(context) {}

  CommandContext &context;
  std::string model;
  std::string json;
  std::vector<std::string> inputs, expected;
  /// Options that say how the model is compiled, as the command line has them.
  std::vector<const CLI::Option *> compileOptions;
  uint64_t seed = 0;
  int threads = 1;
  bool perOp = false, remarks = false;
  CompileArguments arguments;

  void run(Diagnostics &diagnostics);

private:
  /// Checks that options go together, and that the file can be written.
  LogicalResult check(bool isArtifact, Diagnostics &diagnostics) const;
  /// Prints comparisons of outputs, or of all values, and adds them to `described`. That something differs is an error.
  void report(llvm::ArrayRef<Comparison> comparisons, bool allValues, nlohmann::json &described,
              Diagnostics &diagnostics);
};

} // namespace

static std::string formatNumber(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g", value);
  return text;
}

static void printTable(llvm::ArrayRef<Comparison> comparisons, llvm::raw_ostream &os) {
  std::vector<std::vector<std::string>> rows = {{"output", "type", "largest difference", "limit", ""}};
  // Of outputs, and of models that do not say it, there is no source.
  bool hasSources = llvm::any_of(comparisons, [](const Comparison &comparison) { return !comparison.source.empty(); });
  if (hasSources)
    rows.front().push_back("source");
  for (const Comparison &comparison : comparisons) {
    const tools::NamedTensor &expected = comparison.expected;
    const Difference &difference = comparison.difference;
    int64_t numDifferent = difference.numDifferent;
    rows.push_back({expected.name, tools::formatType(expected.type, expected.shape), formatNumber(difference.largest),
                    formatNumber(difference.limit),
                    numDifferent          ? std::to_string(numDifferent) + " elements DIFFER"
                    : difference.isAllNan ? "all NaN"
                    : difference.numNan   ? "equal, " + std::to_string(difference.numNan) + " NaN in both"
                                          : "equal"});
    if (hasSources)
      rows.back().push_back(comparison.source);
  }
  os << tools::formatTable(rows);
}

/// `value 'conv2d_1' of 'body.0.conv (net.py:8)'`.
static std::string describe(const Comparison &comparison, bool allValues) {
  return (allValues ? "value '" : "output '") + comparison.expected.name + "'" +
         (comparison.source.empty() ? "" : " of '" + comparison.source + "'");
}

static nlohmann::json describeAsJson(const Comparison &comparison) {
  const tools::NamedTensor &expected = comparison.expected;
  const Difference &difference = comparison.difference;
  nlohmann::json entry = {{"name", expected.name},
                          {"type", runtime::elementTypeName(expected.type)},
                          {"shape", expected.shape},
                          {"equal", difference.numDifferent == 0},
                          {"different_elements", difference.numDifferent},
                          {"largest_difference", difference.largest},
                          {"limit", difference.limit},
                          {"nan_elements", difference.numNan}};
  if (difference.numDifferent)
    entry["first_different"] = {
        {"index", difference.firstIndex}, {"value", difference.actual}, {"expected", difference.expected}};
  return entry;
}

void VerifyCommand::report(llvm::ArrayRef<Comparison> comparisons, bool allValues, nlohmann::json &described,
                           Diagnostics &diagnostics) {
  nlohmann::json &list = described[allValues ? "values" : "outputs"] = nlohmann::json::array();
  for (const Comparison &comparison : comparisons)
    list.push_back(describeAsJson(comparison));
  auto differs = [](const Comparison &comparison) { return comparison.difference.numDifferent > 0; };
  size_t numDifferent = llvm::count_if(comparisons, differs);
  const Comparison *first = llvm::find_if(comparisons, differs);
  if (numDifferent)
    described["equal"] = false;
  if (json == "-") {
    // Printed once it is complete.
  } else if (!allValues) {
    printTable(comparisons, context.out);
  } else {
    context.out << "  " << comparisons.size() << " values compared, " << numDifferent << " differ\n";
    if (numDifferent)
      printTable(*first, context.out);
  }
  context.out.flush();
  for (const Comparison &comparison : comparisons)
    if (comparison.difference.isAllNan)
      diagnostics.warning(describe(comparison, allValues) + " is NaN everywhere in both " +
                          (expected.empty() ? "programs" : "the program and the file") +
                          ", so nothing is compared: pass --input with data that the model is made for");
  if (numDifferent == 0)
    return;
  const Difference &difference = first->difference;
  std::string index =
      llvm::join(llvm::map_range(difference.firstIndex, [](int64_t n) { return std::to_string(n); }), ", ");
  (void)diagnostics.error(ExitCode::Different,
                          describe(*first, allValues) + " differs in " + llvm::Twine(difference.numDifferent) + " of " +
                              llvm::Twine(first->expected.numElements()) + " elements, first at [" + index + "]: " +
                              formatNumber(difference.actual) + " instead of " + formatNumber(difference.expected));
}

LogicalResult VerifyCommand::check(bool isArtifact, Diagnostics &diagnostics) const {
  auto usage = [&](const llvm::Twine &message) { return diagnostics.error(ExitCode::Usage, message); };
  if (isArtifact && expected.empty())
    return usage("'" + model +
                 "' is a compiled program, not a model; give the model that it was compiled from, or "
                 "--expect NAME=FILE.npy with an output to compare with");
  if (isArtifact)
    for (const CLI::Option *option : compileOptions)
      if (option->count() > 0)
        return usage("'" + option->get_name() + "' is for the compilation of models, but '" + model +
                     "' is compiled already; leave it out, or give the model");
  if (perOp && !expected.empty())
    return usage("'--per-op' compares with the unpartitioned model, and '--expect' with files; leave out one of them");
  if (threads < 1 || threads > 4096)
    return usage("--threads " + llvm::Twine(threads) + ": give a number from 1 to 4096");
  if (json.empty() || json == "-")
    return llvm::success();
  if (absl::Status status = tools::checkWritable(json); !status.ok())
    return diagnostics.error(ExitCode::File, std::string(status.message()));
  if (tools::isSameFile(json, model))
    return usage("'" + json + "' is the model itself; give --json another name");
  return llvm::success();
}

void VerifyCommand::run(Diagnostics &diagnostics) {
  bool isArtifact = !context.model && llvm::StringRef(model).ends_with(".dvt");
  if (failed(check(isArtifact, diagnostics)))
    return;
  llvm::FailureOr<CompileOptions> compile = parseOptions(arguments, diagnostics);
  if (failed(compile))
    return;
  if (compile->mesh.numRanks() == 1 && expected.empty())
    diagnostics.warning("the mesh has one rank: the model is compared with itself; split it with --mesh and --shard");
  VerifyOptions options;
  options.compile = std::move(*compile);
  options.threads = threads;
  options.inputs = inputs;
  options.seed = seed;
  options.expected = expected;
  auto compare = [&](const char *what, size_t number) {
    auto run = [&] {
      return isArtifact ? verifyArtifact(model, options, diagnostics)
                        : verify(context.getModel(model), options, diagnostics);
    };
    if (!perOp)
      return run();
    Progress::show(what, number, 2);
    Progress::Parts parts;
    return run();
  };
  llvm::FailureOr<std::vector<Comparison>> outputs = compare("outputs", 1);
  if (failed(outputs))
    return;
  nlohmann::json described = {
      {"model", model}, {"compared_with", expected.empty() ? "one rank" : "files"}, {"equal", true}};
  report(*outputs, false, described, diagnostics);
  if (perOp) {
    // With every value returned operations fuse differently, so this does not stand for the model as it is compiled.
    options.perOp = true;
    llvm::FailureOr<std::vector<Comparison>> values = llvm::failure();
    {
      // All that there is to warn of was said of the model as it is.
      Diagnostics::ErrorsOnly errorsOnly(diagnostics);
      values = compare("every value", 2);
    }
    if (failed(values))
      return;
    report(*values, true, described, diagnostics);
  }
  // Names come from models, which may contain any bytes.
  std::string text = described.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (json == "-")
    context.out << text;
  else if (!json.empty())
    if (absl::Status status = tools::writeText(json, text); !status.ok())
      (void)diagnostics.error(ExitCode::File, std::string(status.message()));
}

void dovetail::addVerifyCommand(CLI::App &app, int &exitCode, CommandContext &context) {
  CLI::App *command = app.add_subcommand("verify", "Compare a model's outputs with those of one rank, or with files");
  command->footer(R"(Outputs may differ by 1e-4 of their largest magnitude. If one differs by more, the exit code is 1.

Examples:
  dovetail verify unet.onnx --mesh y=3 --shard image=_,_,y,_
  dovetail verify unet.onnx --mesh y=3 --shard image=_,_,y,_ --per-op
  dovetail verify unet.onnx --mesh y=2 --shard image=_,_,y,_ --input image=picture.npy
  dovetail verify unet.dvt --input image=picture.npy --expect mask=from_torch.npy)");
  auto state = std::make_shared<VerifyCommand>(context);
  command->add_option("model", state->model, "ONNX model (.onnx, .onnxtxt), or with --expect a compiled program (.dvt)")
      ->required();
  addCompileOptions(*command, state->arguments);
  for (const CLI::Option *option : command->get_options())
    if (!option->get_lnames().empty() && option->get_name() != "--help")
      state->compileOptions.push_back(option);
  command->add_flag("--per-op", state->perOp,
                    "Also compare every intermediate tensor outside of loops, and name the first one that differs.");
  tools::addRepeatable(
      *command, "--input,-i", state->inputs,
      "An input: NAME=FILE.npy, NAME=FILE.npz, FILE.npz for all inputs, NAME=FILE.raw or NAME=random:SEED. Default: "
      "random.")
      ->type_name("SPEC");
  tools::addRepeatable(*command, "--expect", state->expected,
                       "File to compare an output with: NAME=FILE.npy, NAME=FILE.npz or FILE.npz. Default: the model "
                       "on one rank.")
      ->type_name("NAME=FILE");
  command
      ->add_option("--json", state->json,
                   "Write all comparisons to a file; '-' prints them instead of the text. Default: no file.")
      ->type_name("FILE");
  command->add_option("--seed", state->seed, "Seed of random inputs.")->type_name("N")->capture_default_str();
  command
      ->add_option("--threads", state->threads,
                   "Number of threads in all, divided among the ranks; each rank has at least one.")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--remarks", state->remarks, "Print what the compiler decided.");
  command->callback([state, &exitCode, &context] {
    Progress::Shown progress(/*isQuiet=*/!context.showsProgress);
    Diagnostics diagnostics(context.err, state->remarks);
    state->run(diagnostics);
    exitCode = static_cast<int>(diagnostics.getExitCode());
  });
}
