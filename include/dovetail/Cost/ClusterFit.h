//===- ClusterFit.h - Devices and links from measurements -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what finds the device and the link that explain best what was measured.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_CLUSTERFIT_H
#define DOVETAIL_COST_CLUSTERFIT_H

#include "dovetail/Cost/Cluster.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace dovetail {

/// What a step was measured to take, in seconds.
struct StepSample {
  StepWork work;
  double seconds = 0;
  /// For reports.
  std::string name = {};
};

/// What an exchange was measured to take, in seconds.
struct ExchangeSample {
  ExchangeWork work;
  double seconds = 0;
};

/// The device for which the predictions of samples are wrong by the smallest factors, beginning with `start`; what no
/// sample is about stays as it is there. Steps of columns and rows are those of `start`, or of vectors of 4, 8 or 16.
Device fitDevice(Device start, llvm::ArrayRef<StepSample> samples);
/// The same for a link.
Link fitLink(Link start, llvm::ArrayRef<ExchangeSample> samples);

/// By which factor a prediction is wrong: 0 if it is right, 1 if one is twice the other.
double getErrorFactor(double predicted, double measured);

} // namespace dovetail

#endif // DOVETAIL_COST_CLUSTERFIT_H
