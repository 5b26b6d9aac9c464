//===- BenchCommand.cpp - Measuring an artifact -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/tools/ProcessPorts.h"
#include "dovetail/tools/RunSupport.h"

#include "dovetail/runtime/RankGroup.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

using namespace dovetail;
using namespace dovetail::tools;

namespace {

struct BenchCommand {
  RunArguments arguments;
  int iterations = 20, warmup = 3;
  bool json = false, steps = false;
  std::string trace;

  absl::Status run();
};

/// What steps took in all runs.
class StepTimes {
public:
  void add(const runtime::ProgramRunner &runner);
  nlohmann::json describe(const runtime::Plan &plan) const;

private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// Of each step, the least milliseconds of each rank, and from the last rank's beginning to the last rank's end.
  std::vector<std::vector<double>> ranks;
  std::vector<double> together;
};

double milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

void StepTimes::add(const runtime::ProgramRunner &runner) {
  size_t numRanks = runner.getProgram().numRanks(), numSteps = runner.times(0).size();
  ranks.resize(numSteps, std::vector<double>(numRanks, kNever));
  together.resize(numSteps, kNever);
  for (size_t step = 0; step < numSteps; ++step) {
    runtime::StepTime last = runner.times(0)[step];
    for (size_t rank = 0; rank < numRanks; ++rank) {
      const runtime::StepTime &time = runner.times(static_cast<int>(rank))[step];
      ranks[step][rank] = std::min(ranks[step][rank], milliseconds(time.end - time.begin));
      last = {std::max(last.begin, time.begin), std::max(last.end, time.end)};
    }
    together[step] = std::min(together[step], milliseconds(last.end - last.begin));
  }
}

nlohmann::json StepTimes::describe(const runtime::Plan &plan) const {
  nlohmann::json result = nlohmann::json::array();
  for (size_t step = 0; step < together.size(); ++step)
    result.push_back({{"name", plan.steps[step].name},
                      {"kind", plan.steps[step].kind()},
                      {"least_ms", ranks[step]},
                      {"least_together_ms", together[step]}});
  return result;
}

/// Implementations that a library offered for a call.
nlohmann::json describeCandidates(const std::vector<runtime::CallCandidate> &candidates) {
  nlohmann::json result = nlohmann::json::array();
  for (const runtime::CallCandidate &candidate : candidates) {
    nlohmann::json knobs = nlohmann::json::object(), workspace, time;
    for (const auto &[name, value] : candidate.knobs)
      knobs[name] = value;
    if (candidate.workspaceBytes >= 0)
      workspace = candidate.workspaceBytes;
    if (candidate.milliseconds)
      time = *candidate.milliseconds;
    result.push_back({{"source", candidate.source},
                      {"engine", candidate.engine},
                      {"knobs", knobs},
                      {"notes", candidate.notes},
                      {"layout", candidate.layout},
                      {"fused", candidate.fused},
                      {"workspace_bytes", workspace},
                      {"status", statusName(candidate.status)},
                      {"reason", candidate.reason},
                      {"ms", time}});
  }
  return result;
}

/// The nodes that each step adds to the graph that a device replays. Null where ranks share the graph: there, the nodes
/// of a step cannot be told from those of other ranks.
nlohmann::json describeNodes(const runtime::ProgramRunner &runner, bool isProcess) {
  nlohmann::json result = nlohmann::json::array();
  const runtime::Plan &plan = runner.getProgram().getPlan();
  const std::vector<runtime::CallReport> &calls = runner.calls(0);
  for (size_t step = 0; step < calls.size(); ++step)
    if (const std::optional<runtime::GraphNodes> &nodes = calls[step].nodes)
      result.push_back({{"step", plan.steps[step].name},
                        {"kind", plan.steps[step].kind()},
                        {"kernels", nodes->kernels},
                        {"copies", nodes->copies},
                        {"fills", nodes->fills},
                        {"others", nodes->others}});
  bool isShared = !isProcess && runner.getProgram().numRanks() > 1;
  return isShared || result.empty() ? nlohmann::json() : result;
}

/// What does library calls on rank 0, whether that is slow, and their memory.
nlohmann::json describeImplementations(const runtime::ProgramRunner &runner) {
  nlohmann::json result = nlohmann::json::array();
  const runtime::Plan &plan = runner.getProgram().getPlan();
  const std::vector<runtime::CallReport> &calls = runner.calls(0);
  for (size_t step = 0; step < calls.size(); ++step)
    if (const runtime::CallReport &call = calls[step]; !call.library.implementation.empty())
      result.push_back({{"step", plan.steps[step].name},
                        {"kind", plan.steps[step].kind()},
                        {"implementation", call.library.implementation},
                        {"fused", call.library.fused},
                        {"post_ops", call.library.postOps},
                        {"staged", call.library.staged},
                        {"candidates", describeCandidates(call.library.candidates)},
                        {"scratch_bound", call.scratchBound},
                        {"packed_bound", call.packedBound}});
    else if (!call.implementation.empty())
      result.push_back({{"step", plan.steps[step].name},
                        {"kind", plan.steps[step].kind()},
                        {"implementation", call.implementation},
                        {"is_reference", call.isReference},
                        {"scratch_bytes", call.scratchBytes},
                        {"scratch_bound", call.scratchBound},
                        {"packed_bytes", call.packedBytes},
                        {"packed_bound", call.packedBound},
                        {"excess_bytes", call.excessBytes}});
  return result;
}

double medianOf(std::vector<double> &values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

} // namespace

absl::Status BenchCommand::run() {
  absl::StatusOr<runtime::RunnerOptions> options = runnerOptions(arguments);
  if (!options.ok())
    return options.status();
  if (iterations < 1 || warmup < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("--iterations ", iterations, " --warmup ", warmup, ": at least 1 iteration is needed"));
  absl::StatusOr<bool> isProcess = runtime::connectsProcesses(arguments.communicator);
  if (!isProcess.ok())
    return isProcess.status();
  if (steps && (!json || *isProcess))
    return absl::InvalidArgumentError("--steps is for --json, where all ranks are in this process");
  options->trace = !trace.empty() || steps;
  options->explain = json;
  if (!trace.empty())
    if (absl::Status status = checkWritable(trace); !status.ok())
      return status;
  if (!trace.empty())
    if (absl::Status status = checkOutputs(arguments, {trace}); !status.ok())
      return status;
  auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<std::shared_ptr<const runtime::Program>> program =
      runtime::Program::load(arguments.artifact, {.checkWeights = !*isProcess});
  if (!program.ok())
    return program.status();
  const runtime::Plan &plan = (*program)->getPlan();
  absl::StatusOr<std::vector<NamedTensor>> inputs = std::vector<NamedTensor>();
  absl::StatusOr<std::vector<std::unique_ptr<InputSource>>> sources = std::vector<std::unique_ptr<InputSource>>();
  if (*isProcess)
    sources = openInputs(plan, arguments.inputs, /*randomDefault=*/true);
  else
    inputs = readInputs(plan, arguments.inputs, /*randomDefault=*/true);
  if (!inputs.ok() || !sources.ok())
    return inputs.ok() ? sources.status() : inputs.status();
  ProgressLine progress;
  progress.mute(*isProcess);
  progress.show("start ranks");
  auto runner = runtime::ProgramRunner::create(*program, *options);
  if (!runner.ok())
    return ofArtifact(arguments.artifact, runner.status());
  progress.clear();
  progress.mute(!(*runner)->isFirst());
  if ((*runner)->isFirst())
    printRemark(**runner);
  double start = milliseconds(std::chrono::steady_clock::now() - begin);

  ProcessPorts ports(**runner, *std::move(sources), nullptr);
  std::vector<NamedTensor> outputs = *isProcess ? std::vector<NamedTensor>() : makeOutputs(plan);
  std::vector<runtime::FullTensor> in = viewsOf(*inputs), out = viewsOf(outputs);
  std::vector<double> times, issueTimes;
  StepTimes stepTimes;
  for (int i = 0; i < warmup + iterations; ++i) {
    progress.show(i < warmup ? absl::StrCat("warm-up ", i + 1, " of ", warmup)
                             : absl::StrCat("iteration ", i - warmup + 1, " of ", iterations));
    absl::StatusOr<std::chrono::nanoseconds> time =
        *isProcess ? (*runner)->measure(ports) : (*runner)->measure(in, out);
    if (!time.ok())
      return ofArtifact(arguments.artifact, time.status());
    if (i < warmup)
      continue;
    times.push_back(milliseconds(*time));
    issueTimes.push_back(milliseconds((*runner)->issueTime()));
    if (steps)
      stepTimes.add(**runner);
  }
  progress.clear();
  if (!*isProcess) {
    cutOutputs(**runner, outputs);
    printNonFinite(plan, summarize(outputs));
  }
  // What comes next, rank 0 does alone.
  if (absl::Status status = (*runner)->finish(); !status.ok())
    return ofArtifact(arguments.artifact, status);
  if (!(*runner)->isFirst())
    return absl::OkStatus();
  if (!trace.empty())
    if (absl::Status status = writeTrace(trace, **runner); !status.ok())
      return status;

  double median = medianOf(times), issue = medianOf(issueTimes);
  double mean = std::accumulate(times.begin(), times.end(), 0.0) / times.size();
  double slow = times[std::min(times.size() - 1, times.size() * 9 / 10)];
  if (json) {
    nlohmann::json result = {{"artifact", arguments.artifact},
                             {"ranks", (*program)->numRanks()},
                             {"threads", std::max(arguments.threads, (*program)->numRanks())},
                             {"iterations", iterations},
                             {"start_ms", start},
                             {"min_ms", times.front()},
                             {"median_ms", median},
                             {"mean_ms", mean},
                             {"p90_ms", slow},
                             {"max_ms", times.back()},
                             {"issue_ms", issue}};
    // Of other processes it is not known.
    if (!*isProcess)
      for (int rank = 0; rank < (*program)->numRanks(); ++rank)
        result["memory"].push_back(describeMemory(rank, (*runner)->statistics(rank)));
    result["implementations"] = describeImplementations(**runner);
    result["steps_nodes"] = describeNodes(**runner, *isProcess);
    if (steps)
      result["steps"] = stepTimes.describe(plan);
    // Names come from models, which may contain any bytes.
    std::fputs((result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n").c_str(), stdout);
    return absl::OkStatus();
  }
  auto format = [](double value) { return absl::StrFormat("%.3f ms", value); };
  std::fputs(formatTable({{"ranks", absl::StrCat((*program)->numRanks())},
                          {"threads", absl::StrCat(std::max(arguments.threads, (*program)->numRanks()), " in all")},
                          {"load and start", format(start)},
                          {"median", format(median)},
                          {"mean", format(mean)},
                          {"min", format(times.front())},
                          {"90 %", format(slow)},
                          {"max", format(times.back())},
                          {"issued after", format(issue)}},
                         "")
                 .c_str(),
             stdout);
  return absl::OkStatus();
}

void tools::addBenchCommand(CLI::App &app, int &exitCode) {
  CLI::App *command =
      app.add_subcommand("bench", "Measure the time from inputs in place to the end of the last rank's last step");
  auto state = std::make_shared<BenchCommand>();
  addRunOptions(*command, state->arguments);
  command->get_option("--input")->description(
      "An input: NAME=FILE.npy, NAME=FILE.npz, NAME=FILE.raw, NAME=random:SEED, or FILE.npz for all inputs. Default: "
      "random.");
  command->add_option("--iterations", state->iterations, "Number of measured runs.")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--warmup", state->warmup, "Number of runs before the measured ones.")
      ->type_name("N")
      ->capture_default_str();
  command
      ->add_option("--trace", state->trace,
                   "Write when steps and exchanges ran in the last run, for Perfetto or Chrome. Default: no trace.")
      ->type_name("FILE.json");
  command->add_flag("--json", state->json, "Print JSON.");
  command
      ->add_flag("--steps", state->steps,
                 "With --json: the least time of each step, on each rank and on all ranks together.")
      ->group(expertGroup);
  command->footer("Examples:\n"
                  "  " +
                  app.get_name() +
                  " bench unet.dvt --threads 4\n"
                  "  " +
                  app.get_name() + " bench unet.dvt --input image=image.npy --iterations 100 --json");
  setAction(app, *command, exitCode, [state] { return state->run(); });
}
