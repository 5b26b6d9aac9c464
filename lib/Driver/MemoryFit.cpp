//===- MemoryFit.cpp - Programs that fit into memory ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tries how much memory the search may count on, on copies of a compilation.
//
//===----------------------------------------------------------------------===//

#include "MemoryFit.h"

#include "Expected.h"
#include "RankMemory.h"

#include "dovetail/Artifact/Writer.h"
#include "dovetail/Driver/Autotune.h"
#include "dovetail/Driver/Pipeline.h"
#include "dovetail/runtime/Session.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"

using namespace dovetail;
using llvm::ArrayRef;
using llvm::FailureOr;
using llvm::Twine;

/// Programs that are made to find one that fits; of many ranks, which take longer, fewer.
static constexpr int kMaxTries = 5;
static constexpr int kMaxTriesOfMany = 3;
/// More that are made, of few ranks, to find one that fits and is better.
static constexpr int kRefinements = 2;
static constexpr int kManyRanks = 64;
/// More ranks are not looked for.
static constexpr int64_t kMostRanks = 1 << 14;
/// Nor are they where twice as many have left more than this share of what a rank takes, twice in a row.
static constexpr double kLittleLess = 0.9;
/// Where to divide weights for good suffices, they are gathered if that is expected to cost at most this share:
/// libraries cannot pack what is gathered once and for all, which estimates do not know.
static constexpr double kGatheredShare = 0.8;
/// Unequal pieces that make it fit are taken at once if that is expected to cost at most this share of all.
static constexpr double kLittleMore = 1.1;

/// The same mesh with another number of ranks along its largest axis.
static layout::Mesh withSize(const layout::Mesh &mesh, int64_t size) {
  std::vector<layout::MeshAxis> axes = mesh.getAxes();
  auto largest =
      std::max_element(axes.begin(), axes.end(), [](const auto &a, const auto &b) { return a.size < b.size; });
  largest->size = static_cast<int>(size);
  return layout::Mesh(std::move(axes));
}

namespace {
/// Options, and what the search expects at most with them of a program that fits.
struct Allowance {
  CompileOptions options;
  double memory;
};
} // namespace

/// The smallest mesh with more ranks along one axis on which what the search expects is not more than one of
/// `allowances` says.
static std::optional<layout::Mesh> findFittingMesh(Compilation &compilation, std::vector<Allowance> allowances) {
  layout::Mesh mesh = allowances.front().options.mesh;
  // As a part of what it may take.
  auto getShare = [&](int64_t size) {
    double least = std::numeric_limits<double>::infinity();
    for (Allowance &allowance : allowances) {
      allowance.options.mesh = withSize(mesh, size);
      if (std::optional<Expected> expected = tryOptions(compilation, allowance.options))
        least = std::min(least, expected->memory / allowance.memory);
    }
    return least;
  };
  int64_t tooSmall = 1;
  for (const layout::MeshAxis &axis : mesh.getAxes())
    tooSmall = std::max<int64_t>(tooSmall, axis.size);
  int64_t others = mesh.numRanks() / tooSmall;
  int64_t most = std::min(kMostRanks, compilation.getOptions().cluster->getNumRanks().value_or(kMostRanks)) / others;
  int64_t enough = tooSmall;
  double needed = std::numeric_limits<double>::infinity();
  for (int wasted = 0; needed > 1;) {
    tooSmall = enough;
    enough = std::min(2 * enough, most);
    if (enough <= tooSmall)
      return std::nullopt;
    double less = getShare(enough);
    wasted = less > kLittleLess * needed ? wasted + 1 : 0;
    if (wasted == 2)
      return std::nullopt;
    needed = less;
  }
  while (enough - tooSmall > 1) {
    int64_t middle = (tooSmall + enough) / 2;
    (getShare(middle) <= 1 ? enough : tooSmall) = middle;
  }
  return withSize(mesh, enough);
}

/// What each rank has: more than any machine where there is no limit, so that ranks can be compared.
static std::vector<double> getLimits(const CompileOptions &options) {
  return options.memory.empty() ? std::vector<double>(options.mesh.numRanks(), 0x1p62) : options.memory;
}

namespace {
/// A program that was made to see what it takes.
struct Attempt {
  CompileOptions options;
  Expected expected;
  runtime::Plan plan;
  RankMemory most;
};

/// Makes programs of a compilation, each of which knows more of what it may take, until one fits.
class MemoryFitter {
public:
  MemoryFitter(Compilation &compilation, Diagnostics &diagnostics)
      : compilation(compilation), diagnostics(diagnostics), limits(getLimits(compilation.getOptions())),
        mostTries(compilation.getOptions().mesh.numRanks() > kManyRanks ? kMaxTriesOfMany : kMaxTries) {}

  FailureOr<CompileOptions> fit();

private:
  FailureOr<Attempt> make(CompileOptions options);
  /// Of `attempt` and the programs that another objective than its own gives, the one that takes least memory: the
  /// search, which knows no arena, may be wrong about that.
  FailureOr<Attempt> tryObjectives(Attempt attempt);
  /// Makes programs with `options` until one fits, the last one to take least memory; of them, the one that takes
  /// least. `attempt` does not fit. `estimateNeed` says, after a program, what the search may expect of one that fits.
  FailureOr<Attempt> tryUntilFits(Attempt attempt, CompileOptions options,
                                  llvm::function_ref<double(const Attempt &)> estimateNeed);
  /// Looks between `fitting` and `failing`, of which one was allowed too little and the other too much, for one that
  /// fits and is better.
  FailureOr<Attempt> refine(Attempt fitting, double failing);
  /// The same with smaller pieces for ranks with less memory, and larger ones for others.
  FailureOr<Attempt> divideUnequally(Attempt attempt);
  /// The same with weights as steps need them.
  FailureOr<Attempt> split(Attempt attempt);
  /// The same with weights that may be stored in pieces.
  FailureOr<Attempt> gather(Attempt attempt);
  llvm::LogicalResult refuse(const Attempt &first, const Attempt &least, double limit);

  Compilation &compilation;
  Diagnostics &diagnostics;
  /// What each rank has.
  const std::vector<double> limits;
  int mostTries;
};
} // namespace

FailureOr<Attempt> MemoryFitter::make(CompileOptions options) {
  // What is to be said of the program that is taken is said when that is compiled.
  Diagnostics::ErrorsOnly errorsOnly(diagnostics);
  CompileOptions bound = options;
  // Whatever measurements are going to say, it must fit: these weights take most.
  if (std::exchange(bound.autotuneThreads, 0) > 0)
    bound.algorithms = {listAlgorithms().front()};
  Compilation copy = compilation.fork(std::move(bound), diagnostics);
  if (failed(copy.runTo(Phase::Propagate)))
    return llvm::failure();
  Expected expected = getExpected(copy.getModule());
  if (failed(copy.runTo(Phase::Lower)))
    return llvm::failure();
  FailureOr<runtime::Plan> plan = describeProgram(copy.getModule());
  if (failed(plan))
    return llvm::failure();
  // A few ranks mostly say that it does not fit.
  FailureOr<RankMemory> most = getMost(*plan, limits, std::max(options.mesh.numRanks() / kManyRanks, 1));
  if (succeeded(most) && most->fits())
    most = getMost(*plan, limits);
  if (failed(most))
    return diagnostics.error(
        ExitCode::Unsupported,
        "the memory of this program cannot be computed; leave out --memory and '--objective memory'");
  return Attempt{std::move(options), expected, std::move(*plan), *most};
}

FailureOr<Attempt> MemoryFitter::tryObjectives(Attempt attempt) {
  Attempt least = attempt;
  for (Objective objective : {Objective::Time, Objective::Bytes, Objective::Memory}) {
    if (objective == attempt.options.objective)
      continue;
    CompileOptions options = attempt.options;
    options.objective = objective;
    // Where memory is to be least, weights are not transformed to larger ones, whatever else is.
    options.mayTransform &= attempt.options.objective != Objective::Memory;
    FailureOr<Attempt> other = make(std::move(options));
    if (failed(other))
      return llvm::failure();
    if (other->most.getShare() < least.most.getShare())
      least = std::move(*other);
  }
  return least;
}

FailureOr<Attempt> MemoryFitter::tryUntilFits(Attempt attempt, CompileOptions options,
                                              llvm::function_ref<double(const Attempt &)> estimateNeed) {
  Attempt least = attempt;
  double failing = 0;
  for (int tries = 1; tries < mostTries && !attempt.most.fits(); ++tries) {
    failing = attempt.expected.memory;
    double allowed = std::min(options.searchMemory.value_or(attempt.expected.memory), estimateNeed(attempt)) *
                     (tries > 1 ? 0.95 : 1.0);
    options.searchMemory = std::max(allowed, 1.0);
    if (tries + 1 == mostTries) {
      options.objective = Objective::Memory;
      options.gathersAhead = false;
    }
    FailureOr<Attempt> next = make(options);
    if (failed(next))
      return llvm::failure();
    attempt = std::move(*next);
    if (attempt.most.getShare() < least.most.getShare())
      least = attempt;
  }
  return least.most.fits() ? refine(std::move(least), failing) : std::move(least);
}

FailureOr<Attempt> MemoryFitter::refine(Attempt fitting, double failing) {
  const CompileOptions &wanted = compilation.getOptions();
  int most = mostTries == kMaxTries ? kRefinements : 0;
  for (int tries = 0; tries < most && fitting.expected.memory < failing; ++tries) {
    CompileOptions options = fitting.options;
    options.objective = wanted.objective;
    options.gathersAhead = wanted.gathersAhead;
    options.searchMemory = (fitting.expected.memory + failing) / 2;
    FailureOr<Attempt> next = make(options);
    if (failed(next))
      return llvm::failure();
    if (!next->most.fits())
      failing = next->expected.memory;
    else if (next->expected.get(wanted.objective) < fitting.expected.get(wanted.objective))
      fitting = std::move(*next);
    else
      break;
  }
  return fitting;
}

FailureOr<Attempt> MemoryFitter::divideUnequally(Attempt attempt) {
  Attempt least = attempt;
  for (int tries = 1; tries < mostTries && !attempt.most.fits(); ++tries) {
    FailureOr<std::vector<double>> shares = getMostShares(attempt.plan, limits);
    if (failed(shares))
      return attempt;
    CompileOptions options = attempt.options;
    // What did not suffice is not tried again.
    if (!options.mostShares.empty())
      for (auto [share, before] : llvm::zip_equal(*shares, options.mostShares))
        share = std::min(share, tries > 2 ? 0.95 * before : before);
    if (*shares == options.mostShares)
      break;
    options.mostShares = std::move(*shares);
    FailureOr<Attempt> next = make(std::move(options));
    if (failed(next))
      return llvm::failure();
    attempt = std::move(*next);
    if (attempt.most.getShare() < least.most.getShare())
      least = attempt;
  }
  return least;
}

FailureOr<Attempt> MemoryFitter::split(Attempt attempt) {
  CompileOptions options = attempt.options;
  options.mayGather = false;
  // The search does not know what will share memory: how much more or less its estimate is, programs tell.
  return tryUntilFits(std::move(attempt), std::move(options),
                      [&](const Attempt &last) { return last.expected.memory / last.most.getShare(); });
}

FailureOr<Attempt> MemoryFitter::gather(Attempt attempt) {
  CompileOptions options = attempt.options;
  options.mayGather = true;
  // As long as ranks have all weights as they need them, libraries may pack them; the search counts that from now on.
  options.searchWeightFactor = attempt.most.weightFactor;
  attempt.expected.memory += (attempt.most.weightFactor - 1) * attempt.expected.weights;
  // What it does not count, such as scratch memory, is mostly the same however weights are stored.
  return tryUntilFits(std::move(attempt), std::move(options),
                      [&](const Attempt &last) { return last.expected.memory - (last.most.bytes - last.most.limit); });
}

llvm::LogicalResult MemoryFitter::refuse(const Attempt &first, const Attempt &least, double limit) {
  // How much more or less than the search expects a program takes depends on how it is split: one that takes less than
  // others says it of programs like it. It says nothing where so much comes on top that no memory is left to expect.
  std::vector<Allowance> allowances = {{first.options, first.expected.memory / first.most.getShare()}};
  if (limit > 0 && least.most.getShare() < kLittleLess * first.most.getShare()) {
    allowances.push_back({least.options, limit});
    allowances.back().options.objective = Objective::Memory;
  }
  for (Allowance &allowance : allowances) {
    allowance.options.searchMemory.reset();
    allowance.options.mostShares.clear();
    allowance.options.slowness.clear();
  }
  std::optional<layout::Mesh> fitting = findFittingMesh(compilation, std::move(allowances));
  std::string advice =
      fitting
          ? ("'--mesh " + formatMesh(*fitting) + "', of " + Twine(fitting->numRanks()) + " ranks, is expected to do")
                .str()
          : "no mesh with more ranks along one axis is expected to do";
  return diagnostics.error(ExitCode::DoesNotFit,
                           "the program does not fit: rank " + Twine(least.most.rank) + " needs " +
                               tools::formatBytes(static_cast<int64_t>(least.most.bytes)) + ", and has " +
                               tools::formatBytes(static_cast<int64_t>(least.most.limit)) + "; " + advice +
                               "; most room is taken by " + listLargest(least.plan, least.most.rank));
}

FailureOr<CompileOptions> MemoryFitter::fit() {
  CompileOptions options = compilation.getOptions();
  Objective objective = options.objective;
  options.memory.clear();
  options.explain = false;
  options.advises = options.comparesShares = options.comparesDepartures = false;
  options.comparesMemory = false;
  FailureOr<Attempt> first = make(options);
  if (failed(first))
    return llvm::failure();
  auto accept = [&](const Attempt &attempt) {
    CompileOptions accepted = attempt.options;
    accepted.explain = compilation.getOptions().explain;
    accepted.comparesDepartures = compilation.getOptions().comparesDepartures;
    return accepted;
  };
  if (objective == Objective::Memory && options.mesh.numRanks() > 1) {
    FailureOr<Attempt> least = tryObjectives(*first);
    if (failed(least))
      return llvm::failure();
    if (least->options.objective != objective)
      diagnostics.remark(
          Twine("--objective memory: split for ") + (least->options.objective == Objective::Time ? "time" : "bytes") +
          ", the program takes less: " + tools::formatBytes(static_cast<int64_t>(least->most.bytes)) +
          " on the rank that takes most, and not " + tools::formatBytes(static_cast<int64_t>(first->most.bytes)));
    first = std::move(least);
    options = first->options;
  }
  if (first->most.fits())
    return accept(*first);
  // Ranks that make it slower may have memory.
  if (!options.mostShares.empty()) {
    options.mostShares.clear();
    first = make(options);
    if (failed(first))
      return llvm::failure();
    if (first->most.fits())
      return accept(*first);
  }
  // Equal ranks have equal pieces.
  std::optional<Attempt> unequal;
  auto tryUnequal = [&] {
    if (llvm::all_equal(limits) && options.cluster->isUniform())
      return llvm::success();
    FailureOr<Attempt> found = divideUnequally(*first);
    if (failed(found))
      return llvm::failure();
    if (found->most.getShare() < first->most.getShare())
      unequal = std::move(*found);
    return llvm::success();
  };
  auto isBest = [&](const Attempt &attempt, ArrayRef<const Attempt *> others) {
    return attempt.most.fits() && llvm::none_of(others, [&](const Attempt *other) {
             return other->most.fits() && other->expected.get(objective) < attempt.expected.get(objective);
           });
  };
  if (failed(tryUnequal()))
    return llvm::failure();
  if (unequal && unequal->most.fits() &&
      unequal->expected.get(objective) <= kLittleMore * first->expected.get(objective))
    return accept(*unequal);
  if (hasAlgorithms(options)) {
    options.mayTransform = false;
    first = make(options);
    if (failed(first))
      return llvm::failure();
    if (first->most.fits())
      return accept(unequal && isBest(*unequal, &*first) ? *unequal : *first);
    if (!(unequal && unequal->most.fits()) && failed(tryUnequal()))
      return llvm::failure();
  }
  FailureOr<Attempt> whole = split(*first);
  if (failed(whole))
    return llvm::failure();
  FailureOr<Attempt> pieces = gather(*first);
  if (failed(pieces))
    return llvm::failure();
  if (unequal && isBest(*unequal, {&*whole, &*pieces}))
    return accept(*unequal);
  // Unequal pieces may be what is missing.
  if (unequal && !whole->most.fits() && !pieces->most.fits()) {
    whole = split(*unequal);
    if (failed(whole))
      return llvm::failure();
    pieces = gather(*unequal);
    if (failed(pieces))
      return llvm::failure();
  }
  bool isWhole = whole->most.fits() && (!pieces->most.fits() || kGatheredShare * whole->expected.get(objective) <=
                                                                    pieces->expected.get(objective));
  if (isWhole || pieces->most.fits())
    return accept(isWhole ? *whole : *pieces);
  // Before it is refused, whether what the search expects of memory was wrong.
  if (objective != Objective::Memory && options.mesh.numRanks() > 1) {
    FailureOr<Attempt> least = tryObjectives(*first);
    if (failed(least))
      return llvm::failure();
    if (least->most.fits())
      return accept(*least);
  }
  if (!options.mustFit) {
    options = compilation.getOptions();
    options.memory.clear();
    options.comparesMemory = false;
    if (objective == Objective::Memory)
      options.objective = first->options.objective;
    return options;
  }
  bool isLess = whole->most.getShare() < pieces->most.getShare();
  return isLess ? refuse(*first, *whole, whole->expected.memory / whole->most.getShare())
                : refuse(*first, *pieces, pieces->expected.memory - (pieces->most.bytes - pieces->most.limit));
}

FailureOr<CompileOptions> dovetail::fitMemory(Compilation &compilation, Diagnostics &diagnostics) {
  return MemoryFitter(compilation, diagnostics).fit();
}
