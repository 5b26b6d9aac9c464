//===- ChoiceSearch.h - Search for the least cost of choices ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares ChoiceSearch, which solves a ChoiceGraph part by part.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_SEARCH_CHOICESEARCH_H
#define DOVETAIL_LIB_SEARCH_CHOICESEARCH_H

#include "dovetail/Search/ChoiceGraph.h"

namespace dovetail {

/// What is left of a graph, with the nodes and options that were there before.
struct ReducedGraph {
  ChoiceGraph graph;
  std::vector<unsigned> nodes;
  std::vector<std::vector<unsigned>> options;
};

/// Branch and bound. Options that cost too much whatever else is chosen go (`CostShifting`), then those that another
/// one is no worse than. Nodes with one option left divide the graph into parts that have nothing to do with each
/// other. Each part is solved by elimination, or else with each option of one of its nodes, the most promising first.
class ChoiceSearch {
public:
  explicit ChoiceSearch(const SearchLimits &limits) : limits(limits) {}

  /// What costs less than `upper`: no options if nothing was found. Nothing costs less than the bound, or than `upper`.
  /// `isOriginal`: costs are exact; else they are rounded, and there are others that cost as much.
  ChoiceGraph::Solution solve(const ChoiceGraph &graph, double upper, bool isOriginal);

  uint64_t getWork() const { return work; }
  /// Whether the work was too much to finish.
  bool isExhausted() const { return exhausted; }

private:
  ChoiceGraph::Solution solvePart(const ChoiceGraph &part, double upper, bool isOriginal);
  ChoiceGraph::Solution branch(const ChoiceGraph &part, double upper);

  const SearchLimits &limits;
  uint64_t work = 0;
  bool exhausted = false;
};

} // namespace dovetail

#endif // DOVETAIL_LIB_SEARCH_CHOICESEARCH_H
