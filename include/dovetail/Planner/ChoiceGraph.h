//===- ChoiceGraph.h - Choices that cost by themselves and in pairs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines ChoiceGraph, a sum of costs of choices and of pairs of choices, and finds what costs least.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_PLANNER_CHOICEGRAPH_H
#define DOVETAIL_PLANNER_CHOICEGRAPH_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace dovetail {

/// Nodes, of each of which one of several options is to be chosen. An option costs by itself, and with those of
/// other nodes, as edges say. What cannot be chosen costs `impossible`.
///
/// `solve` removes one node after the other: the least that its options can add is a cost of the neighbours' choices
/// together (variable elimination, also known as nonserial dynamic programming: Bertele and Brioschi, 1972). Of graphs
/// that are narrow, as those of networks are, no table has more than a few dimensions, and the result is the optimum.
class ChoiceGraph {
public:
  static constexpr double impossible = std::numeric_limits<double>::infinity();
  /// Costs of pairs, the options of the first node major. Shared among edges that cost alike.
  using EdgeCosts = std::shared_ptr<const std::vector<double>>;

  /// Adds a node with these options, one at least; returns its number.
  unsigned addNode(std::vector<double> costs);
  /// What the options of a node cost by themselves, from now on.
  void setCosts(unsigned node, std::vector<double> costs);
  /// Adds costs of pairs of options of two different nodes. Several edges add up.
  void addEdge(unsigned a, unsigned b, EdgeCosts costs);

  /// Replaces the costs of single options by random ones, and those of pairs by nothing, unless they are impossible.
  void randomize(uint64_t seed);

  size_t getNumNodes() const { return nodes.size(); }
  size_t getNumOptions(unsigned node) const { return nodes[node].size(); }
  const std::vector<double> &getCosts(unsigned node) const { return nodes[node]; }

  struct Solution {
    /// The option of each node.
    std::vector<unsigned> options;
    /// What that costs, and what nothing costs less than. Equal, but for rounding, where the optimum was found.
    double cost = impossible;
    double bound = 0;

    bool isPossible() const { return cost < impossible; }
  };

  /// The options that cost least, none of which is negative; of equal ones, those of lower numbers are preferred.
  /// Tables of more than `maxTableSize` entries are not made: what nodes cost with too many neighbours is then bounded
  /// part by part, and the options found may not be the best.
  Solution solve(size_t maxTableSize = size_t(1) << 20) const;
  /// What these options cost.
  double evaluate(const std::vector<unsigned> &options) const;

private:
  struct Edge {
    unsigned a, b;
    EdgeCosts costs;
  };
  std::vector<std::vector<double>> nodes;
  std::vector<Edge> edges;
};

} // namespace dovetail

#endif // DOVETAIL_PLANNER_CHOICEGRAPH_H
