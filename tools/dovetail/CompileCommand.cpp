//===- CompileCommand.cpp - dovetail compile -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles a model to an artifact, or to the IR after a phase.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "dovetail/Driver/CommandLine.h"
#include "dovetail/Driver/Compilation.h"
#include "dovetail/Driver/Dump.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/Driver/Report.h"
#include "dovetail/Driver/Summary.h"
#include "dovetail/runtime/ArtifactFormat.h"
#include "dovetail/tools/RunCommands.h"
#include "dovetail/tools/Support.h"
#include "dovetail/tools/TensorFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <new>

using namespace dovetail;
using llvm::LogicalResult;
using llvm::StringRef;

namespace {

struct CompileCommand {
  std::string model, output, compileTo = "emit", dumpFolder, report;
  bool constants = false, timing = false, remarks = false, quiet = false;
  CompileArguments arguments;

  LogicalResult run(Diagnostics &diagnostics);

private:
  /// That nothing is written over the files of the model, which are known once it is imported.
  LogicalResult checkFiles(const Compilation &compilation, const PhaseDumper *dumper, Diagnostics &diagnostics);
  LogicalResult print(Compilation &compilation, Diagnostics &diagnostics);
};

} // namespace

/// That `path` can be written, said before the work and not after it.
static LogicalResult checkOutput(StringRef path, StringRef model, Diagnostics &diagnostics) {
  if (absl::Status status = tools::checkWritable(path.str()); !status.ok())
    return diagnostics.error(ExitCode::File, std::string(status.message()));
  if (llvm::sys::fs::equivalent(path, model))
    return diagnostics.error(ExitCode::Usage, "'" + path + "' is the model itself; give the output another name");
  return llvm::success();
}

/// That an artifact at `path` would take the place of an older one only: other files may be the model's weights.
static LogicalResult checkReplaced(StringRef path, Diagnostics &diagnostics) {
  uint64_t size = 0;
  if (llvm::sys::fs::file_size(path, size) || size == 0)
    return llvm::success();
  auto buffer = llvm::MemoryBuffer::getFileSlice(path, std::min<uint64_t>(size, sizeof(runtime::artifactMagic)), 0);
  StringRef magic(runtime::artifactMagic, sizeof(runtime::artifactMagic));
  if (buffer && (*buffer)->getBuffer() == magic)
    return llvm::success();
  return diagnostics.error(ExitCode::Usage, "'" + path +
                                                "' exists and is not a compiled program; remove it, or give "
                                                "the output another name");
}

/// The names of all phases.
static std::string listPhases() { return llvm::join(llvm::map_range(getPhases(), getPhaseName), ", "); }

static void printTimes(llvm::ArrayRef<PhaseTime> times, llvm::raw_ostream &os) {
  double total = 0, processor = 0;
  os << "  phase            time   processor   peak memory\n";
  for (const PhaseTime &time : times) {
    total += time.seconds;
    processor += time.processorSeconds;
    os << llvm::format("  %-10s %8.3f s  %8.3f s   %7.1f MiB\n", time.getName().str().c_str(), time.seconds,
                       time.processorSeconds, time.peakBytes / 1048576.0);
  }
  os << llvm::format("  %-10s %8.3f s  %8.3f s\n", "total", total, processor);
}

LogicalResult CompileCommand::checkFiles(const Compilation &compilation, const PhaseDumper *dumper,
                                         Diagnostics &diagnostics) {
  std::vector<std::string> files = compilation.getExternalFiles();
  files.push_back(model);
  for (const std::string &file : files) {
    auto refuse = [&](StringRef advice) {
      return diagnostics.error(ExitCode::Usage,
                               "'" + file + "' is a file of the model and would be written over; " + advice);
    };
    for (auto [path, what] : {std::pair(StringRef(output), "the output"), {StringRef(report), "the report"}})
      if (!path.empty() && path != "-" && llvm::sys::fs::equivalent(path, file))
        return refuse("give " + std::string(what) + " another name");
    if (dumper && dumper->mayWrite(file))
      return refuse("give --dump-phases another folder");
  }
  for (auto [path, what] : {std::pair(StringRef(output), "the output"), {StringRef(report), "the report"}})
    if (dumper && !path.empty() && path != "-" && dumper->mayWrite(path))
      return diagnostics.error(ExitCode::Usage,
                               "--dump-phases may write to '" + path + "', too; give " + what + " another name");
  return llvm::success();
}

LogicalResult CompileCommand::print(Compilation &compilation, Diagnostics &diagnostics) {
  Progress::clear();
  if (output.empty() || output == "-") {
    printModule(compilation.getModule(), constants, llvm::outs());
    return llvm::success();
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  printModule(compilation.getModule(), constants, os);
  if (absl::Status status = tools::writeText(output, text); !status.ok())
    return diagnostics.error(ExitCode::File, std::string(status.message()));
  return llvm::success();
}

LogicalResult CompileCommand::run(Diagnostics &diagnostics) {
  std::optional<Phase> last = parsePhase(compileTo);
  if (!last)
    return diagnostics.error(ExitCode::Usage, "'--compile-to " + compileTo +
                                                  "': this phase does not exist; the phases are " + listPhases());
  if (StringRef(model).ends_with(".dvt"))
    return diagnostics.error(ExitCode::Usage, "'" + model + "' is a compiled program, not a model: `dovetail run`, " +
                                                  "`inspect` and `bench` take it");
  llvm::FailureOr<CompileOptions> options = parseOptions(arguments, diagnostics);
  if (failed(options))
    return llvm::failure();
  options->explain = remarks;
  options->advises = true;
  // Text must not take the place of a program.
  if (*last != Phase::Emit && StringRef(output).ends_with(".dvt"))
    return diagnostics.error(ExitCode::Usage, "'" + output + "' is a name of a compiled program, but '--compile-to " +
                                                  compileTo +
                                                  "' writes text; leave out --compile-to, or give the output another "
                                                  "name");
  if (*last == Phase::Emit && output.empty())
    output = (llvm::sys::path::stem(model) + ".dvt").str();
  if (!output.empty() && output != "-" && failed(checkOutput(output, model, diagnostics)))
    return llvm::failure();
  if (*last == Phase::Emit && failed(checkReplaced(output, diagnostics)))
    return llvm::failure();
  if (!report.empty() && tools::isSameFile(report, output))
    return diagnostics.error(ExitCode::Usage, "'" + report +
                                                  "' cannot be both the output and the report; give one of "
                                                  "them another name");
  if (!report.empty() && *last != Phase::Emit)
    return diagnostics.error(ExitCode::Usage, "--report is about artifacts; leave out --compile-to");
  if (!report.empty() && (failed(checkReport(report, diagnostics)) || failed(checkOutput(report, model, diagnostics))))
    return llvm::failure();

  std::unique_ptr<mlir::MLIRContext> context = createContext();
  Summary summary;
  Compilation compilation(*context, std::move(*options), diagnostics);
  compilation.lastPhase = *last;
  std::optional<PhaseDumper> dumper;
  std::unique_ptr<llvm::raw_fd_ostream> dumpLLVM, dumpAssembly;
  if (!dumpFolder.empty()) {
    llvm::FailureOr<PhaseDumper> made = PhaseDumper::create(dumpFolder, constants, diagnostics);
    if (failed(made))
      return llvm::failure();
    dumper = std::move(*made);
  }
  compilation.afterPhase = [&](Phase phase) -> LogicalResult {
    if (phase == Phase::Import && failed(checkFiles(compilation, dumper ? &*dumper : nullptr, diagnostics)))
      return llvm::failure();
    if (*last == Phase::Emit && !quiet)
      summary.look(compilation, phase);
    if (!dumper)
      return llvm::success();
    if (failed(dumper->dump(phase, compilation.getModule())))
      return llvm::failure();
    // Machine code comes last; a compilation that fails before leaves no empty files.
    if (phase != Phase::CodeGen || *last != Phase::Emit)
      return llvm::success();
    dumpLLVM = dumper->open(Phase::CodeGen, "ll");
    dumpAssembly = dumper->open(Phase::CodeGen, "s");
    compilation.dumpLLVM = dumpLLVM.get();
    compilation.dumpAssembly = dumpAssembly.get();
    return llvm::success(dumpLLVM && dumpAssembly);
  };

  LogicalResult result = compilation.import(model);
  if (succeeded(result))
    result = *last == Phase::Emit ? compilation.write(output) : compilation.runTo(*last);
  for (llvm::raw_fd_ostream *file : {dumpLLVM.get(), dumpAssembly.get()})
    if (file && failed(dumper->close(*file)))
      result = llvm::failure();
  if (succeeded(result) && *last != Phase::Emit)
    result = print(compilation, diagnostics);
  if (succeeded(result) && !report.empty())
    result = writeReport(output, compilation.getTimes(), report, diagnostics);
  bool summarizes = succeeded(result) && *last == Phase::Emit && !quiet;
  if (summarizes)
    summary.compareAlone(compilation);
  Progress::clear();
  if (summarizes) {
    uint64_t bytes = 0;
    (void)llvm::sys::fs::file_size(output, bytes);
    llvm::errs() << summary.describe(model + " -> " + output, static_cast<int64_t>(bytes))
                 << summary.suggestRun(output);
  }
  if (timing)
    printTimes(compilation.getTimes(), llvm::errs());
  return result;
}

void dovetail::addCompileCommand(CLI::App &app, int &exitCode) {
  CLI::App *command = app.add_subcommand("compile", "Compile an ONNX model to an artifact (.dvt)");
  command->footer(R"(Examples:
  dovetail compile unet.onnx
  dovetail compile unet.onnx -o unet.dvt --mesh y=4 --shard image=_,_,y,_
  dovetail compile unet.onnx --mesh y=4 --shard image=_,_,y,_ --sizes image:2=300,212,256,232
  dovetail compile det.onnx --shape x=1,3,736,1280 --mesh y=2,x=2 --shard x=_,_,y,x
  dovetail compile weather.onnx --mesh y=4 --shard state=_,_,y,_ --feedback next:state
  dovetail compile unet.onnx --mesh y=4 --shard image=_,_,y,_ --compile-to=partition)");
  auto state = std::make_shared<CompileCommand>();
  command->add_option("model", state->model, "ONNX model (.onnx, .onnxtxt)")->required();
  command
      ->add_option("-o,--output", state->output,
                   "Artifact to write. Default: the model's name with .dvt, in the current folder.")
      ->type_name("FILE");
  addCompileOptions(*command, state->arguments);
  command->add_option("--report", state->report, "Write the decisions and their costs to a file. Default: no report.")
      ->type_name("FILE.html|.json");
  command->add_flag("--remarks", state->remarks, "Print what the compiler decided.");
  command->add_flag("--timing", state->timing, "Print the time and the memory of each phase.");
  command->add_flag("-q,--quiet", state->quiet, "Print errors and warnings only: neither progress nor a summary.");
  command
      ->add_option("--compile-to", state->compileTo,
                   "Stop after a phase and print its result: " + listPhases() + ". Default: emit.")
      ->group(tools::expertGroup)
      ->type_name("PHASE");
  command
      ->add_option("--dump-phases", state->dumpFolder, "Write the result of each phase to a folder. Default: no files.")
      ->group(tools::expertGroup)
      ->type_name("DIR");
  command->add_flag("--print-constants", state->constants, "Print large constants in full in results of phases.")
      ->group(tools::expertGroup);
  command->callback([state, &exitCode] {
    Progress::Shown progress(state->quiet);
    Diagnostics diagnostics(llvm::errs(), state->remarks);
    try {
      (void)state->run(diagnostics);
    } catch (const std::bad_alloc &) {
      (void)diagnostics.error(ExitCode::DoesNotFit,
                              "'" + state->model + "': there is not enough memory for the tensors of this model");
    }
    exitCode = static_cast<int>(diagnostics.getExitCode());
  });
}
