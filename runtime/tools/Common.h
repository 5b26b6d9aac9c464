//===- Common.h - What the commands share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_TOOLS_COMMON_H
#define DOVETAIL_RUNTIME_TOOLS_COMMON_H

#include "dovetail/runtime/ProgramRunner.h"
#include "dovetail/tools/RunCommands.h"
#include "dovetail/tools/TensorFile.h"

#include "absl/status/statusor.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace dovetail::tools {

/// Carries out `body` as the callback of a command: prints its error and sets the exit code.
template <typename Body> void setAction(CLI::App &app, CLI::App &command, int &exitCode, Body body) {
  command.callback([&app, &exitCode, body] {
    absl::Status status = body();
    if (!status.ok())
      std::fprintf(stderr, "%s: error: %s\n", app.get_name().c_str(), std::string(status.message()).c_str());
    exitCode = exitCodeOf(status);
  });
}

/// Adds an option that may be given several times, with one value each time.
CLI::Option *addRepeatable(CLI::App &command, const std::string &name, std::vector<std::string> &values,
                           const std::string &description);

/// What is needed to run a program, as on the command line.
struct RunArguments {
  std::string artifact;
  std::vector<std::string> inputs;
  std::string communicator = "local";
  int threads = 1;
  double timeout = 60;
};
void addRunOptions(CLI::App &command, RunArguments &arguments);

/// Checks values that the parser cannot. Errors: INVALID_ARGUMENT.
absl::StatusOr<runtime::RunnerOptions> runnerOptions(const RunArguments &arguments);

/// The program's inputs from specifications: `NAME=@FILE.npy`, `NAME=@FILE.npz`, `@FILE.npz`, `NAME=random:SEED`. With
/// `randomDefault`, those that are not given are random, otherwise they are missed.
absl::StatusOr<std::vector<NamedTensor>> readInputs(const runtime::Plan &plan, const std::vector<std::string> &specs,
                                                    bool randomDefault);

/// Tensors for all outputs of the program.
std::vector<NamedTensor> makeOutputs(const runtime::Plan &plan);
std::vector<runtime::HostTensor> viewsOf(std::vector<NamedTensor> &tensors);

/// Adds the path to an error of an artifact that was loaded, unless it is there.
absl::Status ofArtifact(const std::string &path, const absl::Status &status);

/// Text in columns, the first row being the head.
std::string formatTable(const std::vector<std::vector<std::string>> &rows, const std::string &indent = "  ");
/// `3.1 MiB`.
std::string formatBytes(int64_t bytes);
/// `float32[1, 3, 8, 8]`.
std::string formatType(runtime::ElementType type, const std::vector<int64_t> &shape);

/// Writes when each step and exchange ran on each rank, as JSON for Chrome's and Perfetto's trace viewers.
absl::Status writeTrace(const std::string &path, const runtime::ProgramRunner &runner);
/// Writes text to a file.
absl::Status writeText(const std::string &path, const std::string &text);

} // namespace dovetail::tools

#endif // DOVETAIL_RUNTIME_TOOLS_COMMON_H
