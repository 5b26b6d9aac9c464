//===- SplitLaunches.cpp - Compute while ranks exchange -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits launches that read a halo: what needs the rank's own part alone need not wait for the exchange. Then splits
// those whose result is sent: what others need of it comes first. What that saves is estimated with the same works of
// steps and traffic of exchanges as predictions are.
//
//===----------------------------------------------------------------------===//

#include "BorderSplitter.h"
#include "StepSplitter.h"
#include "dovetail/Cost/PassCluster.h"

#include "dovetail/Cost/PlanSteps.h"
#include "dovetail/Cost/Simulation.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "dovetail/Schedule/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace dovetail {
#define GEN_PASS_DEF_SPLITLAUNCHES
#include "dovetail/Schedule/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// Goes through a program and splits what is worth it.
class ProgramSplitter {
public:
  /// `cluster`: null if all is split that can be.
  ProgramSplitter(plan::ProgramOp program, layout::Mesh mesh, const Cluster *cluster, ExchangeEngine engine)
      : program(program), mesh(std::move(mesh)), cluster(cluster), engine(engine) {
    if (cluster)
      counter.emplace(program, this->mesh, *cluster, engine);
  }

  LogicalResult run();

private:
  LogicalResult splitReaders();
  LogicalResult splitWriters();
  /// A value of which an exchange brings what ranks lack to where their own parts lie.
  struct Halo {
    Value own;
    plan::ExchangeOp exchange;
  };

  /// Reads, if any, what an exchange brings; null for other reads.
  std::unique_ptr<StepSplitter> createSplitter(plan::StepOpInterface step);
  /// Seconds that exchanges of what `step` reads are still under way, of each rank; empty if none is.
  std::vector<double> getRemaining(plan::StepOpInterface step) const;
  /// False where nothing can be gained, whatever the parts are.
  FailureOr<bool> mayGain(plan::StepOpInterface step, ArrayRef<double> remaining);
  /// Whether the slowest rank is done earlier with `parts`, by more than a step's beginning, where exchanges take so
  /// long still.
  FailureOr<bool> isFaster(plan::StepOpInterface step, ArrayRef<plan::StepOpInterface> parts,
                           ArrayRef<double> remaining);
  /// Seconds that `exchange` takes, on each rank, beyond what steps behind it hide that do not need what it brings.
  FailureOr<std::vector<double>> getUncovered(plan::ExchangeOp exchange);
  /// Whether the slowest rank is done earlier, by more than a step's beginning, if all parts but the last come before
  /// an exchange that takes so long still, instead of the whole step.
  FailureOr<bool> paysBefore(plan::StepOpInterface step, ArrayRef<plan::StepOpInterface> parts,
                             ArrayRef<double> uncovered);
  LogicalResult begin(plan::ExchangeOp exchange);
  /// Exchanges that are under way have gone on meanwhile, or are over where `step` reads what they bring.
  LogicalResult pass(plan::StepOpInterface step);
  double getSeconds(const PlanStep &step, int rank) const {
    return cluster->getDevice(rank).getSeconds(step.getWork(rank));
  }

  plan::ProgramOp program;
  layout::Mesh mesh;
  const Cluster *cluster;
  ExchangeEngine engine;
  /// None without a cluster.
  std::optional<StepCounter> counter;
  SymbolTableCollection symbols;
  DenseMap<Value, Halo> halos;
  /// The keys of `halos` by their buffers.
  DenseMap<Operation *, SmallVector<Value>> halosOf;
  /// Of exchanges that nobody has waited for, if there is a cluster: how long they go on, on each rank.
  llvm::MapVector<plan::ExchangeOp, std::vector<double>> underWay;
};

struct SplitLaunches : dovetail::impl::SplitLaunchesBase<SplitLaunches> {
  using SplitLaunchesBase::SplitLaunchesBase;
  SplitLaunches(SplitLaunchesOptions options, std::shared_ptr<const Cluster> found)
      : SplitLaunchesBase(std::move(options)), found(std::move(found)) {}

  void runOnOperation() override;

  LogicalResult initialize(MLIRContext *context) override { return findCluster(found, cluster, context); }

  std::shared_ptr<const Cluster> found;
};

} // namespace

std::unique_ptr<Pass> dovetail::createSplitLaunches(SplitLaunchesOptions options,
                                                    std::shared_ptr<const Cluster> cluster) {
  return std::make_unique<SplitLaunches>(std::move(options), std::move(cluster));
}

std::unique_ptr<StepSplitter> ProgramSplitter::createSplitter(plan::StepOpInterface step) {
  // What a call reads with accesses comes first; its epilogue reads each element where it writes.
  auto accesses = step->getAttrOfType<ArrayAttr>("reads");
  size_t numReads = accesses ? accesses.size() : step.getStepReads().size();
  SmallVector<Value> own = llvm::map_to_vector(ArrayRef(step.getStepReads()).take_front(numReads),
                                               [&](Value read) { return halos.lookup(read).own; });
  auto isOver = [&](Value written) {
    return llvm::any_of(step.getStepReads(),
                        [&](Value read) { return plan::getBufferOp(read) == plan::getBufferOp(written); });
  };
  if (llvm::all_of(own, [](Value source) { return source == nullptr; }) || llvm::any_of(step.getStepWrites(), isOver))
    return nullptr;
  if (accesses) {
    auto result = cast<plan::RefType>(step.getStepWrites()[0].getType()).getTensor();
    return createCallSplitter(step, result.getRank(), mesh, program.getMeshAttr(), std::move(own));
  }
  auto launch = dyn_cast<plan::LaunchOp>(*step);
  if (!launch || launch.getChecks())
    return nullptr;
  auto kernel = symbols.lookupNearestSymbolFrom<plan::KernelOp>(program, launch.getKernelAttr());
  if (kernel.getInPlace())
    return nullptr;
  return createLaunchSplitter(launch, kernel, mesh, program.getMeshAttr(), std::move(own));
}

std::vector<double> ProgramSplitter::getRemaining(plan::StepOpInterface step) const {
  std::vector<double> remaining;
  for (Value read : step.getStepReads())
    if (auto found = underWay.find(halos.lookup(read).exchange); found != underWay.end()) {
      remaining.resize(mesh.numRanks());
      for (auto [most, seconds] : llvm::zip_equal(remaining, found->second))
        most = std::max(most, seconds);
    }
  return remaining;
}

FailureOr<bool> ProgramSplitter::mayGain(plan::StepOpInterface step, ArrayRef<double> remaining) {
  if (remaining.empty())
    return false;
  FailureOr<PlanStep> whole = counter->get(step);
  if (failed(whole))
    return failure();
  // At best all of the shorter one is hidden, but for the beginning of a boundary.
  double most = 0;
  for (int rank = 0; rank < mesh.numRanks(); ++rank)
    most = std::max(most, std::min(remaining[rank], getSeconds(*whole, rank)));
  return most > 2 * cluster->getDevice(0).stepSeconds;
}

FailureOr<bool> ProgramSplitter::isFaster(plan::StepOpInterface step, ArrayRef<plan::StepOpInterface> parts,
                                          ArrayRef<double> remaining) {
  FailureOr<PlanStep> whole = counter->get(step);
  if (failed(whole))
    return failure();
  std::vector<double> before, after;
  for (int rank = 0; rank < mesh.numRanks(); ++rank)
    before.push_back(remaining[rank] + getSeconds(*whole, rank));
  for (auto [number, part] : llvm::enumerate(parts)) {
    FailureOr<PlanStep> work = counter->get(part);
    if (failed(work))
      return failure();
    for (int rank = 0; rank < mesh.numRanks(); ++rank) {
      double seconds = getSeconds(*work, rank);
      if (number == 0)
        after.push_back(std::max(remaining[rank], seconds));
      else
        after[rank] += seconds;
    }
  }
  // Predictions do not tell less than what it takes to begin a step.
  return *llvm::max_element(after) + cluster->getDevice(0).stepSeconds < *llvm::max_element(before);
}

LogicalResult ProgramSplitter::begin(plan::ExchangeOp exchange) {
  bool bringsHalos = false;
  for (auto [move, source, target] : llvm::enumerate(exchange.getSources(), exchange.getTargets()))
    if (exchange.keepsSource(move) && getSharding(cast<plan::RefType>(source.getType()).getTensor())) {
      halos[target] = {source, exchange};
      halosOf[plan::getBufferOp(target)].push_back(target);
      bringsHalos = true;
    }
  if (!counter || !bringsHalos)
    return success();
  FailureOr<PlanStep> step = counter->get(exchange);
  if (failed(step))
    return failure();
  std::vector<double> seconds;
  for (int rank = 0; rank < mesh.numRanks(); ++rank)
    seconds.push_back(getAsideSeconds(*step->traffic, *cluster, engine, rank));
  underWay[exchange] = std::move(seconds);
  return success();
}

LogicalResult ProgramSplitter::pass(plan::StepOpInterface step) {
  for (Value read : step.getStepReads())
    underWay.erase(halos.lookup(read).exchange);
  underWay.remove_if([](const auto &entry) { return *llvm::max_element(entry.second) == 0; });
  if (underWay.empty())
    return success();
  FailureOr<PlanStep> work = counter->get(step);
  if (failed(work))
    return failure();
  if (work->kind == PlanStep::Kind::Compute)
    for (auto &[exchange, seconds] : underWay)
      for (int rank = 0; rank < mesh.numRanks(); ++rank)
        seconds[rank] = std::max(seconds[rank] - getSeconds(*work, rank), 0.0);
  return success();
}

LogicalResult ProgramSplitter::splitReaders() {
  for (Operation &op : llvm::make_early_inc_range(*program.getBlock())) {
    auto step = dyn_cast<plan::StepOpInterface>(op);
    if (!step)
      continue;
    // There nothing is under way.
    if (plan::isBoundary(step)) {
      halos.clear();
      halosOf.clear();
      underWay.clear();
    }
    // What is in `halos` nobody has written to since the exchange.
    for (Value written : step.getStepWrites())
      if (auto entry = halosOf.find(plan::getBufferOp(written)); entry != halosOf.end()) {
        for (Value target : entry->second)
          halos.erase(target);
        halosOf.erase(entry);
      }
    if (auto exchange = dyn_cast<plan::ExchangeOp>(op)) {
      if (failed(begin(exchange)))
        return failure();
      continue;
    }
    std::vector<double> remaining = getRemaining(step);
    FailureOr<bool> mayPay = counter ? mayGain(step, remaining) : FailureOr<bool>(true);
    if (failed(mayPay))
      return failure();
    SmallVector<plan::StepOpInterface> parts;
    if (std::unique_ptr<StepSplitter> splitter = *mayPay ? createSplitter(step) : nullptr)
      parts = splitter->split();
    FailureOr<bool> isWorthIt = counter && !parts.empty() ? isFaster(step, parts, remaining) : FailureOr<bool>(true);
    if (failed(isWorthIt) || failed(pass(step)))
      return failure();
    if (parts.empty())
      continue;
    if (*isWorthIt)
      step->erase();
    else
      llvm::for_each(parts, [](plan::StepOpInterface part) { part->erase(); });
  }
  return success();
}

/// The step before or behind `op`; null if there is none.
static plan::StepOpInterface getStep(Operation *op, bool isBehind) {
  do
    op = isBehind ? op->getNextNode() : op->getPrevNode();
  while (op && !isa<plan::StepOpInterface>(op));
  return dyn_cast_if_present<plan::StepOpInterface>(op);
}

FailureOr<std::vector<double>> ProgramSplitter::getUncovered(plan::ExchangeOp exchange) {
  FailureOr<PlanStep> whole = counter->get(exchange);
  if (failed(whole))
    return failure();
  std::vector<double> seconds;
  for (int rank = 0; rank < mesh.numRanks(); ++rank)
    seconds.push_back(getAsideSeconds(*whole->traffic, *cluster, engine, rank));
  auto isNeeded = [&](Value ref) {
    return llvm::any_of(exchange.getTargets(),
                        [&](Value target) { return plan::getBufferOp(ref) == plan::getBufferOp(target); }) &&
           !llvm::is_contained(exchange.getSources(), ref);
  };
  for (auto step = getStep(exchange, /*isBehind=*/true);
       step && !plan::isBoundary(step) && llvm::none_of(step.getStepReads(), isNeeded) &&
       llvm::none_of(step.getStepWrites(), isNeeded) && *llvm::max_element(seconds) > 0;
       step = getStep(step, /*isBehind=*/true)) {
    FailureOr<PlanStep> work = counter->get(step);
    if (failed(work))
      return failure();
    for (int rank = 0; work->kind == PlanStep::Kind::Compute && rank < mesh.numRanks(); ++rank)
      seconds[rank] = std::max(seconds[rank] - getSeconds(*work, rank), 0.0);
  }
  return seconds;
}

FailureOr<bool> ProgramSplitter::paysBefore(plan::StepOpInterface step, ArrayRef<plan::StepOpInterface> parts,
                                            ArrayRef<double> uncovered) {
  FailureOr<PlanStep> whole = counter->get(step);
  if (failed(whole))
    return failure();
  std::vector<double> before, after(mesh.numRanks());
  for (int rank = 0; rank < mesh.numRanks(); ++rank)
    before.push_back(getSeconds(*whole, rank) + uncovered[rank]);
  for (plan::StepOpInterface part : parts) {
    FailureOr<PlanStep> work = counter->get(part);
    if (failed(work))
      return failure();
    for (int rank = 0; rank < mesh.numRanks(); ++rank) {
      double seconds = getSeconds(*work, rank);
      after[rank] += part == parts.back() ? std::max(seconds, uncovered[rank]) : seconds;
    }
  }
  return *llvm::max_element(after) + cluster->getDevice(0).stepSeconds < *llvm::max_element(before);
}

LogicalResult ProgramSplitter::splitWriters() {
  for (auto exchange : llvm::make_early_inc_range(program.getBlock()->getOps<plan::ExchangeOp>())) {
    // Other readers of what the step before writes would come before its interior, and so would a second exchange.
    plan::StepOpInterface step = getStep(exchange, /*isBehind=*/false), next = getStep(exchange, /*isBehind=*/true);
    if (!step || !step->hasAttr("loops") || !next || isa<plan::ExchangeOp>(*next))
      continue;
    // A part of a step that reads a halo itself: its interior has come where it hides the exchange of that.
    if (auto other = getStep(step, /*isBehind=*/false); other && other.getStepWrites() == step.getStepWrites())
      continue;
    std::vector<double> uncovered;
    if (counter) {
      FailureOr<std::vector<double>> found = getUncovered(exchange);
      if (failed(found))
        return failure();
      FailureOr<bool> mayPay = mayGain(step, *found);
      if (failed(mayPay))
        return failure();
      if (!*mayPay)
        continue;
      uncovered = std::move(*found);
    }
    SmallVector<plan::StepOpInterface> parts = splitBorders(step, exchange, mesh, symbols);
    if (parts.empty())
      continue;
    FailureOr<bool> isWorthIt = counter ? paysBefore(step, parts, uncovered) : FailureOr<bool>(true);
    if (failed(isWorthIt))
      return failure();
    if (*isWorthIt) {
      parts.back()->moveAfter(exchange);
      step->erase();
    } else {
      llvm::for_each(parts, [](plan::StepOpInterface part) { part->erase(); });
    }
  }
  return success();
}

LogicalResult ProgramSplitter::run() {
  // What readers compute meanwhile hides an exchange at no cost for those who write, so it comes first.
  return failure(failed(splitReaders()) || failed(splitWriters()));
}

void SplitLaunches::runOnOperation() {
  for (auto program : getOperation().getOps<plan::ProgramOp>()) {
    auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr());
    if (!mesh) {
      program.emitOpError("is over ") << program.getMeshAttr() << ", which is not a dovetail.mesh";
      return signalPassFailure();
    }
    if (failed(ProgramSplitter(program, mesh.getMesh(), always ? nullptr : found.get(), engine).run()))
      return signalPassFailure();
  }
}
