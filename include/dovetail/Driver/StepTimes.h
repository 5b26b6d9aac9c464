//===- StepTimes.h - How long the steps of a program take -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares measureSteps, which runs a program and says how long its steps took.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_STEPTIMES_H
#define DOVETAIL_DRIVER_STEPTIMES_H

#include "dovetail/Cost/PlanSteps.h"
#include "dovetail/Driver/Compilation.h"

#include <vector>

namespace dovetail {

/// What a program does, and how long that took. Times are in seconds.
struct StepTimes {
  /// Its steps' `op` are null: they are not there any more.
  PlanSteps work;
  /// Of each step on each rank the least of all runs, as other work of the machine only adds: `steps[step][rank]`.
  std::vector<std::vector<double>> steps;
  /// Of each step the time from the last rank's beginning to the last rank's end, without what ranks wait for others.
  /// Of long ones the least of all runs; else an eighth of the runs took less.
  std::vector<double> exchanges;
  /// Of each run, from inputs in place to the last rank's last step.
  std::vector<double> runs;
};

/// Compiles what `compilation` has imported, and runs it on this machine with `threads` for each rank: as often as
/// `seconds` allow, three times at least, after runs that do not count. `inputs` are as of `tools::readInputs`; those
/// that are not given are random.
llvm::FailureOr<StepTimes> measureSteps(Compilation &compilation, const std::vector<std::string> &inputs, int threads,
                                        double seconds, Diagnostics &diagnostics);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_STEPTIMES_H
