//===- PlanSteps.h - What ranks do in the steps of a program ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares PlanSteps: what each rank computes in each step of a program, and what ranks send each other.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_PLANSTEPS_H
#define DOVETAIL_COST_PLANSTEPS_H

#include "dovetail/Cost/ExchangeTiming.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"

#include <memory>

namespace dovetail {

/// What ranks send each other in an exchange. The same for all exchanges of values that lie alike.
struct ExchangeTraffic {
  /// What a rank gets from one other.
  struct Pull {
    int source;
    unsigned link; ///< Number of the cluster's link.
    double bytes;
  };

  size_t numLinks = 0;
  /// By rank, then by link of the cluster.
  std::vector<LinkTraffic> links;
  /// Of each rank, what it copies within its own memory.
  std::vector<double> localBytes;
  /// Of each rank, whom it gets messages from, in the order of `Threads`: the ranks after it first. Empty for a
  /// collective by a library.
  std::vector<std::vector<Pull>> pulls;
  /// Ranks that have a collective together, and for each rank the number of its group; -1 if it has none.
  std::vector<std::vector<int>> groups;
  std::vector<int> groupOf;

  const LinkTraffic &get(int rank, size_t link) const { return links[rank * numLinks + link]; }
  bool isCollective() const { return !groups.empty(); }
  /// Bytes that all ranks receive, and over links of number `link`.
  double getBytes() const;
  double getBytes(size_t link) const;
};

/// One step of a program.
struct PlanStep {
  enum class Kind { Compute, Exchange, Wait };

  Kind kind = Kind::Compute;
  /// What reports call it, and what `inspect` calls its kind: `kernel`, `matmul`, `exchange`.
  std::string name, type;
  mlir::Operation *op = nullptr;
  /// Of `Compute`: what ranks do, each once, and of each rank which of these that is. The first one is nothing.
  std::vector<StepWork> works;
  std::vector<unsigned> workOf;
  /// Of `Exchange`.
  std::shared_ptr<const ExchangeTraffic> traffic;
  /// Of `Wait`: numbers of steps that are complete on a rank, and of those whose sources others have read.
  std::vector<unsigned> complete, read;

  const StepWork &getWork(int rank) const { return works[workOf[rank]]; }
};

/// The steps of a run, without the prologue.
struct PlanSteps {
  layout::Mesh mesh;
  ExchangeEngine engine = ExchangeEngine::Threads;
  std::vector<PlanStep> steps;

  /// For work that outlives its program: steps do not refer to their operations any more.
  void dropOperations() {
    for (PlanStep &step : steps)
      step.op = nullptr;
  }
};

/// Finds the work of steps of one program, once for kernels, values and exchanges that are alike.
class StepCounter {
public:
  /// `cluster` and what `program` uses outlive it.
  StepCounter(plan::ProgramOp program, layout::Mesh mesh, const Cluster &cluster, ExchangeEngine engine);
  ~StepCounter();

  /// The work of a step whose exchanges, if it is one, have been chosen. Fails after an error.
  mlir::FailureOr<PlanStep> get(plan::StepOpInterface op);

private:
  class Counter;
  std::unique_ptr<Counter> counter;
};

/// Finds the work of `program`, whose exchanges have been chosen, over the links of `cluster`. Fails after an error.
mlir::FailureOr<PlanSteps> getPlanSteps(plan::ProgramOp program, const Cluster &cluster, ExchangeEngine engine);

} // namespace dovetail

#endif // DOVETAIL_COST_PLANSTEPS_H
