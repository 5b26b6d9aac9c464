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

#ifndef DOVETAIL_SEARCH_CHOICEGRAPH_H
#define DOVETAIL_SEARCH_CHOICEGRAPH_H

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace dovetail {

/// What a search may take.
struct SearchLimits {
  /// Entries of a table: where elimination would make larger ones, options of single nodes are tried one by one.
  size_t tableSize = size_t(1) << 20;
  /// Costs that are looked at, of options and pairs: what was found when that is exceeded may not be the best. A
  /// number rather than a time, so that the result is the same on every machine.
  uint64_t work = 5000000000;
};

/// Nodes, of each of which one of several options is to be chosen. An option costs by itself, and with those of
/// other nodes, as edges say. What cannot be chosen costs `impossible`.
///
/// `solve` finds the optimum of graphs that are narrow, as those of networks are, by elimination of nodes; others are
/// searched by branch and bound, as far as the limit of work allows (`ChoiceSearch`).
class ChoiceGraph {
public:
  static constexpr double impossible = std::numeric_limits<double>::infinity();
  /// Costs of pairs, the options of the first node major. Shared among edges that cost alike.
  using EdgeCosts = std::shared_ptr<const std::vector<double>>;
  struct Edge {
    unsigned a, b;
    EdgeCosts costs;
  };

  /// Adds a node with these options, one at least; returns its number.
  unsigned addNode(std::vector<double> costs);
  /// What the options of a node cost by themselves, from now on.
  void setCosts(unsigned node, std::vector<double> costs);
  /// Adds costs of pairs of options of two different nodes. Several edges add up. Returns the edge's number.
  unsigned addEdge(unsigned a, unsigned b, EdgeCosts costs);
  /// What the pairs of an edge cost, from now on. Edges have no numbers any more once costs are random.
  void setEdge(unsigned edge, EdgeCosts costs);

  /// Replaces the costs of single options by random ones, and those of pairs by nothing, unless they are impossible.
  void randomize(uint64_t seed);

  size_t getNumNodes() const { return nodes.size(); }
  size_t getNumOptions(unsigned node) const { return nodes[node].size(); }
  const std::vector<double> &getCosts(unsigned node) const { return nodes[node]; }

  const std::vector<Edge> &getEdges() const { return edges; }
  /// Of each node the numbers of all of its options.
  std::vector<std::vector<unsigned>> getAllOptions() const;

  struct Solution {
    /// The option of each node.
    std::vector<unsigned> options;
    /// What that costs, and what nothing costs less than. Equal, but for rounding, where the optimum was found; both
    /// are impossible where that is so.
    double cost = impossible;
    double bound = 0;
    /// How much work it was (`SearchLimits`), and whether there would have been more.
    uint64_t work = 0;
    bool isCut = false;

    bool isPossible() const { return cost < impossible; }
  };

  /// The options that cost least, none of which is negative; of equal ones, those of lower numbers are preferred.
  Solution solve(const SearchLimits &limits = {}) const;
  /// What these options cost.
  double evaluate(const std::vector<unsigned> &options) const;

private:
  std::vector<std::vector<double>> nodes;
  std::vector<Edge> edges;
};

} // namespace dovetail

#endif // DOVETAIL_SEARCH_CHOICEGRAPH_H
