//===- CostShifting.h - Bounds of what options cost -------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares CostShifting, which bounds what a choice of each node of a ChoiceGraph costs at least.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SEARCH_COSTSHIFTING_H
#define DOVETAIL_LIB_SEARCH_COSTSHIFTING_H

#include "dovetail/Search/ChoiceGraph.h"

#include <array>

namespace dovetail {

/// Moves costs between edges and their nodes, which changes no sum, until what all choices have in common, the bound,
/// is as large as it gets (sequential tree-reweighted message passing: Kolmogorov, 2006). What then remains of an
/// option says by how much the bound is exceeded at least where it is chosen: options that cannot be part of anything
/// better than what is known go. On trees the bound is the optimum.
class CostShifting {
public:
  /// Only what costs less than `upper`, or as much, is looked for. `graph` is to outlive this.
  CostShifting(const ChoiceGraph &graph, double upper);

  /// Goes through the graph, forth and back, as long as that gains something or until so many costs have been looked
  /// at; returns how many.
  uint64_t run(uint64_t maxWork);

  /// What nothing costs less than; infinite if nothing is possible that costs no more than what is known.
  double getBound() const { return bound; }
  /// The least that is known: `upper`, or what `getBest` costs.
  double getUpper() const { return upper; }
  /// Options that cost that; empty if there are none that cost less than what was given.
  const std::vector<unsigned> &getBest() const { return best; }
  /// Of each node those that are left, ascending.
  const std::vector<std::vector<unsigned>> &getLeft() const { return left; }
  /// The same graph, with costs as they are now: what choices cost beyond the bound. Options that went cost what they
  /// did, and are not to be asked for.
  ChoiceGraph getShifted() const;

  /// Whether something at `bound` cannot be said to cost less than `upper`, but for rounding.
  static bool isClosed(double bound, double upper);

private:
  struct Neighbour {
    unsigned edge, node;
    /// Whether the node whose neighbour this is is the first of the edge.
    bool isFirst;
  };

  void orderNodes();
  void sweep(bool isForth);
  /// Moves what the options of `node` cost at least with those of a neighbour from the edge to the node.
  void collect(unsigned node, const Neighbour &neighbour);
  /// Takes what all options of a node have in common, and removes those that cost too much. False if none is left.
  bool reduce(unsigned node);
  /// The option that costs least with the choices of those before it.
  unsigned round(unsigned node, bool isForth, const std::vector<unsigned> &options) const;
  /// Keeps options, after changing single ones as long as that helps, if they are the best that is known.
  void keep(std::vector<unsigned> options);
  bool isBefore(unsigned a, unsigned b, bool isForth) const {
    return isForth ? position[a] < position[b] : position[a] > position[b];
  }
  double getPairCost(const Neighbour &neighbour, unsigned option, unsigned other) const;

  const ChoiceGraph &graph;
  std::vector<std::vector<Neighbour>> neighboursOf;
  std::vector<unsigned> order, position;
  std::vector<std::vector<unsigned>> left;
  /// What options still cost by themselves, and what was moved from each edge to the options of its two nodes.
  std::vector<std::vector<double>> rest;
  std::vector<std::array<std::vector<double>, 2>> moved;
  /// What was left of options when all of their edges had given what they could.
  std::vector<std::vector<double>> excess;
  std::vector<double> least, differences;
  double bound = 0, upper;
  std::vector<unsigned> best;
  size_t removed = 0;
  uint64_t work = 0;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_SEARCH_COSTSHIFTING_H
