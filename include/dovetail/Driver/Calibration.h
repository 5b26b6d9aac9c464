//===- Calibration.h - How fast this machine is -----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares calibrate, which measures what a core of this machine and exchanges between its ranks take.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_CALIBRATION_H
#define DOVETAIL_DRIVER_CALIBRATION_H

#include "dovetail/Cost/ClusterFit.h"
#include "dovetail/Driver/Diagnostics.h"

#include <vector>

namespace dovetail {

/// What was measured.
struct CalibrationSamples {
  std::vector<StepSample> steps;
  std::vector<ExchangeSample> exchanges;
};

/// Compiles small programs for this CPU and runs them, with one thread for each rank, in about `seconds`. Exchanges are
/// those of at most `numRanks` ranks.
llvm::FailureOr<CalibrationSamples> measureMachine(int numRanks, double seconds, Diagnostics &diagnostics);

/// Cores with one rank each that are as fast as the samples say.
Cluster fitCluster(const CalibrationSamples &samples);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_CALIBRATION_H
