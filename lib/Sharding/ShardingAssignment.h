//===- ShardingAssignment.h - How everything is split -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares ShardingAssignment, how all operations and arguments of a function are split, and the search for it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SHARDING_SHARDINGASSIGNMENT_H
#define DOVETAIL_LIB_SHARDING_SHARDINGASSIGNMENT_H

#include "LoopOptions.h"

#include "dovetail/Cost/Objective.h"
#include "dovetail/Search/ChoiceGraph.h"
#include "dovetail/Sharding/ShardingRequests.h"
#include "llvm/ADT/MapVector.h"

namespace dovetail {

/// What is expected of an assignment.
struct Expectation {
  /// Of operations and exchanges one after the other, each as long as the rank takes that takes longest.
  double seconds = 0;
  /// That all ranks receive.
  double bytes = 0;
  /// Bytes of weights, and of values at the time of most, of the rank with most.
  double weightBytes = 0, valueBytes = 0;

  /// What the objective says of it, and what it says of no assignment less than.
  double cost = 0, bound = 0;

  double getMemory() const { return weightBytes + valueBytes; }
};

/// Why an operation's loops are split as they are.
struct Explanation {
  mlir::Operation *op;
  /// How many others like it are split like it.
  unsigned others;
  LoopShardings chosen, runnerUp;
  /// How much more the objective says if the runner-up is chosen, with the best for all others, as a share.
  double more;
};

/// A value that is not split as what reads it, where something is stated of one of both.
struct Move {
  mlir::Value value;
  /// Its reader; null for the form in which it is brought to several, and for a result of the function.
  mlir::Operation *reader;
  /// How the value is split; how the loops of the reader are, or dimensions where there is none.
  LoopShardings from, to;
  /// The value is split as is stated, and the reader not; else it is the other way round.
  bool isHeld;
  /// That all ranks receive.
  double bytes;
};

/// Stated sizes that cut between the steps of an operation, so that ranks may lack more of what it reads.
struct UnalignedSizes {
  /// It follows the sizes, and steps over so many elements at a time.
  mlir::Operation *op;
  int64_t step;
  /// The cuts that are stated, and others near them that are not between steps.
  std::vector<int64_t> cuts;
  std::vector<std::vector<int64_t>> alternatives;
};

/// How everything is split.
struct ShardingAssignment {
  llvm::DenseMap<mlir::Operation *, LoopOption> operations;
  llvm::DenseMap<mlir::Value, ShardingAttr> arguments;
  /// Of values whose sharding is requested: that, however the operation computes them.
  llvm::DenseMap<mlir::Value, ShardingAttr> values;
  /// Of values with several users: the form in which it is brought to all of them.
  llvm::DenseMap<mlir::Value, ShardingAttr> forms;
  /// Of constants of which ranks store less than operations need: what they store. It is gathered before each use.
  llvm::MapVector<mlir::Value, ShardingAttr> stored;
  /// Of operands of the terminator, where that is requested.
  llvm::DenseMap<mlir::OpOperand *, ShardingAttr> outputs;
  /// What is expected of all of it.
  Expectation expected;
  /// Whether there was more to search than the goal's work.
  bool isCut = false;
  /// Operations that could be split in more ways than were tried.
  size_t numLimited = 0;
  /// Of the operations that take most time and could be split in other ways, where that is asked for.
  std::vector<Explanation> explanations;
  /// Mesh axes over which nothing is split that takes time: their ranks repeat each other's work.
  llvm::SmallVector<mlir::StringAttr> idleAxes;
  /// Ranks that have nothing of what takes time, and whether that has too few elements for all ranks.
  std::vector<std::pair<int, bool>> idleRanks;
  /// Where it leaves what is stated, though it need not.
  std::vector<Move> departures;
  /// Seconds without departures: none if there is no such way, or none for which memory suffices.
  std::optional<double> followedSeconds;
  /// Where it goes from one thing that is stated to another.
  std::vector<Move> changes;
  /// One for each stated sizes.
  std::vector<UnalignedSizes> unaligned;
  /// Without departures, operations that take much and can follow no request.
  std::vector<mlir::Operation *> apart;
  /// Their share of all work, and where the first request ends.
  double shareApart = 0;
  std::optional<Move> end;
  /// Operations that take much longer than they would with their work divided as well as can be, and how many times.
  std::vector<std::pair<mlir::Operation *, double>> slow;
};

/// What an assignment is to be best at.
struct Goal {
  Objective objective;
  /// How long work and exchanges take.
  const Cluster &cluster;
  /// How ranks carry out exchanges.
  ExchangeEngine engine;
  /// Bytes of each rank for weights and values, as estimated; none: as much as is asked for.
  std::optional<double> memory;
  /// Of each rank, the share of what is divided that it may have, where memory is unequal; empty if any.
  llvm::ArrayRef<double> mostShares;
  /// Of each rank, how many times as long as estimated work takes it, where cuts are weighed; empty if once.
  llvm::ArrayRef<double> slowness;
  /// How many bytes a rank takes for each byte of a weight that a step reads, as libraries keep some in an order of
  /// their own, too: all the time, or of a weight that is gathered for as long as the step takes.
  double weightFactor = 1;
  /// Whether ranks may store less of weights than they need, where memory matters.
  bool mayGather = true;
  /// What the searches may take together (`SearchLimits::work`).
  uint64_t work = SearchLimits().work;
  /// Whether what is chosen is to be explained, which takes more searches.
  bool explain = false;
  Following following = Following::No;
  /// Whether what is stated was asked for by a user.
  bool isAsked = true;
  /// The share of all time that leaving what is stated has to save.
  double follow = 0;
  /// If not 0, none of that matters: anything that may be decided is, at random.
  uint64_t seed = 0;
  /// Whether departures from what is stated are described even if the search is free to depart.
  bool describesAll = false;

  /// Whether what is stated holds for what follows it.
  bool steers() const { return follow > 0 && mayDescribe(); }
  /// Whether it is described where what is stated does not hold.
  bool describes() const { return (follow > 0 || describesAll) && mayDescribe(); }

private:
  bool mayDescribe() const {
    return isAsked && seed == 0 && objective == Objective::Time && following == Following::No;
  }
};

/// Finds what the objective asks for.
///
/// Every operation chooses among its `LoopOptions`, every argument among all ways to cut it. A value that several
/// operations read also chooses in what form it is brought to them: that is paid for once. What is left, an exchange
/// from each value to each need, is a cost of two choices, so that a `ChoiceGraph` finds the optimum.
///
/// Where memory matters, each weight, too, chooses what ranks store of it (`WeightStorage`).
///
/// Where memory does not suffice, what takes room has a price (a Lagrange multiplier), the least with which all of it
/// fits; if nothing does, it is what takes least.
///
/// `decided`: operations whose option is known, with the shardings in the types of their results. An error if what is
/// stated leaves no way.
mlir::FailureOr<ShardingAssignment> findAssignment(mlir::func::FuncOp function, const layout::Mesh &mesh,
                                                   mlir::FlatSymbolRefAttr meshName, const FunctionRequests &requests,
                                                   const Goal &goal,
                                                   const llvm::DenseMap<mlir::Operation *, LoopOption> &decided);

} // namespace dovetail

#endif // DOVETAIL_LIB_SHARDING_SHARDINGASSIGNMENT_H
