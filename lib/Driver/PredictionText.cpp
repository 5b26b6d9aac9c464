//===- PredictionText.cpp - Predictions for people ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Prints predictions as tables.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Prediction.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using namespace dovetail;
using llvm::formatv;

using Rows = std::vector<std::vector<std::string>>;

static constexpr size_t kMaxRows = 12;

/// Nothing is no part of nothing.
static std::string percent(double part, double whole = 1) {
  return formatv("{0:f1} %", whole > 0 ? 100 * part / whole : 0).str();
}

static std::string formatBytes(double bytes) { return tools::formatBytes(static_cast<int64_t>(bytes)); }

/// The steps of these kinds that take longest, longest first.
static std::vector<size_t> getSlowest(const PredictedRun &run, llvm::ArrayRef<PlanStep::Kind> kinds) {
  std::vector<size_t> steps;
  for (size_t step = 0; step < run.work.steps.size(); ++step)
    if (llvm::is_contained(kinds, run.work.steps[step].kind) && run.simulation.getSeconds(step) > 0)
      steps.push_back(step);
  std::vector<double> seconds(run.work.steps.size());
  for (size_t step : steps)
    seconds[step] = run.simulation.getSeconds(step);
  llvm::sort(steps, [&](size_t a, size_t b) { return std::pair(-seconds[a], a) < std::pair(-seconds[b], b); });
  return steps;
}

static void printRest(size_t count, llvm::raw_ostream &os) {
  if (count > kMaxRows)
    os << "  ... and " << count - kMaxRows << " more\n";
}

static void printHead(const Prediction &prediction, llvm::raw_ostream &os) {
  const PredictedRun &run = prediction.run;
  double seconds = run.simulation.getSeconds();
  int ranks = run.getNumRanks();
  std::string links;
  for (const Link &link : prediction.cluster.getLinks())
    links +=
        (links.empty() ? "" : ", ") + link.name +
        (link.groupSize ? " among " + std::to_string(link.groupSize) : std::string(links.empty() ? "" : " beyond"));
  Rows rows = {
      {"model", prediction.model},
      {"cluster", prediction.cluster.getName() + " (" + links + "), target " + prediction.target},
      {"mesh", formatMesh(run.work.mesh) + (ranks == 1 ? ", 1 rank" : ", " + std::to_string(ranks) + " ranks")},
      {"predicted time", formatSeconds(seconds)}};
  if (prediction.alone) {
    rows.push_back({"one device alone", formatSeconds(prediction.alone->simulation.getSeconds()) + ", with " +
                                            formatBytes(double(prediction.alone->getMemory(0))) + " of memory"});
    rows.push_back(
        {"speedup",
         formatv("{0:f2}, efficiency {1}", prediction.getSpeedup(), percent(prediction.getEfficiency())).str()});
  }
  os << tools::formatTable(rows, "");
  auto has = [&]<typename Call>(std::type_identity<Call>) {
    return llvm::any_of(run.plan.steps,
                        [](const runtime::StepInfo &step) { return std::holds_alternative<Call>(step.action); });
  };
  if (has(std::type_identity<runtime::RepeatCall>()))
    os << "\nSteps that are repeated count once: how often, a run alone knows\n";
  if (has(std::type_identity<runtime::ChooseCall>()))
    os << "\nSteps that are chosen count, though a run leaves some of them out\n";
  if (!prediction.missingFiles.empty())
    os << "\nWithout weights: '" << prediction.missingFiles.front() << "'"
       << (prediction.missingFiles.size() > 1
               ? " and " + std::to_string(prediction.missingFiles.size() - 1) + " more files are"
               : std::string(" is"))
       << " missing; what is computed from weights before the first run may differ\n";
}

static void printSteps(const Prediction &prediction, llvm::raw_ostream &os) {
  const PredictedRun &run = prediction.run;
  std::vector<size_t> steps = getSlowest(run, PlanStep::Kind::Compute);
  if (steps.empty())
    return;
  Rows rows = {{"#", "kind", "name", "work of the slowest rank", "rank", "time", "share"}};
  for (size_t step : llvm::ArrayRef(steps).take_front(kMaxRows)) {
    const PlanStep &planned = run.work.steps[step];
    double seconds = run.simulation.getSeconds(step);
    rows.push_back({std::to_string(step), planned.type, run.plan.steps[step].title(), describeWork(run, step),
                    std::to_string(getSlowestRank(run, step)), formatSeconds(seconds),
                    percent(seconds, run.simulation.getSeconds())});
  }
  os << "\nSlowest steps\n" << tools::formatTable(rows);
  printRest(steps.size(), os);
}

static void printExchanges(const Prediction &prediction, llvm::raw_ostream &os) {
  const PredictedRun &run = prediction.run;
  std::vector<size_t> steps = getSlowest(run, PlanStep::Kind::Exchange);
  if (steps.empty())
    return;
  std::vector<std::string> head = {"#", "kind", "name", "rank", "time", "of it waiting", "bytes"};
  for (const Link &link : prediction.cluster.getLinks())
    head.push_back("over " + link.name);
  Rows rows = {head};
  for (size_t step : llvm::ArrayRef(steps).take_front(kMaxRows)) {
    const PlanStep &planned = run.work.steps[step];
    const auto &call = std::get<runtime::ExchangeCall>(run.plan.steps[step].action);
    int rank = getSlowestRank(run, step);
    std::vector<std::string> row = {std::to_string(step),
                                    layout::stringifyExchangeKind(call.kind),
                                    run.plan.steps[step].title(),
                                    std::to_string(rank),
                                    formatSeconds(run.simulation.getSeconds(step)),
                                    formatSeconds(run.simulation.getWaiting(step, rank)),
                                    formatBytes(planned.traffic->getBytes())};
    for (size_t link = 0; link < planned.traffic->numLinks; ++link)
      row.push_back(formatBytes(planned.traffic->getBytes(link)));
    rows.push_back(std::move(row));
  }
  os << "\nSlowest exchanges\n" << tools::formatTable(rows);
  printRest(steps.size(), os);
  double total = 0;
  for (size_t link = 0; link < prediction.cluster.getLinks().size(); ++link)
    total += run.simulation.getLinkBytes(link);
  rows = {{"link", "bytes of a run", "share", "of each rank"}};
  for (auto [number, link] : llvm::enumerate(prediction.cluster.getLinks())) {
    double bytes = run.simulation.getLinkBytes(number);
    rows.push_back({link.name, formatBytes(bytes), percent(bytes, total), formatBytes(bytes / run.getNumRanks())});
  }
  os << "\nTraffic\n" << tools::formatTable(rows);
}

/// Of many ranks that are alike one stands for all.
static void printRanks(const Prediction &prediction, llvm::raw_ostream &os) {
  const PredictedRun &run = prediction.run;
  bool exchanges = run.work.engine == ExchangeEngine::Threads && run.getNumRanks() > 1;
  Rows rows = {{"rank", "busy", "products", "kernels", "copies"}};
  if (exchanges)
    rows[0].push_back("exchanging");
  rows[0].insert(rows[0].end(), {"waiting", "idle at the end"});
  Rows memory = {{"rank", "in all", "weights", "packed", "values and scratch", "most in use at", "available", ""}};
  std::vector<std::vector<int>> alike = run.getAlikeRanks();
  for (const std::vector<int> &ranks : llvm::ArrayRef(alike).take_front(kMaxRows)) {
    int rank = ranks.front();
    const RankTime &time = run.simulation.getRankTime(rank);
    std::vector<std::string> row = {tools::formatRanks(ranks), percent(time.getBusy(), run.simulation.getSeconds()),
                                    formatSeconds(time.products), formatSeconds(time.elements),
                                    formatSeconds(time.copies)};
    if (exchanges)
      row.push_back(formatSeconds(time.exchanging));
    row.insert(row.end(), {formatSeconds(time.waiting), formatSeconds(time.idle)});
    rows.push_back(std::move(row));
    const runtime::SessionStatistics &use = run.memory[rank].statistics;
    size_t peak = run.getPeak(rank), steps = run.work.steps.size();
    int64_t available = prediction.getAvailable(rank);
    memory.push_back({tools::formatRanks(ranks), tools::formatBytes(use.totalBytes()),
                      tools::formatBytes(use.weightBytes + use.copiedBytes + use.persistentBytes),
                      tools::formatBytes(use.packedBytes), tools::formatBytes(use.arenaBytes),
                      peak == 0      ? "inputs"
                      : peak > steps ? "outputs"
                                     : "step " + std::to_string(peak - 1),
                      available ? tools::formatBytes(available) : "not known",
                      !available              ? ""
                      : prediction.fits(rank) ? "fits"
                                              : "DOES NOT FIT"});
  }
  os << "\nTime of ranks\n" << tools::formatTable(rows);
  printRest(alike.size(), os);
  os << "\nMemory of ranks\n" << tools::formatTable(memory);
  printRest(alike.size(), os);
}

/// Ranks that have nothing to do, or at most half of what the busiest one has.
static void printIdle(const Prediction &prediction, llvm::raw_ostream &os) {
  const PredictedRun &run = prediction.run;
  double busiest = 0;
  for (int rank = 0; rank < run.getNumRanks(); ++rank)
    busiest = std::max(busiest, run.simulation.getRankTime(rank).getBusy());
  std::vector<int> idle, light, tight;
  for (int rank = 0; rank < run.getNumRanks(); ++rank) {
    double busy = run.simulation.getRankTime(rank).getBusy();
    if (busy == 0)
      idle.push_back(rank);
    else if (busy <= busiest / 2)
      light.push_back(rank);
    if (!prediction.fits(rank))
      tight.push_back(rank);
  }
  if (!idle.empty())
    os << "\nRanks that have nothing to do: " << tools::formatRanks(idle) << "\n";
  if (!light.empty())
    os << "\nRanks that are busy for at most half of the time that the busiest one is: " << tools::formatRanks(light)
       << "\n";
  if (!tight.empty())
    os << "\nRanks whose memory does not suffice: " << tools::formatRanks(tight) << "\n";
}

void dovetail::printPrediction(const Prediction &prediction, llvm::raw_ostream &os) {
  printHead(prediction, os);
  printSteps(prediction, os);
  printExchanges(prediction, os);
  printRanks(prediction, os);
  printIdle(prediction, os);
}
