//===- Simulation.h - A run of a program on a cluster -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Simulation: when each rank begins and ends each step of a program, if devices and links are as fast as a
// cluster says.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_COST_SIMULATION_H
#define DOVETAIL_COST_SIMULATION_H

#include "dovetail/Cost/PlanSteps.h"

namespace dovetail {

/// What a rank's time goes to, in seconds. They add up to the time at which the last rank is done.
struct RankTime {
  /// Products, kernels and pools, and copies, of the rank's own.
  double products = 0, elements = 0, copies = 0;
  /// Copying from other ranks itself (`ExchangeEngine::Threads`, over links that are copied over).
  double exchanging = 0;
  /// Standing still until others have begun or are done, or a message has arrived.
  double waiting = 0;
  /// After its last step, until all ranks are done.
  double idle = 0;

  double getBusy() const { return products + elements + copies + exchanging; }
};

/// A run in which all ranks begin at 0 and do their steps in order.
///
/// An exchange begins on a rank with its step. Of threads, the rank waits for each other rank's beginning and copies
/// what it needs from it; over links that are not copied over, messages come one after the other beside its steps, once
/// both have begun. Of streams, it goes on beside the steps, once the rank's exchanges before it are over and all
/// that it exchanges with have begun; what it takes is what the slowest of its links takes that it shares with all
/// that goes over them in this exchange, in either direction, and steps that need it come after a wait.
class Simulation {
public:
  Simulation(const PlanSteps &work, const Cluster &cluster);

  /// When a rank began and ended a step. An exchange that goes on beside steps ends when it is complete.
  double getBegin(size_t step, int rank) const { return begins[step * numRanks + rank]; }
  double getEnd(size_t step, int rank) const { return ends[step * numRanks + rank]; }
  /// How long a rank stands still in a step until others have begun or are done, or a message has arrived. Of an
  /// exchange that goes on beside steps, how long it waits for other ranks and exchanges.
  double getWaiting(size_t step, int rank) const { return waits[step * numRanks + rank]; }
  /// The longest time that a rank takes for a step, which for exchanges and waits includes standing still.
  double getSeconds(size_t step) const;
  /// When all ranks are done.
  double getSeconds() const { return total; }
  const RankTime &getRankTime(int rank) const { return rankTimes[rank]; }
  /// Bytes that go over links of number `link`, in all.
  double getLinkBytes(size_t link) const { return linkBytes[link]; }

private:
  struct State;

  void runThreads(const PlanStep &step, State &state, size_t number);
  void runStreams(const PlanStep &step, State &state, size_t number);

  int numRanks;
  std::vector<double> begins, ends, waits;
  std::vector<RankTime> rankTimes;
  std::vector<double> linkBytes;
  double total = 0;
};

/// What an exchange takes on a rank beside its steps, if all that it has to do with have begun: all of it with streams,
/// the messages of threads.
double getAsideSeconds(const ExchangeTraffic &traffic, const Cluster &cluster, ExchangeEngine engine, int rank);

} // namespace dovetail

#endif // DOVETAIL_COST_SIMULATION_H
