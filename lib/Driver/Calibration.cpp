//===- Calibration.cpp - How fast this machine is -------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements measureMachine and fitCluster.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Calibration.h"

#include "CalibrationPrograms.h"

#include "dovetail/Driver/CommandLine.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/Driver/StepTimes.h"

#include <cstdio>
#include <cstdlib>

using namespace dovetail;
using llvm::FailureOr;

static FailureOr<StepTimes> measure(const CalibrationProgram &program, double seconds, Diagnostics &diagnostics) {
  Progress::Parts parts;
  // How these programs are split is no business of users.
  Diagnostics::ErrorsOnly errorsOnly(diagnostics);
  FailureOr<CompileOptions> options = parseOptions(program.options, diagnostics);
  if (failed(options))
    return llvm::failure();
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  Compilation compilation(*context, std::move(*options), diagnostics);
  if (failed(compilation.import(llvm::MemoryBufferRef(program.text, program.name + ".onnxtxt"))))
    return llvm::failure();
  return measureSteps(compilation, {}, /*threads=*/1, seconds, diagnostics);
}

FailureOr<CalibrationSamples> dovetail::measureMachine(int numRanks, double seconds, Diagnostics &diagnostics) {
  std::vector<CalibrationProgram> steps = getStepPrograms(), exchanges;
  for (int ranks = 2; ranks <= numRanks; ranks *= 2)
    for (CalibrationProgram &program : getExchangePrograms(ranks))
      exchanges.push_back(std::move(program));
  double share = seconds / static_cast<double>(steps.size() + exchanges.size());
  CalibrationSamples samples;
  size_t number = 0;
  auto showNext = [&](const CalibrationProgram &program) {
    Progress::show("measure " + program.name, ++number, steps.size() + exchanges.size());
  };
  for (const CalibrationProgram &program : steps) {
    showNext(program);
    FailureOr<StepTimes> times = measure(program, share, diagnostics);
    if (failed(times))
      return llvm::failure();
    for (auto [step, time] : llvm::zip_equal(times->work.steps, times->steps))
      if (step.kind == PlanStep::Kind::Compute && !llvm::StringRef(step.name).starts_with(kAsidePrefix))
        samples.steps.push_back({step.getWork(0), time.front(), program.name + " " + step.type + " " + step.name});
  }
  for (const CalibrationProgram &program : exchanges) {
    showNext(program);
    FailureOr<StepTimes> times = measure(program, share, diagnostics);
    if (failed(times))
      return llvm::failure();
    // Before the first one of a run ranks come from their sleep.
    bool isFirst = true;
    for (auto [step, time] : llvm::zip_equal(times->work.steps, times->exchanges)) {
      if (step.kind != PlanStep::Kind::Exchange || std::exchange(isFirst, false))
        continue;
      ExchangeWork work;
      work.phases = 1;
      // A rank copies its own part, too, where it is to lie elsewhere.
      work.receivedBytes = step.traffic->localBytes.front();
      for (const ExchangeTraffic::Pull &pull : step.traffic->pulls.front()) {
        work.receivedBytes += pull.bytes;
        work.messages += 1;
      }
      samples.exchanges.push_back({work, time});
    }
  }
  Progress::clear();
  return samples;
}

/// Three digits are more than a measurement gives.
static void roundDigits(double &value) {
  if (value == 0)
    return;
  // By way of text, which is what the file has.
  char text[32];
  std::snprintf(text, sizeof(text), "%.2e", value);
  value = std::strtod(text, nullptr);
}

Cluster dovetail::fitCluster(const CalibrationSamples &samples) {
  Cluster start = *Cluster::getBuiltIn("cpu");
  Device device = fitDevice(start.getDevice(0), samples.steps);
  // Without such products there is nothing to tell.
  if (llvm::none_of(samples.steps, [](const StepSample &sample) {
        return sample.work.kind == StepWork::Kind::Product && sample.work.bits <= 16;
      }))
    device.products16 = device.products32;
  Link link = start.getLinks().front();
  if (!samples.exchanges.empty())
    link = fitLink(link, samples.exchanges);
  for (double *value :
       {&device.stepSeconds, &device.products32, &device.products16, &device.halfRows, &device.halfColumns,
        &device.halfDepth, &device.depthwise, &device.halfTaps, &device.operations, &device.bytes, &device.cachedBytes,
        &device.cacheBytes, &device.nearBytes, &device.nearCacheBytes, &device.copiedBytes, &device.serialShare,
        &link.exchangeSeconds, &link.messageSeconds, &link.bytes})
    roundDigits(*value);
  return Cluster("calibrated", {device}, {link});
}
