//===- WeightStorage.h - How ranks store weights ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares WeightStorage: whether ranks store of a constant what they need, or less, and gather it before each use.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SHARDING_WEIGHTSTORAGE_H
#define DOVETAIL_LIB_SHARDING_WEIGHTSTORAGE_H

#include "dovetail/Cost/ExchangeCosts.h"

#include "dovetail/Search/ChoiceGraph.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace dovetail {

/// Choices of how constants are stored, each of which is a node of a graph: as users need them, or in one of the ways
/// to divide what a user needs further, over mesh axes along which all ranks need the same. A user whose need that does
/// not cover gathers it, in each run: an exchange, and memory for as long as the user takes.
class WeightStorage {
public:
  /// An operand that reads a weight, and what it needs with each option of its operation's node.
  struct Use {
    mlir::OpOperand *operand;
    unsigned node;
    std::vector<ShardingAttr> needs;
  };

  /// What is paid for memory and exchanges.
  struct Prices {
    /// Of a byte that a rank stores, or has in the arena at the time of most.
    double ofByte;
    llvm::function_ref<double(const ExchangeCost &)> ofExchange;
  };

  /// `weightFactor` is that of a `Goal`.
  WeightStorage(ExchangeCosts &costs, double weightFactor) : costs(costs), weightFactor(weightFactor) {}

  /// Adds a constant with all operations that read it, and its node to `graph`; false, and nothing, if no rank could
  /// store less than it needs. To be followed by `setCosts`.
  bool add(mlir::Value weight, std::vector<Use> uses, ChoiceGraph &graph);
  bool contains(mlir::Value value) const { return weights.contains(value); }
  bool empty() const { return weights.empty(); }

  /// Gives nodes and edges their costs. `isCrowded` says whether an operation that has to gather what an operand reads
  /// runs at a time when most memory is used.
  void setCosts(ChoiceGraph &graph, const Prices &prices, llvm::function_ref<bool(mlir::OpOperand *)> isCrowded);

  /// What ranks store; null if as users need it.
  ShardingAttr getStored(const ChoiceGraph::Solution &solution, mlir::Value weight) const;
  /// What it takes to give an operand that reads a weight what it needs.
  ExchangeCost getGathering(const ChoiceGraph::Solution &solution, mlir::OpOperand &operand);

  /// Of the weights that are gathered, lets ranks hold those whole for which this is least, as long as that takes no
  /// more than `bytes` beyond what `solution` does.
  void holdWithin(ChoiceGraph::Solution &solution, double bytes);

  /// All constants of which ranks store less than they need, with what they store.
  llvm::MapVector<mlir::Value, ShardingAttr> getAllStored(const ChoiceGraph::Solution &solution);

private:
  struct Weight {
    mlir::RankedTensorType type;
    unsigned node;
    /// The first one is null: as users need it.
    std::vector<ShardingAttr> states;
    std::vector<Use> uses;
    /// Of each use.
    std::vector<unsigned> edges;
  };

  /// What ranks store if what they need is divided over `axes`, too; null if it cannot be.
  ShardingAttr divide(mlir::RankedTensorType type, ShardingAttr need, llvm::ArrayRef<mlir::StringAttr> axes) const;
  /// All ways to store less than `need`.
  void addStates(mlir::RankedTensorType type, ShardingAttr need, llvm::SetVector<ShardingAttr> &states);
  /// No value where ranks together do not store all that is needed.
  std::optional<ExchangeCost> getGathering(mlir::RankedTensorType type, ShardingAttr stored, ShardingAttr need);
  double getBytes(mlir::RankedTensorType type, ShardingAttr sharding);

  ExchangeCosts &costs;
  double weightFactor;
  llvm::MapVector<mlir::Value, Weight> weights;
  /// Networks repeat themselves.
  llvm::DenseMap<std::pair<mlir::Type, ShardingAttr>, double> sizes;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_SHARDING_WEIGHTSTORAGE_H
