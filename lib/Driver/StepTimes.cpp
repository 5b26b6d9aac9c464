//===- StepTimes.cpp - How long the steps of a program take ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements measureSteps.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/StepTimes.h"

#include "dovetail/Driver/Execution.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/runtime/ProgramRunner.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"

#include <chrono>

using namespace dovetail;
using llvm::FailureOr;

/// Runs before those that count: caches and predictions of branches are then as in later ones.
static constexpr int kWarmup = 2;
/// Of exchanges that take so many seconds it does not matter whether ranks slept before.
static constexpr double kLongExchange = 1e-4;
static constexpr int kLeastRuns = 3, kMostRuns = 200;

static double toSeconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

FailureOr<StepTimes> dovetail::measureSteps(Compilation &compilation, const std::vector<std::string> &inputs,
                                            int threads, double seconds, Diagnostics &diagnostics) {
  StepTimes result;
  if (failed(compilation.runTo(Phase::Lower)))
    return llvm::failure();
  {
    // Machine code takes the module's place.
    mlir::ModuleOp module = compilation.getModule();
    Diagnostics::Scope scope(diagnostics, *module.getContext(), ExitCode::Internal);
    auto programs = module.getOps<plan::ProgramOp>();
    plan::ProgramOp program = *programs.begin();
    FailureOr<PlanSteps> work =
        getPlanSteps(program, *compilation.getOptions().cluster, getExchangeEngine(program.getMemory()));
    if (failed(work))
      return llvm::failure();
    result.work = std::move(*work);
    result.work.dropOperations();
  }
  FailureOr<std::vector<std::byte>> artifact = compilation.serialize();
  if (failed(artifact))
    return llvm::failure();
  auto program = load(*artifact, "the compiled program", diagnostics);
  if (failed(program))
    return llvm::failure();
  auto fail = [&](const absl::Status &status) {
    return diagnostics.error(getExitCode(status), std::string(status.message()));
  };
  runtime::RunnerOptions options;
  options.threads = threads * (*program)->numRanks();
  options.trace = true;
  auto tensors = tools::readInputs((*program)->getPlan(), inputs, /*randomDefault=*/true);
  if (!tensors.ok())
    return fail(tensors.status());
  auto runner = runtime::ProgramRunner::create(*program, options);
  if (!runner.ok())
    return fail(runner.status());
  std::vector<tools::NamedTensor> outputs = tools::makeOutputs((*program)->getPlan());
  std::vector<runtime::FullTensor> in = tools::viewsOf(*tensors), out = tools::viewsOf(outputs);

  Progress::show("run");
  size_t numRanks = (*program)->numRanks(), numSteps = result.work.steps.size();
  std::vector<std::vector<double>> samples(numSteps * numRanks), exchanges(numSteps);
  auto begin = std::chrono::steady_clock::now();
  for (int run = -kWarmup; run < kMostRuns; ++run) {
    if (run >= kLeastRuns && toSeconds(std::chrono::steady_clock::now() - begin) > seconds)
      break;
    auto time = (*runner)->measure(in, out);
    if (!time.ok())
      return fail(time.status());
    if (run < 0)
      continue;
    result.runs.push_back(toSeconds(*time));
    for (size_t step = 0; step < numSteps; ++step) {
      runtime::StepTime last = (*runner)->times(0)[step];
      for (size_t rank = 0; rank < numRanks; ++rank) {
        const runtime::StepTime &own = (*runner)->times(static_cast<int>(rank))[step];
        samples[step * numRanks + rank].push_back(toSeconds(own.end - own.begin));
        last = {std::max(last.begin, own.begin), std::max(last.end, own.end)};
      }
      exchanges[step].push_back(toSeconds(last.end - last.begin));
    }
  }
  for (size_t step = 0; step < numSteps; ++step) {
    std::vector<double> &times = exchanges[step];
    // To be woken up is part of a short exchange, and the least of all runs would be one where nobody slept.
    double least = *llvm::min_element(times);
    auto low = times.begin() + static_cast<ptrdiff_t>(times.size() / 8);
    std::nth_element(times.begin(), low, times.end());
    result.exchanges.push_back(least < kLongExchange ? std::min(*low, kLongExchange) : least);
    result.steps.emplace_back();
    for (size_t rank = 0; rank < numRanks; ++rank)
      result.steps.back().push_back(*llvm::min_element(samples[step * numRanks + rank]));
  }
  return result;
}
