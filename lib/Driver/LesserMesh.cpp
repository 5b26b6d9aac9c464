//===- LesserMesh.cpp - Ranks that do not pay -----------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Looks for ranks without which a program is predicted to be faster.
//
//===----------------------------------------------------------------------===//

#include "LesserMesh.h"

#include "Expected.h"

#include "dovetail/Driver/Prediction.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"

#include <map>
#include <numeric>

using namespace dovetail;
using llvm::FailureOr;

/// Only what takes at most this share of the time is worth saying.
static constexpr double kWorthSaying = 0.95;
/// Of unequal devices, what is expected to take at most so many times as long as all together is made to see.
static constexpr double kWorthTrying = 1.25;
/// The same of following the inputs alone, as that leaves out what estimates know least of.
static constexpr double kWorthFollowing = 2;
/// Ranks that are busy for so little of the time have nothing.
static constexpr double kLittleBusy = 0.1;
/// Kinds of ranks that differ by less are busy for as long.
static constexpr double kMuchSlower = 1.05;
/// Kinds of devices that are told apart, and meshes that are tried.
static constexpr size_t kMaxKinds = 4;
static constexpr size_t kMaxTries = 2;
/// By what axes are divided.
static constexpr int kDivisors[] = {2, 8};

std::string LesserMesh::describe(const layout::Mesh &own) const {
  std::string text = formatSeconds(seconds) + " with '--mesh " + formatMesh(mesh) + "'";
  std::vector<int> first(ranks.size());
  std::iota(first.begin(), first.end(), 0);
  if (ranks != first)
    text += " and only the devices of ranks " + tools::formatRanks(ranks) + " in the cluster's file";
  return text + ", and " + formatSeconds(ownSeconds) + " with '--mesh " + formatMesh(own) + "'";
}

/// Of each rank, what all work takes its device; empty if that is not known, or `maySplit` says that there is no time.
static std::vector<double> findWork(Compilation &unsplit, llvm::function_ref<bool()> maySplit) {
  const CompileOptions &options = unsplit.getOptions();
  std::vector<std::pair<Device, double>> known;
  std::vector<double> work;
  for (int rank = 0, e = options.mesh.numRanks(); rank < e; ++rank) {
    Device device = options.cluster->getDevice(rank).getKind();
    auto same = llvm::find_if(known, [&](const auto &entry) { return entry.first == device; });
    if (same == known.end()) {
      if (known.size() == kMaxKinds || !maySplit())
        return {};
      CompileOptions single = makeAlone(options);
      single.cluster = std::make_shared<const Cluster>("", std::vector<Device>{device}, options.cluster->getLinks());
      std::optional<Expected> expected = tryOptions(unsplit, std::move(single));
      if (!expected || expected->seconds <= 0)
        return {};
      same = known.insert(known.end(), {device, expected->seconds});
    }
    work.push_back(same->second);
  }
  return work;
}

/// The least time for all work, divided evenly among `ranks`.
static double getLeast(llvm::ArrayRef<double> work, llvm::ArrayRef<int> ranks) {
  double speed = 0;
  for (int rank : ranks)
    speed += 1 / work[rank];
  return 1 / speed;
}

/// The ranks that are faster than the slowest ones, than the slowest two kinds, and so on.
static std::vector<std::vector<int>> getFasterRanks(llvm::ArrayRef<double> work) {
  std::vector<double> kinds(work);
  llvm::sort(kinds, std::greater<>());
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  std::vector<std::vector<int>> result;
  for (double slow : llvm::ArrayRef(kinds).drop_back()) {
    std::vector<int> &ranks = result.emplace_back();
    for (auto [rank, own] : llvm::enumerate(work))
      if (own < slow)
        ranks.push_back(static_cast<int>(rank));
  }
  return result;
}

/// `tryProgram` of a copy with options.
static std::optional<PredictedRun> simulate(Compilation &unsplit, CompileOptions options) {
  llvm::raw_null_ostream nowhere;
  Diagnostics quiet(nowhere);
  options = makeAside(std::move(options));
  options.mustFit = false;
  std::shared_ptr<const Cluster> cluster = options.cluster;
  Compilation copy = unsplit.fork(std::move(options), quiet);
  // Settled by then.
  bool isLimited = !copy.getOptions().memory.empty();
  return tryProgram(copy, *cluster, isLimited);
}

/// How many times as long as the average of all that have work each kind of rank is busy in a run that was simulated.
static std::vector<double> correct(const PredictedRun &run, llvm::ArrayRef<double> work) {
  std::map<double, std::pair<double, double>> ofKinds;
  double all = 0, count = 0;
  for (auto [rank, own] : llvm::enumerate(work)) {
    double busy = run.simulation.getRankTime(static_cast<int>(rank)).getBusy();
    if (busy < kLittleBusy * run.simulation.getSeconds())
      continue;
    ofKinds[own].first += busy;
    ofKinds[own].second += 1;
    all += busy;
    count += 1;
  }
  std::vector<double> result;
  for (auto [rank, own] : llvm::enumerate(work)) {
    auto [busy, ranks] = ofKinds[own];
    result.push_back(ranks > 0 ? std::clamp(busy / ranks / (all / count), 0.5, 2.0) : 1);
  }
  return result;
}

void dovetail::divideAmongUnequal(Compilation &unsplit, CompileOptions &chosen) {
  CompileOptions options = chosen;
  options.comparesShares = options.comparesDepartures = false;
  options.memory.clear();
  if (options.mesh.numAxes() != 1)
    return;
  // The program must not depend on how fast this machine is.
  std::vector<double> work = findWork(unsplit, [] { return true; });
  if (work.empty())
    return;
  std::vector<std::vector<int>> faster = getFasterRanks(work);
  if (faster.empty())
    return;
  double least = std::numeric_limits<double>::infinity();
  // If it is faster than all before.
  auto take = [&](const PredictedRun &run) {
    double seconds = run.simulation.getSeconds();
    if (seconds >= least)
      return;
    least = seconds;
    chosen.mostShares = options.mostShares;
    chosen.slowness = options.slowness;
    chosen.follow = options.follow;
  };
  std::optional<PredictedRun> run = simulate(unsplit, options);
  if (!run)
    return;
  take(*run);
  // Ranks that are busy for longer than others have too much.
  options.slowness = correct(*run, work);
  if (*llvm::max_element(options.slowness) > kMuchSlower * *llvm::min_element(options.slowness))
    if ((run = simulate(unsplit, options)))
      take(*run);
  options.slowness = chosen.slowness;
  std::optional<Expected> all = tryOptions(unsplit, options);
  if (!all)
    return;
  // Programs that are expected to take as long are the same one.
  auto tryWorth = [&](double most) {
    std::optional<Expected> some = tryOptions(unsplit, options);
    if (some && some->seconds != all->seconds && some->seconds <= most * all->seconds)
      if ((run = simulate(unsplit, options)))
        take(*run);
  };
  if (!options.shards.empty() && options.follow < 1) {
    options.follow = 1;
    tryWorth(kWorthFollowing);
    options.follow = chosen.follow;
  }
  // Of several that are as fast, one alone exchanges nothing.
  faster.resize(std::min(faster.size(), kMaxTries));
  if (std::vector<int> one = {static_cast<int>(llvm::min_element(work) - work.begin())}; one != faster.back())
    faster.push_back(one);
  for (llvm::ArrayRef<int> ranks : faster) {
    if (getLeast(work, ranks) > kWorthTrying * all->seconds)
      continue;
    options.mostShares.assign(work.size(), 0);
    for (int rank : ranks)
      options.mostShares[rank] = 1;
    tryWorth(kWorthTrying);
    options.mostShares = chosen.mostShares;
  }
}

namespace {
/// Looks for it.
class LesserMeshFinder {
public:
  LesserMeshFinder(Compilation &unsplit, double expectedSeconds)
      : unsplit(unsplit), options(unsplit.getOptions()), expectedSeconds(expectedSeconds) {}

  std::optional<LesserMesh> find(Compilation &lowered, llvm::function_ref<bool()> maySplit,
                                 llvm::function_ref<bool()> mayMake);

private:
  struct Candidate {
    CompileOptions options;
    std::vector<int> ranks;
  };

  void add(size_t axis, int size, std::vector<int> ranks);
  void addCandidates();

  Compilation &unsplit;
  CompileOptions options;
  double expectedSeconds;
  /// By rank.
  std::vector<double> work;
  std::vector<Candidate> candidates;
};
} // namespace

void LesserMeshFinder::add(size_t axis, int size, std::vector<int> ranks) {
  Candidate candidate{options, std::move(ranks)};
  std::vector<layout::MeshAxis> axes = options.mesh.getAxes();
  axes[axis].size = size;
  candidate.options.mesh = layout::Mesh(std::move(axes));
  std::vector<Device> devices;
  std::vector<double> memory;
  for (int rank : candidate.ranks) {
    devices.push_back(options.cluster->getDevice(rank));
    if (!options.memory.empty())
      memory.push_back(options.memory[rank]);
  }
  if (getLeast(work, candidate.ranks) >= kWorthSaying * expectedSeconds ||
      llvm::any_of(candidates, [&](const Candidate &other) {
        return other.ranks == candidate.ranks && other.options.mesh == candidate.options.mesh;
      }))
    return;
  if (!options.cluster->isUniform())
    candidate.options.cluster = std::make_shared<const Cluster>(options.cluster->getName(), std::move(devices),
                                                                options.cluster->getLinks(), candidate.ranks.size());
  candidate.options.memory = std::move(memory);
  candidates.push_back(std::move(candidate));
}

void LesserMeshFinder::addCandidates() {
  int numRanks = options.mesh.numRanks();
  if (options.mesh.numAxes() == 1)
    for (std::vector<int> &ranks : getFasterRanks(work))
      add(0, static_cast<int>(ranks.size()), ranks);
  // The first ranks.
  for (int divisor : kDivisors)
    for (size_t axis = 0; axis < options.mesh.getAxes().size(); ++axis) {
      int all = options.mesh.getAxes()[axis].size, size = std::max(all / divisor, 1);
      if (size == all)
        continue;
      std::vector<int> ranks(numRanks / all * size);
      std::iota(ranks.begin(), ranks.end(), 0);
      add(axis, size, std::move(ranks));
    }
}

std::optional<LesserMesh> LesserMeshFinder::find(Compilation &lowered, llvm::function_ref<bool()> maySplit,
                                                 llvm::function_ref<bool()> mayMake) {
  work = findWork(unsplit, maySplit);
  if (work.empty())
    return std::nullopt;
  addCandidates();
  llvm::raw_null_ostream nowhere;
  Diagnostics quiet(nowhere);
  Candidate *best = nullptr;
  // The best one, which goes on from there; only if nothing else is settled of a program that is made.
  std::unique_ptr<Compilation> split;
  bool goesOn = options.cluster->isUniform() && options.memory.empty();
  double least = (options.cluster->isUniform() ? kWorthSaying : kWorthTrying) * expectedSeconds;
  for (Candidate &candidate : llvm::MutableArrayRef(candidates).take_front(kMaxTries)) {
    if (!maySplit())
      break;
    std::optional<Expected> expected;
    std::unique_ptr<Compilation> copy;
    if (goesOn) {
      copy = std::make_unique<Compilation>(unsplit.fork(makeAside(candidate.options), quiet));
      if (succeeded(copy->runTo(Phase::Propagate)))
        expected = getExpected(copy->getModule());
    } else {
      expected = tryOptions(unsplit, candidate.options);
    }
    if (!expected || expected->seconds >= least)
      continue;
    least = expected->seconds;
    best = &candidate;
    split = std::move(copy);
  }
  if (!best || !mayMake())
    return std::nullopt;
  // Estimates of the search are not predictions for programs.
  std::optional<PredictedRun> lesser =
      split ? tryProgram(*split, *best->options.cluster, /*estimatesMemory=*/false) : simulate(unsplit, best->options);
  FailureOr<PredictedRun> own = predictRun(lowered, *options.cluster, /*threads=*/1, quiet, /*estimatesMemory=*/false);
  if (!lesser || failed(own))
    return std::nullopt;
  for (auto [rank, most] : llvm::enumerate(best->options.memory))
    if (static_cast<double>(lesser->getMemory(static_cast<int>(rank))) > most)
      return std::nullopt;
  double seconds = lesser->simulation.getSeconds(), ownSeconds = own->simulation.getSeconds();
  if (seconds >= kWorthSaying * ownSeconds)
    return std::nullopt;
  return LesserMesh{best->options.mesh, best->ranks, seconds, ownSeconds};
}

std::optional<LesserMesh> dovetail::findLesserMesh(Compilation &unsplit, Compilation &lowered, double expectedSeconds,
                                                   llvm::function_ref<bool()> maySplit,
                                                   llvm::function_ref<bool()> mayMake) {
  return LesserMeshFinder(unsplit, expectedSeconds).find(lowered, maySplit, mayMake);
}
