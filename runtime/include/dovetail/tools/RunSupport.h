//===- RunSupport.h - What the commands share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_RUNSUPPORT_H
#define DOVETAIL_TOOLS_RUNSUPPORT_H

#include "dovetail/tools/Summary.h"

#include "dovetail/runtime/ExitCode.h"
#include "dovetail/runtime/ProgramRunner.h"
#include "dovetail/tools/ProgressLine.h"
#include "dovetail/tools/RunCommands.h"
#include "dovetail/tools/Support.h"

#include "absl/status/statusor.h"

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace dovetail::tools {

/// Carries out `body` as the callback of a command: prints its error and sets the exit code.
void setAction(CLI::App &app, CLI::App &command, int &exitCode, std::function<absl::Status()> body);

/// What is needed to run a program, as on the command line.
struct RunArguments {
  std::string artifact;
  std::vector<std::string> inputs;
  std::string communicator; ///< Empty until `runnerOptions` has chosen the default.
  int threads = 1;
  double timeout = 60;
  bool autotune = false;
  int memoryFill = 0;
  bool pin = false;
  int device = -1, rank = -1, world = -1;
  std::string address;
};
void addRunOptions(CLI::App &command, RunArguments &arguments);

/// Checks values that the parser cannot, and chooses the communicator that is not given. Errors: INVALID_ARGUMENT, and
/// those of the artifact, where the communicator depends on its target.
absl::StatusOr<runtime::RunnerOptions> runnerOptions(RunArguments &arguments);

/// Adds the path to an error of an artifact that was loaded, unless it is there.
absl::Status ofArtifact(const std::string &path, const absl::Status &status);

/// Checks that files to be written replace neither each other nor what is read. Errors: INVALID_ARGUMENT.
absl::Status checkOutputs(const RunArguments &arguments, const std::vector<std::string> &outputs);

/// Writes to stderr what a runner says about its start, if anything.
void printRemark(const runtime::ProgramRunner &runner);
/// The names of inputs or outputs.
std::vector<std::string> namesOf(const std::vector<runtime::PortInfo> &ports);
/// A summary of each output, in their order.
std::vector<Summary> summarize(const std::vector<NamedTensor> &outputs);
/// Says on standard error that outputs contain NaN or infinities, by the summaries of all outputs of a plan.
void printNonFinite(const runtime::Plan &plan, const std::vector<Summary> &summaries);

/// What a rank takes of memory, for reports.
nlohmann::json describeMemory(int rank, const runtime::SessionStatistics &memory);

/// The error when memory ran out for the inputs and outputs of the artifact at `path`.
absl::Status notEnoughMemory(const std::string &path, const runtime::Plan &plan);

/// Writes when each step and exchange ran on each rank, as JSON for Chrome's and Perfetto's trace viewers.
absl::Status writeTrace(const std::string &path, const runtime::ProgramRunner &runner);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_RUNSUPPORT_H
