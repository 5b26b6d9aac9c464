//===- Prediction.h - How a model would run on a cluster --------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Prediction: time, traffic and memory of a model on a cluster, by simulation, and what is written about it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_PREDICTION_H
#define DOVETAIL_DRIVER_PREDICTION_H

#include "dovetail/Cost/Simulation.h"
#include "dovetail/Driver/Compilation.h"
#include "dovetail/runtime/Session.h"

#include <nlohmann/json_fwd.hpp>

namespace dovetail {

/// One program, simulated.
struct PredictedRun {
  /// As the runtime has it.
  runtime::Plan plan;
  PlanSteps work;
  Simulation simulation;
  /// Of each rank.
  std::vector<runtime::MemoryUse> memory;

  int getNumRanks() const { return work.mesh.numRanks(); }
  /// What is in use on a rank at a position of `MemoryUse::aliveBytes`, and what it needs in all.
  int64_t getMemory(int rank, size_t position) const;
  int64_t getMemory(int rank) const { return memory[rank].statistics.totalBytes(); }
  /// Bytes that all ranks receive in a run.
  int64_t getReceivedBytes() const;
  /// The position at which most is in use.
  size_t getPeak(int rank) const;
  /// Ranks that begin and end every step at the same time and need as much memory, in order of the first one of each.
  std::vector<std::vector<int>> getAlikeRanks() const;
};

/// Simulates a program at the end of the phase lower. `memory` stays empty if it is not asked for.
llvm::FailureOr<PredictedRun> predictRun(Compilation &compilation, const Cluster &cluster, int threads,
                                         Diagnostics &diagnostics, bool estimatesMemory = true);

/// A model on a cluster.
struct Prediction {
  std::string model, target;
  Cluster cluster;
  /// Threads of each rank that is a CPU's.
  int threads = 1;
  PredictedRun run;
  /// The same model on the first rank's device alone; none if `run` is that.
  std::optional<PredictedRun> alone;
  /// Weights that are missing, which matters to nothing but runs.
  std::vector<std::string> missingFiles;
  /// Bytes that each rank may take, as the user says; empty where devices alone say it.
  std::vector<double> limits;

  /// How many times as fast as one device, and what share of the devices' number that is; 1 for one device.
  double getSpeedup() const;
  double getEfficiency() const { return getSpeedup() / run.getNumRanks(); }
  /// Bytes that a rank has: as the user says, or its device; 0 where that is not known.
  int64_t getAvailable(int rank) const;
  /// Whether a rank has what it needs; true where it is not known what it has.
  bool fits(int rank) const { return getAvailable(rank) == 0 || run.getMemory(rank) <= getAvailable(rank); }
};

/// Imports `model` and predicts how it runs on the cluster of `options`, with the phases up to `lower` and
/// no code.
llvm::FailureOr<Prediction> predict(const ModelSource &model, CompileOptions options, int threads,
                                    Diagnostics &diagnostics);

/// What a step is, in a few words: `8 x 4096x4096x1024`. Of the rank that takes longest.
std::string describeWork(const PredictedRun &run, size_t step);
/// The rank that takes longest for a step.
int getSlowestRank(const PredictedRun &run, size_t step);
/// `1.25 ms`.
std::string formatSeconds(double seconds);

/// For people.
void printPrediction(const Prediction &prediction, llvm::raw_ostream &os);
/// For programs: `docs/planning.md` says what there is.
nlohmann::json describePrediction(const Prediction &prediction);
/// In the Trace Event Format, for Perfetto.
nlohmann::json tracePrediction(const Prediction &prediction);
/// A page with pictures, without references to anything outside.
void writePredictionPage(const Prediction &prediction, llvm::raw_ostream &os);

} // namespace dovetail

#endif // DOVETAIL_DRIVER_PREDICTION_H
