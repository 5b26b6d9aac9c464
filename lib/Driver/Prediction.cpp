//===- Prediction.cpp - How a model would run on a cluster ----------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Prediction.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Prediction.h"

#include "Expected.h"

#include "dovetail/Artifact/Writer.h"
#include "dovetail/Driver/Execution.h"
#include "dovetail/Driver/Progress.h"
#include "dovetail/tools/Support.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;
using namespace dovetail;

//===----------------------------------------------------------------------===//
// What has been predicted
//===----------------------------------------------------------------------===//

int64_t PredictedRun::getMemory(int rank, size_t position) const {
  const runtime::MemoryUse &use = memory[rank];
  return use.statistics.totalBytes() - use.statistics.arenaBytes + use.aliveBytes[position];
}

int64_t PredictedRun::getReceivedBytes() const {
  double bytes = 0;
  for (const PlanStep &step : work.steps)
    if (step.traffic)
      bytes += step.traffic->getBytes();
  return static_cast<int64_t>(bytes);
}

size_t PredictedRun::getPeak(int rank) const {
  const std::vector<int64_t> &alive = memory[rank].aliveBytes;
  return std::max_element(alive.begin(), alive.end()) - alive.begin();
}

std::vector<std::vector<int>> PredictedRun::getAlikeRanks() const {
  std::map<std::vector<double>, size_t> numbers;
  std::vector<std::vector<int>> result;
  for (int rank = 0; rank < getNumRanks(); ++rank) {
    std::vector<double> key = {static_cast<double>(getMemory(rank))};
    for (size_t step = 0; step < work.steps.size(); ++step)
      key.insert(key.end(), {simulation.getBegin(step, rank), simulation.getEnd(step, rank)});
    auto [entry, isNew] = numbers.try_emplace(std::move(key), result.size());
    if (isNew)
      result.emplace_back();
    result[entry->second].push_back(rank);
  }
  return result;
}

double Prediction::getSpeedup() const {
  double seconds = run.simulation.getSeconds();
  return alone && seconds > 0 ? alone->simulation.getSeconds() / seconds : 1;
}

int64_t Prediction::getAvailable(int rank) const {
  // More than any machine has is not told apart.
  constexpr double most = 0x1p62;
  if (limits.empty())
    return cluster.getDevice(rank).memoryBytes;
  return limits[rank] < most ? static_cast<int64_t>(limits[rank]) : 0;
}

//===----------------------------------------------------------------------===//
// Predicting
//===----------------------------------------------------------------------===//

FailureOr<PredictedRun> dovetail::predictRun(Compilation &compilation, const Cluster &cluster, int threads,
                                             Diagnostics &diagnostics, bool estimatesMemory) {
  ModuleOp module = compilation.getModule();
  Diagnostics::Scope scope(diagnostics, *module.getContext(), ExitCode::Internal);
  auto program = *module.getOps<plan::ProgramOp>().begin();
  Progress::show("simulation");
  FailureOr<PlanSteps> work = getPlanSteps(program, cluster, getExchangeEngine(program.getMemory()));
  FailureOr<runtime::Plan> plan = describeProgram(module, compilation.getOptions().sourceNames);
  if (failed(work) || failed(plan))
    return failure();
  Simulation simulation(*work, cluster);
  std::vector<runtime::MemoryUse> memory;
  runtime::MemoryEstimator estimator(*plan, threads);
  for (int rank = 0, e = estimatesMemory ? work->mesh.numRanks() : 0; rank < e; ++rank) {
    absl::StatusOr<runtime::MemoryUse> use = estimator.estimate(rank);
    if (!use.ok())
      return diagnostics.error(getExitCode(use.status()),
                               "rank " + Twine(rank) + ": " + std::string(use.status().message()));
    memory.push_back(*std::move(use));
  }
  return PredictedRun{std::move(*plan), std::move(*work), std::move(simulation), std::move(memory)};
}

FailureOr<Prediction> dovetail::predict(const ModelSource &model, CompileOptions options, int threads,
                                        Diagnostics &diagnostics) {
  const Cluster cluster = *options.cluster;
  const std::vector<double> limits = options.memory;
  options.import.mayMissData = true;
  // That it does not fit is part of what is predicted.
  options.mustFit = false;
  std::unique_ptr<MLIRContext> context = createContext();
  Compilation compilation(*context, options, diagnostics);
  compilation.lastPhase = Phase::Lower;
  if (failed(compilation.import(model)) || failed(compilation.runTo(Phase::Legalize)))
    return failure();
  std::optional<PredictedRun> alone;
  if (options.mesh.numRanks() > 1) {
    Progress::show("one device alone");
    Progress::Parts parts;
    Compilation other = compilation.fork(makeAlone(options));
    if (failed(other.runTo(Phase::Lower)))
      return failure();
    FailureOr<PredictedRun> run = predictRun(other, cluster, threads, diagnostics);
    if (failed(run))
      return failure();
    alone = std::move(*run);
  }
  if (failed(compilation.runTo(Phase::Lower)))
    return failure();
  FailureOr<PredictedRun> run = predictRun(compilation, cluster, threads, diagnostics);
  if (failed(run))
    return failure();
  // Operations are gone with the context.
  run->work.dropOperations();
  if (alone)
    alone->work.dropOperations();
  return Prediction{model.path,       options.target->getName().str(), cluster, threads, std::move(*run),
                    std::move(alone), compilation.getMissingFiles(),   limits};
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

int dovetail::getSlowestRank(const PredictedRun &run, size_t step) {
  int slowest = 0;
  auto getSeconds = [&](int rank) { return run.simulation.getEnd(step, rank) - run.simulation.getBegin(step, rank); };
  for (int rank = 1; rank < run.getNumRanks(); ++rank)
    if (getSeconds(rank) > getSeconds(slowest))
      slowest = rank;
  return slowest;
}

static std::string formatCount(double count) {
  for (auto [limit, unit] : {std::pair(1e12, " T"), std::pair(1e9, " G"), std::pair(1e6, " M"), std::pair(1e3, " k")})
    if (count >= limit)
      return llvm::formatv("{0:f1}{1}", count / limit, unit).str();
  return llvm::formatv("{0:f0} ", count).str();
}

std::string dovetail::describeWork(const PredictedRun &run, size_t step) {
  const PlanStep &planned = run.work.steps[step];
  if (planned.kind != PlanStep::Kind::Compute)
    return "";
  const StepWork &work = planned.getWork(getSlowestRank(run, step));
  auto number = [](double value) { return llvm::formatv("{0:f0}", value).str(); };
  switch (work.kind) {
  case StepWork::Kind::Product: {
    std::string batch = work.batch > 1 ? number(work.batch) + " of " : "";
    return batch + number(work.rows) + " x " + number(work.depth) + " x " + number(work.columns);
  }
  case StepWork::Kind::Elements:
    return formatCount(work.operations) + "operations";
  case StepWork::Kind::Copy:
    return "copy";
  }
  llvm_unreachable("covered switch");
}

std::string dovetail::formatSeconds(double seconds) {
  auto [factor, unit] = seconds >= 1      ? std::pair(1.0, "s")
                        : seconds >= 1e-3 ? std::pair(1e3, "ms")
                                          : std::pair(1e6, "us");
  return llvm::formatv("{0:f2} {1}", seconds * factor, unit).str();
}
