//===- ClusterFit.cpp - Devices and links from measurements ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements fitDevice and fitLink.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/ClusterFit.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <cmath>

using namespace dovetail;

/// Of logarithms: beyond it, an error counts linearly, so that a few steps that the model does not explain, or that
/// were disturbed, do not decide.
static constexpr double kOutlier = 0.3;

double dovetail::getErrorFactor(double predicted, double measured) {
  return std::exp(std::abs(std::log(predicted / measured))) - 1;
}

static double getLoss(double predicted, double measured) {
  double error = std::abs(std::log(predicted / measured));
  return error < kOutlier ? error * error : kOutlier * (2 * error - kOutlier);
}

namespace {
/// A number that is fitted.
struct Parameter {
  double *value;
  double least, most;
};
} // namespace

/// Goes along one parameter after the other, in ever smaller steps, as long as that makes the loss less. There are a
/// dozen parameters and samples by the hundred: nothing quicker is needed.
static void search(llvm::ArrayRef<Parameter> parameters, llvm::function_ref<double()> getLoss) {
  double loss = getLoss();
  for (double factor = 2; factor > 1.002;) {
    bool isBetter = false;
    for (const Parameter &parameter : parameters)
      for (double scale : {factor, 1 / factor}) {
        double before = *parameter.value;
        *parameter.value = std::clamp(before * scale, parameter.least, parameter.most);
        double now = getLoss();
        if (now < loss * (1 - 1e-9)) {
          loss = now;
          isBetter = true;
        } else {
          *parameter.value = before;
        }
      }
    if (!isBetter)
      factor = std::sqrt(factor);
  }
}

/// Elements of 32 bits in the vectors that CPUs have.
static constexpr double kVectorSizes[] = {4, 8, 16};

static double getLoss(const Device &device, llvm::ArrayRef<StepSample> samples) {
  double loss = 0;
  for (const StepSample &sample : samples)
    loss += getLoss(device.getSeconds(sample.work), sample.seconds);
  return loss;
}

/// What is found with the steps that `device` has.
static Device fitNumbers(Device device, llvm::ArrayRef<StepSample> samples) {
  // Nothing vanishes, or what has vanished could not come back.
  Parameter parameters[] = {
      {&device.stepSeconds, 1e-8, 1e-3}, {&device.products32, 1e6, 1e18},     {&device.products16, 1e6, 1e18},
      {&device.halfRows, 0.01, 1e4},     {&device.halfColumns, 0.01, 1e4},    {&device.halfDepth, 0.01, 1e4},
      {&device.depthwise, 1e6, 1e18},    {&device.halfTaps, 0.01, 1e4},       {&device.operations, 1e6, 1e18},
      {&device.bytes, 1e6, 1e18},        {&device.cachedBytes, 1e6, 1e18},    {&device.cacheBytes, 1e4, 1e12},
      {&device.nearBytes, 1e6, 1e18},    {&device.nearCacheBytes, 1e4, 1e12}, {&device.copiedBytes, 1e6, 1e18},
      {&device.serialShare, 0.01, 1}};
  for (const Parameter &parameter : parameters)
    *parameter.value = std::clamp(*parameter.value, parameter.least, parameter.most);
  search(parameters, [&] { return getLoss(device, samples); });
  return device;
}

Device dovetail::fitDevice(Device start, llvm::ArrayRef<StepSample> samples) {
  Device best = fitNumbers(start, samples);
  double least = getLoss(best, samples);
  // A library may use other vectors than generated code.
  for (double columns : kVectorSizes)
    for (double rows : kVectorSizes) {
      if (columns == start.columnStep && rows == start.rowStep)
        continue;
      Device device = start;
      device.columnStep = columns;
      device.rowStep = rows;
      device = fitNumbers(device, samples);
      if (double loss = getLoss(device, samples); loss < least) {
        least = loss;
        best = device;
      }
    }
  return best;
}

Link dovetail::fitLink(Link start, llvm::ArrayRef<ExchangeSample> samples) {
  Link link = start;
  Parameter parameters[] = {
      {&link.exchangeSeconds, 1e-8, 1}, {&link.messageSeconds, 1e-8, 1}, {&link.bytes, 1e6, 1e18}};
  search(parameters, [&] {
    double loss = 0;
    for (const ExchangeSample &sample : samples)
      loss += getLoss(Cluster::getSeconds(link, sample.work), sample.seconds);
    return loss;
  });
  return link;
}
