//===- PredictionJson.cpp - Predictions for programs ----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes predictions as JSON, and as traces of simulated runs.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Driver/Prediction.h"
#include "dovetail/tools/Support.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <nlohmann/json.hpp>

using namespace dovetail;
using nlohmann::json;

static const char *getKindName(StepWork::Kind kind) {
  switch (kind) {
  case StepWork::Kind::Product:
    return "product";
  case StepWork::Kind::Elements:
    return "elements";
  case StepWork::Kind::Copy:
    return "copy";
  }
  llvm_unreachable("covered switch");
}

static json describe(const StepWork &work) {
  json result = {{"kind", getKindName(work.kind)},
                 {"bits", work.bits},
                 {"operations", work.operations},
                 {"read_bytes", work.readBytes},
                 {"written_bytes", work.writtenBytes}};
  if (work.kind == StepWork::Kind::Product)
    result.update({{"batch", work.batch}, {"rows", work.rows}, {"columns", work.columns}, {"depth", work.depth}});
  return result;
}

/// What a step's exchange is, and what goes over which link: all of it, and what the rank with most receives.
static json describeExchange(const Prediction &prediction, size_t step) {
  const PredictedRun &run = prediction.run;
  const ExchangeTraffic &traffic = *run.work.steps[step].traffic;
  const auto &call = std::get<runtime::ExchangeCall>(run.plan.steps[step].action);
  json links = json::array();
  for (auto [number, link] : llvm::enumerate(prediction.cluster.getLinks())) {
    double received = 0, sent = 0, messages = 0;
    for (int rank = 0; rank < run.getNumRanks(); ++rank) {
      const LinkTraffic &own = traffic.get(rank, number);
      received = std::max(received, own.receivedBytes);
      sent = std::max(sent, own.sentBytes);
      messages = std::max(messages, own.receivedMessages);
    }
    links.push_back({{"name", link.name},
                     {"bytes", traffic.getBytes(number)},
                     {"largest_received_bytes", received},
                     {"largest_sent_bytes", sent},
                     {"largest_messages", messages}});
  }
  return {{"exchange", layout::stringifyExchangeKind(call.kind)},
          {"by_library", traffic.isCollective()},
          {"bytes", traffic.getBytes()},
          {"links", links}};
}

static json describeStep(const Prediction &prediction, size_t number) {
  const PredictedRun &run = prediction.run;
  const PlanStep &step = run.work.steps[number];
  json begins = json::array(), ends = json::array(), waits = json::array();
  for (int rank = 0; rank < run.getNumRanks(); ++rank) {
    begins.push_back(run.simulation.getBegin(number, rank));
    ends.push_back(run.simulation.getEnd(number, rank));
    waits.push_back(run.simulation.getWaiting(number, rank));
  }
  json result = {{"step", number},
                 {"name", step.name},
                 {"kind", step.type},
                 {"seconds", run.simulation.getSeconds(number)},
                 {"begin", std::move(begins)},
                 {"end", std::move(ends)},
                 {"waiting", std::move(waits)}};
  if (const std::string &source = run.plan.steps[number].source; !source.empty())
    result["source"] = source;
  switch (step.kind) {
  case PlanStep::Kind::Compute: {
    json works = json::array();
    for (const StepWork &work : step.works)
      works.push_back(describe(work));
    result["works"] = std::move(works);
    result["work"] = step.workOf;
    break;
  }
  case PlanStep::Kind::Exchange:
    result.update(describeExchange(prediction, number));
    break;
  case PlanStep::Kind::Wait:
    result["complete"] = step.complete;
    result["read"] = step.read;
    break;
  }
  return result;
}

static json describeRank(const Prediction &prediction, int rank) {
  const PredictedRun &run = prediction.run;
  const RankTime &time = run.simulation.getRankTime(rank);
  const runtime::SessionStatistics &memory = run.memory[rank].statistics;
  return {{"rank", rank},
          {"device", prediction.cluster.getDevice(rank).name},
          {"seconds",
           {{"busy", time.getBusy()},
            {"products", time.products},
            {"elements", time.elements},
            {"copies", time.copies},
            {"exchanging", time.exchanging},
            {"waiting", time.waiting},
            {"idle", time.idle}}},
          {"memory",
           {{"values_bytes", memory.arenaBytes},
            {"scratch_bytes", memory.scratchBytes},
            {"prologue_bytes", memory.persistentBytes},
            {"start_bytes", memory.startBytes},
            {"weights_bytes", memory.weightBytes + memory.copiedBytes},
            {"packed_bytes", memory.packedBytes},
            {"total_bytes", memory.totalBytes()},
            {"device_bytes", prediction.getAvailable(rank)},
            {"fits", prediction.fits(rank)},
            {"used_bytes", run.memory[rank].aliveBytes}}}};
}

json dovetail::describePrediction(const Prediction &prediction) {
  const PredictedRun &run = prediction.run;
  json mesh = json::array(), links = json::array(), steps = json::array(), ranks = json::array();
  for (const layout::MeshAxis &axis : run.work.mesh.getAxes())
    mesh.push_back({{"name", axis.name}, {"size", axis.size}});
  for (auto [number, link] : llvm::enumerate(prediction.cluster.getLinks()))
    links.push_back(
        {{"name", link.name}, {"group_size", link.groupSize}, {"bytes", run.simulation.getLinkBytes(number)}});
  for (size_t step = 0; step < run.work.steps.size(); ++step)
    steps.push_back(describeStep(prediction, step));
  for (int rank = 0; rank < run.getNumRanks(); ++rank)
    ranks.push_back(describeRank(prediction, rank));
  const Simulation &alone = prediction.alone ? prediction.alone->simulation : run.simulation;
  const PredictedRun &aloneRun = prediction.alone ? *prediction.alone : run;
  return {{"model", prediction.model},
          {"target", prediction.target},
          {"cluster", prediction.cluster.getName()},
          {"threads", prediction.threads},
          {"transport", run.work.engine == ExchangeEngine::Threads ? "threads" : "streams"},
          {"mesh", mesh},
          {"num_ranks", run.getNumRanks()},
          {"missing_files", prediction.missingFiles},
          {"seconds", run.simulation.getSeconds()},
          {"alone", {{"seconds", alone.getSeconds()}, {"total_bytes", aloneRun.getMemory(0)}}},
          {"speedup", prediction.getSpeedup()},
          {"efficiency", prediction.getEfficiency()},
          {"links", links},
          {"steps", std::move(steps)},
          {"ranks", std::move(ranks)}};
}

//===----------------------------------------------------------------------===//
// Traces
//===----------------------------------------------------------------------===//

namespace {
/// Collects the events of a trace.
class Trace {
public:
  explicit Trace(const PredictedRun &run) : run(run) {}

  void addRanks(const std::vector<int> &ranks);
  json take() { return {{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}; }

private:
  /// Rows of a rank.
  enum Row { Steps, Exchanges };

  /// Viewers count whole nanoseconds: what follows something must not begin before that ends when both are rounded.
  static int64_t getNanoseconds(double seconds) { return std::llround(1e9 * seconds); }
  static double getMicroseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }
  void addName(const char *what, int rank, int row, const std::string &name) {
    events.push_back({{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", row}, {"args", {{"name", name}}}});
  }
  void addMemory(int rank, double at, size_t position) {
    events.push_back({{"name", "memory"},
                      {"ph", "C"},
                      {"pid", rank},
                      {"ts", getMicroseconds(getNanoseconds(at))},
                      {"args", {{"bytes", run.getMemory(rank, position)}}}});
  }

  const PredictedRun &run;
  json events = json::array();
};
} // namespace

void Trace::addRanks(const std::vector<int> &ranks) {
  int rank = ranks.front();
  bool isBeside = run.work.engine == ExchangeEngine::Streams;
  addName("process_name", rank, 0, tools::nameRanks(ranks));
  addName("thread_name", rank, Steps, "steps");
  if (isBeside)
    addName("thread_name", rank, Exchanges, "exchanges");
  // Exchanges follow each other.
  double lastExchange = 0;
  for (auto [number, step] : llvm::enumerate(run.work.steps)) {
    double begin = run.simulation.getBegin(number, rank), end = run.simulation.getEnd(number, rank);
    json arguments = {{"step", number}, {"kind", step.type}};
    const runtime::StepInfo &info = run.plan.steps[number];
    if (!info.source.empty())
      arguments["node"] = info.name;
    Row row = Steps;
    switch (step.kind) {
    case PlanStep::Kind::Compute: {
      const StepWork &work = step.getWork(rank);
      arguments["operations"] = work.operations;
      arguments["read bytes"] = work.readBytes;
      arguments["written bytes"] = work.writtenBytes;
      break;
    }
    case PlanStep::Kind::Exchange: {
      double received = 0;
      for (size_t link = 0; link < step.traffic->numLinks; ++link)
        received += step.traffic->get(rank, link).receivedBytes;
      arguments["received bytes"] = received;
      if (isBeside) {
        row = Exchanges;
        begin = std::max(begin, lastExchange);
        lastExchange = std::max(lastExchange, end);
      }
      break;
    }
    case PlanStep::Kind::Wait:
      arguments["complete"] = step.complete;
      arguments["read"] = step.read;
      break;
    }
    addMemory(rank, run.simulation.getBegin(number, rank), number + 1);
    int64_t from = getNanoseconds(begin), to = getNanoseconds(end);
    if (to > from)
      events.push_back({{"name", info.title().empty() ? step.type : info.title()},
                        {"cat", step.type},
                        {"ph", "X"},
                        {"pid", rank},
                        {"tid", static_cast<int>(row)},
                        {"ts", getMicroseconds(from)},
                        {"dur", getMicroseconds(to - from)},
                        {"args", std::move(arguments)}});
  }
}

json dovetail::tracePrediction(const Prediction &prediction) {
  Trace trace(prediction.run);
  for (const std::vector<int> &ranks : prediction.run.getAlikeRanks())
    trace.addRanks(ranks);
  return trace.take();
}
