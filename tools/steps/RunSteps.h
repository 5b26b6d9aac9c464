//===- RunSteps.h - Running an artifact step after step -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the run of a program in steps: on its own outputs, on a sequence of inputs, or both.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_TOOLS_STEPS_RUNSTEPS_H
#define DOVETAIL_TOOLS_STEPS_RUNSTEPS_H

#include "dovetail/tools/Destination.h"
#include "dovetail/tools/RunSupport.h"

#include <chrono>
#include <map>
#include <string>

namespace dovetail::tools {

/// What is asked of such a run, as on the command line.
struct StepsRequest {
  const RunArguments &arguments;
  const std::vector<std::string> &outputs;
  int64_t steps; ///< 0: as many as there are inputs.
  bool resume;
  int warmup;
  std::string trace;
  bool timing;
};

/// What all processes have to be given alike (`compareOptions`).
std::map<std::string, std::string> optionsOf(const StepsRequest &request);

/// Whether that is what is asked for, and not one run.
bool asksForSteps(const runtime::Plan &plan, const StepsRequest &request);

/// In one process or as one of several, each with its parts of inputs and outputs. `begin`: when the command was given.
absl::Status runSteps(std::shared_ptr<const runtime::Program> program, const runtime::RunnerOptions &options,
                      const StepsRequest &request, const std::vector<Destination> &destinations, ProgressLine &progress,
                      std::chrono::steady_clock::time_point begin);

} // namespace dovetail::tools

#endif // DOVETAIL_TOOLS_STEPS_RUNSTEPS_H
