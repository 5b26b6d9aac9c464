//===- Summary.cpp - What came of a compilation ---------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Summary.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Summary.h"

#include "Expected.h"

#include "dovetail/Driver/Progress.h"
#include "dovetail/Text/Shell.h"
#include "dovetail/Text/SourceName.h"
#include "dovetail/runtime/Schedule.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace dovetail;
using llvm::formatv;
using llvm::StringRef;

/// Tensors whose cuts are named, and pieces that are listed one by one.
static constexpr size_t kMaxNamed = 2, kMaxListed = 8;
/// Inputs that the command of the last line names.
static constexpr size_t kMaxInputs = 4;
/// A simulation of more ranks takes as long as the compilation.
static constexpr int64_t kMaxSimulated = 4096;
/// The memory of more ranks takes long to estimate: that of the first two, of one in the middle and of the last is.
static constexpr int kFewRanks = 8;
/// The prediction for one device alone may take this share of the compilation's processor time, or so many seconds.
static constexpr double kMostAlone = 0.05, kShortAlone = 0.25;
/// More than any machine has stands for no limit.
static constexpr double kNoLimit = 0x1p62;

static std::string makeLine(StringRef head, const std::string &text) {
  return formatv("{0,-10}{1}\n", head, text).str();
}

void Summary::look(Compilation &compilation, Phase phase) {
  if (phase == Phase::Legalize) {
    const CompileOptions &options = compilation.getOptions();
    if (options.autoRanks || options.mesh.numRanks() > 1)
      single = std::make_unique<Compilation>(compilation.fork(makeAlone(options), quiet));
  } else if (phase == Phase::Lower) {
    predict(compilation);
  }
}

void Summary::compareAlone(const Compilation &compilation) {
  std::unique_ptr<Compilation> copy = std::move(single);
  if (!copy || !run || run->getNumRanks() == 1)
    return;
  double all = 0, lowering = 0;
  for (const PhaseTime &time : compilation.getTimes()) {
    all += time.processorSeconds;
    // The phases before it depend on ranks, and take one rank hardly any time.
    if (time.aside.empty() && time.phase == Phase::Lower)
      lowering += time.processorSeconds;
  }
  if (lowering > std::max(kShortAlone, kMostAlone * all))
    return;
  Progress::show("one device alone");
  Progress::Parts parts;
  alone = tryProgram(*copy, *compilation.getOptions().cluster, /*estimatesMemory=*/true);
  if (alone)
    alone->work.dropOperations();
}

void Summary::predict(Compilation &compilation) {
  const CompileOptions &options = compilation.getOptions();
  if (options.mesh.numRanks() > kMaxSimulated)
    return;
  llvm::FailureOr<PredictedRun> predicted =
      predictRun(compilation, *options.cluster, /*threads=*/1, quiet, /*estimatesMemory=*/false);
  if (failed(predicted))
    return;
  run = std::move(*predicted);
  // Operations become machine code.
  run->work.dropOperations();
  int numRanks = run->getNumRanks();
  std::vector<int> ranks = {0, 1, numRanks / 2, numRanks - 1};
  if (numRanks <= kFewRanks)
    ranks.assign(llvm::seq(numRanks).begin(), llvm::seq(numRanks).end());
  runtime::MemoryEstimator estimator(run->plan, /*threads=*/1);
  for (int rank : ranks)
    if (absl::StatusOr<runtime::MemoryUse> use = estimator.estimate(rank); use.ok())
      memory.push_back({rank, use->statistics.totalBytes()});
  cluster = options.cluster->getName();
  limits = compilation.getMemoryLimits();
}

/// `300 | 212 | 256 | 232`, and of many pieces how many there are.
static std::string describePieces(llvm::ArrayRef<layout::Interval> pieces) {
  auto sizes = llvm::map_to_vector(pieces, [](layout::Interval piece) { return piece.size(); });
  auto toText = [](int64_t size) { return std::to_string(size); };
  if (sizes.size() <= kMaxListed)
    return llvm::join(llvm::map_range(sizes, toText), " | ");
  auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  std::string range = *least == *most ? toText(*least) : toText(*least) + " to " + toText(*most);
  return std::to_string(sizes.size()) + " pieces of " + range;
}

std::string Summary::describeCuts() const {
  const runtime::Plan &plan = run->plan;
  if (run->getNumRanks() == 1)
    return "none, one rank has all";
  std::string text;
  size_t count = 0;
  auto addPorts = [&](const std::vector<runtime::PortInfo> &ports) {
    for (const runtime::PortInfo &port : ports)
      for (auto [number, dim] : llvm::enumerate(plan.tensors[port.tensor].sharding.dims)) {
        if (!dim.isSplit() || ++count > kMaxNamed)
          continue;
        text += (text.empty() ? "" : "; ") + text::clean(port.name, text::maxSourceName) + ":" +
                std::to_string(number) + " " + describePieces(dim.pieces) +
                (dim.isCuts(port.shape[number]) ? "" : ", overlapping");
      }
  };
  addPorts(plan.inputs);
  if (text.empty())
    addPorts(plan.outputs);
  if (text.empty())
    return "each rank has all inputs and outputs";
  return count > kMaxNamed ? text + "; ..." : text;
}

std::string Summary::describeExchanges() const {
  const runtime::Plan &plan = run->plan;
  llvm::MapVector<StringRef, size_t> classes;
  size_t count = 0;
  for (const runtime::StepInfo &step : plan.steps) {
    const auto *call = std::get_if<runtime::ExchangeCall>(&step.action);
    if (!call)
      continue;
    ++count;
    // Moves that ranks carry out together are mostly of one class.
    ++classes[layout::stringifyExchangeClass(runtime::MoveScheduler(plan, call->moves.front()).getClass())];
  }
  if (count == 0)
    return "no exchanges";
  std::string kinds;
  for (auto [name, number] : classes)
    kinds += (kinds.empty() ? "" : ", ") + (number < count ? std::to_string(number) + " " : "") + name.str();
  return formatv("{0} exchange{1} a run ({2}), ranks receive {3}", count, count == 1 ? "" : "s", kinds,
                 tools::formatBytes(run->getReceivedBytes()))
      .str();
}

std::string Summary::describeMemory() const {
  if (memory.empty())
    return "not known";
  auto hasLess = [](const auto &a, const auto &b) { return a.second < b.second; };
  auto [least, most] = std::minmax_element(memory.begin(), memory.end(), hasLess);
  bool isEach = run->getNumRanks() > 1 && memory.size() == static_cast<size_t>(run->getNumRanks());
  std::string text = tools::formatBytes(most->second);
  if (least->second == most->second)
    text += isEach ? " on each rank" : "";
  else if (text == tools::formatBytes(least->second))
    text = "about " + text + (isEach ? " on each rank" : "");
  else
    text = "at most " + text + " (rank " + std::to_string(most->first) + "), at least " +
           tools::formatBytes(least->second) + " (rank " + std::to_string(least->first) + ")";
  if (memory.size() < static_cast<size_t>(run->getNumRanks()))
    text += ", of ranks " +
            llvm::join(llvm::map_range(memory, [](const auto &use) { return std::to_string(use.first); }), ", ");
  auto rank = static_cast<size_t>(most->first);
  if (rank < limits.size() && limits[rank] < kNoLimit)
    text += "; rank " + std::to_string(rank) + " may take " + tools::formatBytes(static_cast<int64_t>(limits[rank]));
  if (alone)
    text += "; one device alone " + tools::formatBytes(alone->getMemory(0));
  return text;
}

std::string Summary::describe(StringRef files, int64_t artifactBytes) const {
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::string size = tools::formatBytes(artifactBytes) + formatv(", {0:f1} s", seconds).str();
  std::string start = files.empty() ? "" : files.str() + ": ";
  if (!run)
    return makeLine("compiled", start + size);
  const layout::Mesh &mesh = run->work.mesh;
  std::string ranks =
      run->getNumRanks() == 1 ? "1 rank" : std::to_string(run->getNumRanks()) + " ranks (" + formatMesh(mesh) + ")";
  bool repeats = llvm::any_of(run->plan.steps, [](const runtime::StepInfo &step) {
    return std::holds_alternative<runtime::RepeatCall>(step.action);
  });
  return makeLine("compiled", start + ranks + ", " + size) +
         makeLine("cuts", describeCuts() + (run->getNumRanks() == 1 ? "" : "; " + describeExchanges())) +
         makeLine("memory", describeMemory()) +
         makeLine("predicted",
                  formatSeconds(run->simulation.getSeconds()) + " a run on cluster '" + cluster + "'" +
                      (repeats ? ", with one iteration of each loop" : "") +
                      (alone ? "; one device alone " + formatSeconds(alone->simulation.getSeconds()) : ""));
}

std::string Summary::suggestRun(StringRef path) const {
  std::string command = "dovetail run " + text::quoteForShell(path);
  if (run)
    for (const runtime::PortInfo &input : llvm::ArrayRef(run->plan.inputs).take_front(kMaxInputs)) {
      std::string name = text::clean(input.name, text::maxSourceName);
      command += " --input " + text::quoteForShell(name + "=@" + name + ".npy");
    }
  if (run && run->plan.inputs.size() > kMaxInputs)
    command += " ... and " + std::to_string(run->plan.inputs.size() - kMaxInputs) + " more inputs";
  return makeLine("next", command);
}
