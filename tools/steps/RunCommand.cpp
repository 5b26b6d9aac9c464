//===- RunCommand.cpp - Running an artifact -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RunCommand.h"

#include "RunSteps.h"
#include "dovetail/tools/Destination.h"
#include "dovetail/tools/ProcessPorts.h"
#include "dovetail/tools/RunSupport.h"

#include "dovetail/runtime/RankGroup.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

struct RunCommand {
  RunArguments arguments;
  std::vector<std::string> outputs;
  std::string trace;
  int warmup = 0;
  std::optional<int64_t> steps;
  bool timing = false, resume = false;

  absl::Status run();

private:
  using Clock = std::chrono::steady_clock;
  absl::Status runLoaded(std::shared_ptr<const runtime::Program> program, const runtime::RunnerOptions &options,
                         ProgressLine &progress, Clock::time_point begin);
  /// As one of several processes, each with its parts of inputs and outputs.
  absl::Status runAsProcess(std::shared_ptr<const runtime::Program> program, const runtime::RunnerOptions &options,
                            const StepsRequest &request, const std::vector<Destination> &destinations,
                            ProgressLine &progress, Clock::time_point begin);
  void printTiming(Clock::time_point begin, Clock::time_point loaded, Clock::time_point read, Clock::time_point started,
                   Clock::time_point done) const;
};

} // namespace

absl::Status RunCommand::run() {
  absl::StatusOr<runtime::RunnerOptions> options = runnerOptions(arguments);
  if (!options.ok())
    return options.status();
  if (warmup < 0)
    return absl::InvalidArgumentError(absl::StrCat("--warmup ", warmup, ": give a number from 0"));
  if (steps && *steps < 1)
    return absl::InvalidArgumentError(absl::StrCat("--steps ", *steps, ": give a number from 1"));
  options->trace = !trace.empty();
  ProgressLine progress;
  progress.show("load");
  Clock::time_point begin = Clock::now();
  absl::StatusOr<bool> isProcess = runtime::connectsProcesses(options->communicator);
  if (!isProcess.ok())
    return isProcess.status();
  progress.mute(*isProcess);
  absl::StatusOr<std::shared_ptr<const runtime::Program>> program =
      runtime::Program::load(arguments.artifact, {.checkWeights = !*isProcess});
  if (!program.ok())
    return program.status();
  try {
    return runLoaded(*program, *options, progress, begin);
  } catch (const std::bad_alloc &) {
    return notEnoughMemory(arguments.artifact, (*program)->getPlan());
  }
}

absl::Status RunCommand::runLoaded(std::shared_ptr<const runtime::Program> program,
                                   const runtime::RunnerOptions &options, ProgressLine &progress,
                                   Clock::time_point begin) {
  const runtime::Plan &plan = program->getPlan();
  // Of several processes, that of rank 0 writes.
  bool willWrite = !options.process || options.process->rank == 0;
  absl::StatusOr<std::vector<Destination>> destinations = parseOutputs(plan, outputs, willWrite);
  if (!destinations.ok())
    return destinations.status();
  if (willWrite && !trace.empty())
    if (absl::Status status = checkWritable(trace); !status.ok())
      return status;
  std::vector<std::string> files;
  for (const Destination &destination : *destinations)
    files.push_back(destination.path);
  if (!trace.empty())
    files.push_back(trace);
  if (absl::Status status = checkOutputs(arguments, files); !status.ok())
    return status;
  const StepsRequest request{arguments, outputs, steps.value_or(0), resume, warmup, trace, timing};
  if (asksForSteps(plan, request))
    return runSteps(std::move(program), options, request, *destinations, progress, begin);
  absl::StatusOr<bool> isProcess = runtime::connectsProcesses(options.communicator);
  if (!isProcess.ok())
    return isProcess.status();
  if (*isProcess)
    return runAsProcess(std::move(program), options, request, *destinations, progress, begin);
  progress.show("read inputs");
  Clock::time_point loaded = Clock::now();
  absl::StatusOr<std::vector<NamedTensor>> inputTensors = readInputs(plan, arguments.inputs, /*randomDefault=*/false);
  if (!inputTensors.ok())
    return inputTensors.status();
  progress.show("start ranks");
  Clock::time_point read = Clock::now();
  auto runner = runtime::ProgramRunner::create(program, options);
  if (!runner.ok())
    return ofArtifact(arguments.artifact, runner.status());
  progress.clear();
  printRemark(**runner);
  std::vector<NamedTensor> outputTensors = makeOutputs(plan);
  auto runOn = [&](std::vector<NamedTensor> &inputs) {
    absl::Status status = (*runner)->run(viewsOf(inputs), viewsOf(outputTensors));
    return status.code() == absl::StatusCode::kInvalidArgument ? status : ofArtifact(arguments.artifact, status);
  };
  if (warmup > 0) {
    progress.show("warm up");
    std::vector<NamedTensor> wrong;
    for (const NamedTensor &tensor : *inputTensors)
      wrong.push_back(makeWrong(tensor));
    for (int i = 0; i < warmup; ++i)
      if (absl::Status status = runOn(wrong); !status.ok())
        return status;
  }
  progress.show("run");
  Clock::time_point started = Clock::now();
  if (absl::Status status = runOn(*inputTensors); !status.ok())
    return status;
  progress.show("write outputs");
  Clock::time_point done = Clock::now();
  cutOutputs(**runner, outputTensors);

  for (const Destination &destination : *destinations)
    if (absl::Status status = destination.all ? writeNpz(destination.path, outputTensors)
                                              : writeNpy(destination.path, outputTensors[destination.output]);
        !status.ok())
      return status;
  if (!trace.empty())
    if (absl::Status status = writeTrace(trace, **runner); !status.ok())
      return status;
  progress.clear();
  std::vector<Summary> summaries = summarize(outputTensors);
  if (destinations->empty()) {
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < outputTensors.size(); ++i) {
      const NamedTensor &tensor = outputTensors[i];
      rows.push_back({tensor.name, formatType(tensor.type, tensor.shape), summaries[i].text(tensor.type)});
    }
    std::fputs(formatTable(rows, "").c_str(), stdout);
  }
  printNonFinite(plan, summaries);
  printTiming(begin, loaded, read, started, done);
  return absl::OkStatus();
}

void RunCommand::printTiming(Clock::time_point begin, Clock::time_point loaded, Clock::time_point read,
                             Clock::time_point started, Clock::time_point done) const {
  if (!timing)
    return;
  auto seconds = [](Clock::duration duration) {
    return absl::StrFormat("%.3f s", std::chrono::duration<double>(duration).count());
  };
  std::fputs(formatTable({{"load", seconds(loaded - begin)},
                          {"read inputs", seconds(read - loaded)},
                          {warmup > 0 ? "start ranks, warm up" : "start ranks", seconds(started - read)},
                          {"run", seconds(done - started)},
                          {"write outputs", seconds(Clock::now() - done)}})
                 .c_str(),
             stderr);
}

absl::Status RunCommand::runAsProcess(std::shared_ptr<const runtime::Program> program,
                                      const runtime::RunnerOptions &options, const StepsRequest &request,
                                      const std::vector<Destination> &destinations, ProgressLine &progress,
                                      Clock::time_point begin) {
  const runtime::Plan &plan = program->getPlan();
  std::vector<OutputFiles::File> targets;
  for (const Destination &destination : destinations) {
    if (destination.all)
      return absl::InvalidArgumentError(
          absl::StrCat("--output ", destination.path, ": each process writes its part of an output, ",
                       "which archives do not allow; write NAME=FILE.npy for each output"));
    targets.push_back({destination.path, destination.output});
  }
  Clock::time_point loaded = Clock::now();
  auto sources = openInputs(plan, arguments.inputs, /*randomDefault=*/false);
  if (!sources.ok())
    return sources.status();
  progress.show("start ranks");
  Clock::time_point read = Clock::now();
  auto created = runtime::ProgramRunner::create(program, options);
  if (!created.ok())
    return ofArtifact(arguments.artifact, created.status());
  runtime::ProgramRunner &runner = **created;
  progress.clear();
  bool isFirst = runner.isFirst();
  progress.mute(!isFirst);
  if (isFirst)
    printRemark(runner);
  auto ofRun = [&](const absl::Status &status) {
    return status.code() == absl::StatusCode::kInvalidArgument ? status : ofArtifact(arguments.artifact, status);
  };
  if (absl::Status status = compareOptions(runner, optionsOf(request)); !status.ok())
    return status;
  OutputFiles files(std::move(targets));
  if (absl::Status status = files.open(runner); !status.ok())
    return status;
  ProcessPorts ports(runner, *std::move(sources), destinations.empty() ? nullptr : &files);
  ports.setIdle(true);
  for (int i = 0; i < warmup; ++i)
    if (absl::Status status = agree(runner, runner.run(ports)); !status.ok())
      return ofRun(status);
  ports.setIdle(false);
  progress.show("run");
  Clock::time_point started = Clock::now();
  // What is wrong with inputs, rank 0 alone may have been told.
  if (absl::Status status = agree(runner, runner.run(ports)); !status.ok())
    return ofRun(status);
  progress.show("write outputs");
  Clock::time_point done = Clock::now();
  if (absl::Status status = files.publish(runner); !status.ok())
    return status;
  absl::StatusOr<std::vector<Summary>> summaries = ports.summarize();
  if (!summaries.ok())
    return summaries.status();
  progress.clear();
  if (isFirst && !trace.empty())
    if (absl::Status status = writeTrace(trace, runner); !status.ok())
      return status;
  if (isFirst && destinations.empty()) {
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      const runtime::PortInfo &port = plan.outputs[i];
      rows.push_back({port.name, formatType(port.type, runner.getOutputShape(i)), (*summaries)[i].text(port.type)});
    }
    std::fputs(formatTable(rows, "").c_str(), stdout);
  }
  if (isFirst) {
    printNonFinite(plan, *summaries);
    printTiming(begin, loaded, read, started, done);
  }
  return ofArtifact(arguments.artifact, runner.finish());
}

void tools::addRunCommand(CLI::App &app, int &exitCode) {
  CLI::App *command = app.add_subcommand("run", "Run a compiled program on all of its ranks");
  auto state = std::make_shared<RunCommand>();
  addRunOptions(*command, state->arguments);
  addRepeatable(*command, "--output,-o", state->outputs,
                "File for an output: NAME=FILE.npy, NAME=FOLDER/{step}.npy or {name} for steps, or FILE.npz for all. "
                "Default: print a summary.")
      ->type_name("SPEC");
  command
      ->add_option("--steps", state->steps,
                   "Number of steps, with outputs fed back or files for each. Default: as many as there are files.")
      ->type_name("N");
  command->add_flag("--resume", state->resume, "Continue behind the last step whose outputs are complete.");
  command
      ->add_option("--trace", state->trace,
                   "Write when steps and exchanges ran, for Perfetto or Chrome. Default: no trace.")
      ->type_name("FILE.json");
  command->add_flag("--timing", state->timing, "Print the time of each part of the work.");
  command
      ->add_option("--warmup", state->warmup, "Runs before the one that counts, on inputs of NaN (integers: reversed).")
      ->group(expertGroup)
      ->type_name("N")
      ->capture_default_str();
  command->footer("Examples:\n"
                  "  " +
                  app.get_name() +
                  " run unet.dvt --input image=image.npy --output mask=mask.npy\n"
                  "  " +
                  app.get_name() +
                  " run unet.dvt --input image=random:0 --threads 4 --trace trace.json\n"
                  "  " +
                  app.get_name() +
                  " run unet.dvt --input 'image=frames/*.npy' --output mask=masks/{name}.npy\n"
                  "  mpirun -n 4 " +
                  app.get_name() +
                  " run weather.dvt --comm mpi --input now=now.npy --steps 12 --output next=days/{step}.npy --resume");
  setAction(app, *command, exitCode, [state] { return state->run(); });
}
