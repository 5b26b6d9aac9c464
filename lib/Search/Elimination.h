//===- Elimination.h - Least costs by removal of nodes ----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Elimination, which solves a ChoiceGraph that is narrow.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SEARCH_ELIMINATION_H
#define DOVETAIL_LIB_SEARCH_ELIMINATION_H

#include "dovetail/Search/ChoiceGraph.h"

#include <set>

namespace dovetail {

/// Removes one node after the other, those that leave the smallest tables first: the least that a node's options can
/// add is a cost of the neighbours' choices together (variable elimination, also known as nonserial dynamic
/// programming: Bertele and Brioschi, 1972).
class Elimination {
public:
  /// `graph` is to outlive this.
  explicit Elimination(const ChoiceGraph &graph);

  /// Entries of the largest table, and costs to be looked at: known before anything is done.
  double getLargestTable() const { return largestTable; }
  double getWork() const { return work; }

  /// The least cost, and options that cost that: of equal ones those of lower numbers, as far as the order tells.
  double run();
  std::vector<unsigned> choose() const;

private:
  /// Costs of the options of some nodes together, ascending, the last one's varying fastest.
  struct Table {
    std::vector<unsigned> nodes;
    std::vector<double> costs;
  };

  bool isFixed(unsigned node) const { return graph.getNumOptions(node) == 1; }
  void findOrder();
  void add(Table table);
  void remove(unsigned node);
  /// The costs of a table with the options of `node` varying fastest.
  std::vector<double> withFastest(const Table &table, unsigned node) const;
  /// What the options of `node` add at least, for the choices of all others in `tables`.
  Table minimize(unsigned node, const std::vector<const Table *> &tables) const;

  const ChoiceGraph &graph;
  std::vector<unsigned> order;
  double largestTable = 0, work = 0;
  std::vector<Table> tables;
  std::vector<std::set<unsigned>> tablesOf;
  /// In the order in which nodes go, the tables that said what their options cost.
  std::vector<std::vector<Table>> removed;
  double constant = 0;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_SEARCH_ELIMINATION_H
