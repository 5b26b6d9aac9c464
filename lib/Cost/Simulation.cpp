//===- Simulation.cpp - A run of a program on a cluster -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements Simulation.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/Simulation.h"

#include <algorithm>

using namespace dovetail;

struct Simulation::State {
  const Cluster &cluster;
  /// Of each rank: when it is done with its steps so far, and with its exchanges that go on beside them.
  std::vector<double> clock, moves;
  /// Of each exchange, by the number of its step: when each rank's sources have been read by all others.
  std::vector<std::vector<double>> readAt;
};

/// What a rank copies from one other. Of several messages the first one begins the exchange.
static double getPullSeconds(const Link &link, double bytes, bool isFirst) {
  double seconds = Cluster::getSeconds(link, {bytes, 1, 1});
  return isFirst ? seconds : seconds - link.exchangeSeconds + link.messageSeconds;
}

void Simulation::runThreads(const PlanStep &step, State &state, size_t number) {
  const ExchangeTraffic &traffic = *step.traffic;
  const std::vector<double> started = state.clock;
  std::vector<double> &readAt = state.readAt[number];
  readAt = started;
  double *end = &ends[number * numRanks];
  for (int rank = 0; rank < numRanks; ++rank) {
    double &clock = state.clock[rank];
    RankTime &time = rankTimes[rank];
    auto copy = [&](double seconds) {
      clock += seconds;
      time.exchanging += seconds;
    };
    bool isFirst = true;
    if (double bytes = traffic.localBytes[rank]; bytes > 0)
      copy(bytes / state.cluster.getLinks().front().bytes);
    double &moves = state.moves[rank], aside = 0;
    for (const ExchangeTraffic::Pull &pull : traffic.pulls[rank]) {
      const Link &link = state.cluster.getLinks()[pull.link];
      if (!link.isCopied) {
        double seconds = getPullSeconds(link, pull.bytes, isFirst);
        moves = std::max({moves, started[rank], started[pull.source]}) + seconds;
        aside += seconds;
        isFirst = false;
        readAt[pull.source] = std::max(readAt[pull.source], moves);
        continue;
      }
      double ready = std::max(clock, started[pull.source]);
      time.waiting += ready - clock;
      waits[number * numRanks + rank] += ready - clock;
      clock = ready;
      copy(getPullSeconds(link, pull.bytes, isFirst));
      isFirst = false;
      readAt[pull.source] = std::max(readAt[pull.source], clock);
    }
    if (aside > 0)
      waits[number * numRanks + rank] += std::max(moves - aside - started[rank], 0.0);
    end[rank] = aside > 0 ? std::max(clock, moves) : clock;
  }
}

/// What a rank's part of an exchange by streams takes, if all that it has to do with have begun.
static double getOwnSeconds(const ExchangeTraffic &traffic, const Cluster &cluster, int rank) {
  double seconds =
      getStreamSeconds({&traffic.get(rank, 0), traffic.numLinks}, cluster.getLinks(), traffic.isCollective());
  double local = getCopySeconds(traffic.localBytes[rank], cluster.getDevice(rank));
  // What is gathered is packed before, and unpacked afterwards.
  return traffic.isCollective() ? seconds + local : std::max(seconds, local);
}

double dovetail::getAsideSeconds(const ExchangeTraffic &traffic, const Cluster &cluster, ExchangeEngine engine,
                                 int rank) {
  if (engine == ExchangeEngine::Streams)
    return getOwnSeconds(traffic, cluster, rank);
  double seconds = 0;
  for (const ExchangeTraffic::Pull &pull : traffic.pulls[rank])
    if (const Link &link = cluster.getLinks()[pull.link]; !link.isCopied)
      seconds += getPullSeconds(link, pull.bytes, /*isFirst=*/seconds == 0);
  return seconds;
}

void Simulation::runStreams(const PlanStep &step, State &state, size_t number) {
  const ExchangeTraffic &traffic = *step.traffic;
  // When each rank takes part: after its steps so far, and its exchanges before.
  std::vector<double> begun(numRanks), seconds(numRanks);
  for (int rank = 0; rank < numRanks; ++rank) {
    begun[rank] = std::max(state.clock[rank], state.moves[rank]);
    seconds[rank] = getOwnSeconds(traffic, state.cluster, rank);
  }
  std::vector<double> done(numRanks);
  for (int rank = 0; rank < numRanks; ++rank)
    done[rank] = begun[rank] + seconds[rank];
  if (traffic.isCollective()) {
    for (const std::vector<int> &group : traffic.groups) {
      double last = 0;
      for (int rank : group)
        last = std::max(last, begun[rank]);
      for (int rank : group)
        done[rank] = last + seconds[rank];
    }
  } else {
    // A message takes part of what its sender has for others, too.
    std::vector<double> arrived = done;
    for (int rank = 0; rank < numRanks; ++rank)
      for (const ExchangeTraffic::Pull &pull : traffic.pulls[rank]) {
        double arrival = std::max(begun[rank], begun[pull.source]) + std::max(seconds[rank], seconds[pull.source]);
        // Both are done when the message has arrived.
        arrived[rank] = std::max(arrived[rank], arrival);
        arrived[pull.source] = std::max(arrived[pull.source], arrival);
      }
    done = std::move(arrived);
  }
  for (int rank = 0; rank < numRanks; ++rank) {
    if (seconds[rank] > 0) {
      state.moves[rank] = done[rank];
      waits[number * numRanks + rank] = std::max(done[rank] - seconds[rank] - state.clock[rank], 0.0);
    } else {
      done[rank] = state.clock[rank];
    }
    ends[number * numRanks + rank] = done[rank];
  }
  std::vector<double> &readAt = state.readAt[number];
  readAt = done;
  for (int rank = 0; rank < numRanks; ++rank)
    if (!traffic.isCollective())
      for (const ExchangeTraffic::Pull &pull : traffic.pulls[rank])
        readAt[pull.source] = std::max(readAt[pull.source], done[rank]);
}

Simulation::Simulation(const PlanSteps &work, const Cluster &cluster)
    : numRanks(work.mesh.numRanks()), rankTimes(numRanks), linkBytes(cluster.getLinks().size()) {
  size_t numSteps = work.steps.size();
  begins.resize(numSteps * numRanks);
  ends.resize(numSteps * numRanks);
  waits.resize(numSteps * numRanks);
  State state{cluster, std::vector<double>(numRanks), std::vector<double>(numRanks),
              std::vector<std::vector<double>>(numSteps)};
  for (size_t number = 0; number < numSteps; ++number) {
    const PlanStep &step = work.steps[number];
    double *begin = &begins[number * numRanks], *end = &ends[number * numRanks];
    std::copy(state.clock.begin(), state.clock.end(), begin);
    switch (step.kind) {
    case PlanStep::Kind::Compute:
      for (int rank = 0; rank < numRanks; ++rank) {
        const StepWork &own = step.getWork(rank);
        double seconds = cluster.getDevice(rank).getSeconds(own);
        state.clock[rank] += seconds;
        RankTime &time = rankTimes[rank];
        (own.kind == StepWork::Kind::Product ? time.products
         : own.kind == StepWork::Kind::Copy  ? time.copies
                                             : time.elements) += seconds;
      }
      break;
    case PlanStep::Kind::Exchange:
      for (size_t link = 0; link < linkBytes.size(); ++link)
        linkBytes[link] += step.traffic->getBytes(link);
      if (work.engine == ExchangeEngine::Threads)
        runThreads(step, state, number);
      else
        runStreams(step, state, number);
      continue;
    case PlanStep::Kind::Wait:
      for (int rank = 0; rank < numRanks; ++rank) {
        double ready = state.clock[rank];
        for (unsigned exchange : step.complete)
          ready = std::max(ready, ends[exchange * numRanks + rank]);
        for (unsigned exchange : step.read)
          ready = std::max(ready, state.readAt[exchange][rank]);
        waits[number * numRanks + rank] = ready - state.clock[rank];
        rankTimes[rank].waiting += ready - state.clock[rank];
        state.clock[rank] = ready;
      }
      break;
    }
    std::copy(state.clock.begin(), state.clock.end(), end);
  }
  for (int rank = 0; rank < numRanks; ++rank)
    total = std::max({total, state.clock[rank], state.moves[rank]});
  for (int rank = 0; rank < numRanks; ++rank)
    rankTimes[rank].idle = total - state.clock[rank];
}

double Simulation::getSeconds(size_t step) const {
  double seconds = 0;
  for (int rank = 0; rank < numRanks; ++rank)
    seconds = std::max(seconds, getEnd(step, rank) - getBegin(step, rank));
  return seconds;
}
