//===- RunCommand.cpp - Running an artifact -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <chrono>
#include <cmath>
#include <memory>
#include <new>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

struct RunCommand {
  RunArguments arguments;
  std::vector<std::string> outputs;
  std::string trace;
  int warmup = 0;
  bool timing = false;

  absl::Status run();

private:
  using Clock = std::chrono::steady_clock;
  absl::Status runLoaded(std::shared_ptr<const runtime::Program> program, const runtime::RunnerOptions &options,
                         ProgressLine &progress, Clock::time_point begin);
};

/// Where an output is to be written.
struct Destination {
  std::string path;
  size_t output = 0;
  bool all = false; ///< An archive of all outputs.
};

absl::StatusOr<std::vector<Destination>> parseOutputs(const runtime::Plan &plan, const std::vector<std::string> &specs,
                                                      bool willWrite) {
  std::vector<Destination> destinations;
  for (const std::string &spec : specs) {
    Destination destination;
    size_t split = spec.rfind('=');
    if (split == std::string::npos) {
      if (!absl::EndsWith(spec, ".npz"))
        return absl::InvalidArgumentError(
            absl::StrCat("--output ", spec, ": write NAME=FILE.npy, or FILE.npz for all outputs"));
      destination.path = spec;
      destination.all = true;
    } else {
      std::string name = spec.substr(0, split), known;
      destination.path = spec.substr(split + 1);
      destination.output = plan.outputs.size();
      for (size_t i = 0; i < plan.outputs.size(); ++i) {
        absl::StrAppend(&known, i ? ", '" : "'", plan.outputs[i].name, "'");
        if (plan.outputs[i].name == name)
          destination.output = i;
      }
      if (destination.output == plan.outputs.size())
        return absl::InvalidArgumentError(
            absl::StrCat("--output ", spec, ": the program has no output '", name, "'; its outputs are ", known));
      // Another ending would be another kind of file, perhaps one that is still needed.
      if (!absl::EndsWith(destination.path, ".npy"))
        return absl::InvalidArgumentError(
            absl::StrCat("--output ", spec, ": the name of the file must end in .npy; write ", name, "=FILE.npy"));
    }
    // Better now than after the run.
    if (willWrite)
      if (absl::Status status = checkWritable(destination.path); !status.ok())
        return status;
    destinations.push_back(std::move(destination));
  }
  return destinations;
}

template <typename T> std::string summarize(const NamedTensor &tensor) {
  const T *data = reinterpret_cast<const T *>(tensor.bytes.data());
  double least = INFINITY, most = -INFINITY, sum = 0;
  int64_t count = tensor.numElements(), invalid = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = static_cast<double>(data[i]);
    if (std::isnan(value)) {
      ++invalid;
      continue;
    }
    least = std::min(least, value);
    most = std::max(most, value);
    sum += value;
  }
  if (count == invalid)
    return count == 0 ? "no elements" : "all NaN";
  std::string text = absl::StrFormat("min %.6g  mean %.6g  max %.6g", least, sum / (count - invalid), most);
  return invalid ? absl::StrCat(text, "  NaN in ", invalid, " elements") : text;
}

std::string summarize(const NamedTensor &tensor) {
  using runtime::ElementType;
  switch (tensor.type) {
  case ElementType::F32:
    return summarize<float>(tensor);
  case ElementType::F64:
    return summarize<double>(tensor);
  case ElementType::F16:
    return summarize<_Float16>(tensor);
  case ElementType::I8:
    return summarize<int8_t>(tensor);
  case ElementType::I16:
    return summarize<int16_t>(tensor);
  case ElementType::I32:
    return summarize<int32_t>(tensor);
  case ElementType::I64:
    return summarize<int64_t>(tensor);
  case ElementType::U8:
  case ElementType::Bool:
    return summarize<uint8_t>(tensor);
  case ElementType::U16:
    return summarize<uint16_t>(tensor);
  case ElementType::U32:
    return summarize<uint32_t>(tensor);
  case ElementType::U64:
    return summarize<uint64_t>(tensor);
  case ElementType::BF16:
    return "";
  }
  return "";
}

} // namespace

absl::Status RunCommand::run() {
  absl::StatusOr<runtime::RunnerOptions> options = runnerOptions(arguments);
  if (!options.ok())
    return options.status();
  if (warmup < 0)
    return absl::InvalidArgumentError(absl::StrCat("--warmup ", warmup, ": give a number from 0"));
  options->trace = !trace.empty();
  ProgressLine progress;
  progress.show("load");
  Clock::time_point begin = Clock::now();
  absl::StatusOr<std::shared_ptr<const runtime::Program>> program = runtime::Program::load(arguments.artifact);
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
  // Of several processes, that of rank 0 gets the outputs, and the others have nothing to say.
  bool isFirst = (*runner)->isFirst();
  std::vector<NamedTensor> outputTensors = isFirst ? makeOutputs(plan) : std::vector<NamedTensor>();
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
  if (!isFirst)
    return ofArtifact(arguments.artifact, (*runner)->finish());
  progress.show("write outputs");
  Clock::time_point done = Clock::now();

  for (const Destination &destination : *destinations)
    if (absl::Status status = destination.all ? writeNpz(destination.path, outputTensors)
                                              : writeNpy(destination.path, outputTensors[destination.output]);
        !status.ok())
      return status;
  if (!trace.empty())
    if (absl::Status status = writeTrace(trace, **runner); !status.ok())
      return status;
  progress.clear();
  if (destinations->empty()) {
    std::vector<std::vector<std::string>> rows;
    for (const NamedTensor &tensor : outputTensors)
      rows.push_back({tensor.name, formatType(tensor.type, tensor.shape), summarize(tensor)});
    std::fputs(formatTable(rows, "").c_str(), stdout);
  }
  if (timing) {
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
  return ofArtifact(arguments.artifact, (*runner)->finish());
}

void tools::addRunCommand(CLI::App &app, int &exitCode) {
  CLI::App *command = app.add_subcommand("run", "Run a compiled program on all of its ranks");
  auto state = std::make_shared<RunCommand>();
  addRunOptions(*command, state->arguments);
  addRepeatable(
      *command, "--output,-o", state->outputs,
      "Where to write an output: NAME=FILE.npy, or FILE.npz for all of them; without any, a summary is printed")
      ->type_name("SPEC");
  command->add_option("--trace", state->trace, "Write when steps and exchanges ran on each rank (Perfetto, Chrome)")
      ->type_name("FILE.json");
  command
      ->add_option("--warmup", state->warmup,
                   "Runs before the one that counts, on NaN (integers: in reverse): what a device has recorded it then "
                   "replays, and nothing may depend on what is in memory")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--timing", state->timing, "Say how long each part of the work took");
  command->footer("Examples:\n"
                  "  " +
                  app.get_name() +
                  " run unet.dvt --input image=@image.npy --output mask=mask.npy\n"
                  "  " +
                  app.get_name() + " run unet.dvt --input image=random:0 --threads 4 --trace trace.json");
  setAction(app, *command, exitCode, [state] { return state->run(); });
}
