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

using namespace dovetail;
using llvm::LogicalResult;

namespace {

struct VerifyCommand {
  explicit VerifyCommand(CommandContext &context) : context(context) {}

  CommandContext &context;
  std::string model;
  std::vector<std::string> inputs;
  uint64_t seed = 0;
  int threads = 1;
  bool perOp = false, remarks = false;
  CompileArguments arguments;

  void run(Diagnostics &diagnostics);

private:
  /// Prints what was compared: outputs, or all values. That something differs is an error.
  void report(llvm::ArrayRef<Comparison> comparisons, bool allValues, Diagnostics &diagnostics);
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

void VerifyCommand::report(llvm::ArrayRef<Comparison> comparisons, bool allValues, Diagnostics &diagnostics) {
  auto differs = [](const Comparison &comparison) { return comparison.difference.numDifferent > 0; };
  size_t numDifferent = llvm::count_if(comparisons, differs);
  const Comparison *first = llvm::find_if(comparisons, differs);
  if (!allValues) {
    printTable(comparisons, context.out);
  } else {
    context.out << "  " << comparisons.size() << " values compared, " << numDifferent << " differ\n";
    if (numDifferent)
      printTable(*first, context.out);
  }
  context.out.flush();
  for (const Comparison &comparison : comparisons)
    if (comparison.difference.isAllNan)
      diagnostics.warning(describe(comparison, allValues) +
                          " is NaN everywhere in both programs, which compares nothing: pass --input with what the "
                          "model is for");
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

void VerifyCommand::run(Diagnostics &diagnostics) {
  llvm::FailureOr<CompileOptions> compile = parseOptions(arguments, diagnostics);
  if (failed(compile))
    return;
  if (threads < 1 || threads > 4096) {
    (void)diagnostics.error(ExitCode::Usage, "--threads " + llvm::Twine(threads) + ": give a number from 1 to 4096");
    return;
  }
  if (compile->mesh.numRanks() == 1)
    diagnostics.warning("there is one rank only: the model is compared with itself; split it with --mesh and --shard");
  VerifyOptions options;
  options.compile = std::move(*compile);
  options.threads = threads;
  options.inputs = inputs;
  options.seed = seed;
  auto compare = [&](const char *what, size_t number) {
    if (!perOp)
      return verify(context.getModel(model), options, diagnostics);
    Progress::show(what, number, 2);
    Progress::Parts parts;
    return verify(context.getModel(model), options, diagnostics);
  };
  llvm::FailureOr<std::vector<Comparison>> outputs = compare("outputs", 1);
  if (failed(outputs))
    return;
  report(*outputs, false, diagnostics);
  if (!perOp)
    return;
  // With every value returned operations fuse differently, so this does not stand for the model as it is compiled.
  options.perOp = true;
  llvm::FailureOr<std::vector<Comparison>> values = llvm::failure();
  {
    // All that there is to warn of was said of the model as it is.
    Diagnostics::ErrorsOnly errorsOnly(diagnostics);
    values = compare("every value", 2);
  }
  if (succeeded(values))
    report(*values, true, diagnostics);
}

void dovetail::addVerifyCommand(CLI::App &app, int &exitCode, CommandContext &context) {
  CLI::App *command =
      app.add_subcommand("verify", "Run a model partitioned and unpartitioned, and compare every output");
  command->footer(R"(Outputs may differ by 1e-4 of their largest magnitude; the exit code is 1 if one differs by more.

Examples:
  dovetail verify unet.onnx --mesh y=3 --shard image=_,_,y,_
  dovetail verify unet.onnx --mesh y=3 --shard image=_,_,y,_ --per-op
  dovetail verify unet.onnx --mesh y=2 --shard image=_,_,y,_ --input image=@picture.npy)");
  auto state = std::make_shared<VerifyCommand>(context);
  command->add_option("model", state->model, "ONNX model (.onnx, .onnxtxt)")->required();
  addCompileOptions(*command, state->arguments);
  command->add_flag(
      "--per-op", state->perOp,
      "Compare every value as well, but for those within loops that are repeated, and name the first that differs");
  tools::addRepeatable(
      *command, "--input,-i", state->inputs,
      "An input: NAME=@FILE.npy, NAME=@FILE.npz, @FILE.npz, NAME=@FILE.raw or NAME=random:SEED; random if "
      "not given")
      ->type_name("SPEC");
  command->add_option("--seed", state->seed, "Seed of random inputs")->type_name("N");
  command->add_option("--threads", state->threads, "Threads in all, divided among the ranks (each has one at least)")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--remarks", state->remarks, "Say what the compiler decided");
  command->callback([state, &exitCode, &context] {
    Progress::Shown progress(/*isQuiet=*/!context.showsProgress);
    Diagnostics diagnostics(context.err, state->remarks);
    state->run(diagnostics);
    exitCode = static_cast<int>(diagnostics.getExitCode());
  });
}
