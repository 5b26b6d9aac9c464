//===- ChoiceGraphTest.cpp - Tests of searching for the least cost --------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dovetail/Search/ChoiceGraph.h"

#include "../Layout/Random.h"

#include "gmock/gmock.h"

using namespace dovetail;
using dovetail::layout::forRandomCases;
using dovetail::layout::Random;
using testing::ElementsAre;

namespace {

ChoiceGraph::EdgeCosts edge(std::vector<double> costs) {
  return std::make_shared<const std::vector<double>>(std::move(costs));
}

/// Costs are small integers, so that sums are exact and many are equal; some pairs are impossible.
std::vector<double> randomCosts(Random &random, size_t size, int impossible) {
  std::vector<double> costs;
  for (size_t i = 0; i < size; ++i)
    costs.push_back(random.chance(impossible) ? ChoiceGraph::impossible : static_cast<double>(random.below(10)));
  return costs;
}

ChoiceGraph randomGraph(Random &random, int maxNodes) {
  ChoiceGraph graph;
  int nodes = 1 + random.below(maxNodes), density = random.below(100);
  int impossible = random.chance(50) ? 0 : random.below(30);
  for (int node = 0; node < nodes; ++node)
    graph.addNode(randomCosts(random, 1 + random.below(4), impossible / 4));
  for (int a = 0; a < nodes; ++a)
    for (int b = 0; b < nodes; ++b)
      if (a != b && random.chance(density))
        graph.addEdge(a, b, edge(randomCosts(random, graph.getNumOptions(a) * graph.getNumOptions(b), impossible)));
  return graph;
}

/// The least cost of all ways to choose.
double findLeastCost(const ChoiceGraph &graph) {
  std::vector<unsigned> options(graph.getNumNodes());
  double least = ChoiceGraph::impossible;
  while (true) {
    least = std::min(least, graph.evaluate(options));
    size_t node = 0;
    while (node < options.size() && ++options[node] == graph.getNumOptions(node))
      options[node++] = 0;
    if (node == options.size())
      return least;
  }
}

} // namespace

TEST(ChoiceGraphTest, AChainIsDecidedAsAWhole) {
  ChoiceGraph graph;
  unsigned a = graph.addNode({0, 1}), b = graph.addNode({0, 0}), c = graph.addNode({5, 0});
  // To change sides costs 3.
  auto change = edge({0, 3, 3, 0});
  graph.addEdge(a, b, change);
  graph.addEdge(b, c, change);
  ChoiceGraph::Solution solution = graph.solve();
  EXPECT_THAT(solution.options, ElementsAre(1, 1, 1));
  EXPECT_EQ(solution.cost, 1);
  EXPECT_EQ(solution.bound, 1);
}

TEST(ChoiceGraphTest, OfEqualOptionsTheFirstIsChosen) {
  ChoiceGraph graph;
  graph.addNode({2, 1, 1});
  EXPECT_THAT(graph.solve().options, ElementsAre(1));
}

TEST(ChoiceGraphTest, EdgesReadTheirNodesInTheOrderGiven) {
  ChoiceGraph graph;
  unsigned a = graph.addNode({0, 0}), b = graph.addNode({0, 0, 0});
  graph.addEdge(b, a, edge({9, 9, 9, 9, 0, 9}));
  EXPECT_THAT(graph.solve().options, ElementsAre(0, 2));
}

TEST(ChoiceGraphTest, EdgesMayChange) {
  ChoiceGraph graph;
  unsigned a = graph.addNode({0, 0}), b = graph.addNode({0, 0});
  graph.addEdge(a, b, edge({0, 0, 0, 0}));
  unsigned second = graph.addEdge(a, b, edge({1, 2, 2, 2}));
  EXPECT_THAT(graph.solve().options, ElementsAre(0, 0));
  graph.setEdge(second, edge({3, 3, 2, 3}));
  EXPECT_THAT(graph.solve().options, ElementsAre(1, 0));
  EXPECT_EQ(graph.solve().cost, 2);
}

TEST(ChoiceGraphTest, WhatExcludesAllIsImpossible) {
  ChoiceGraph graph;
  unsigned a = graph.addNode({0, ChoiceGraph::impossible}), b = graph.addNode({0});
  graph.addEdge(a, b, edge({ChoiceGraph::impossible, 0}));
  EXPECT_FALSE(graph.solve().isPossible());
}

TEST(ChoiceGraphTest, TheOptimumIsThatOfAllChoices) {
  int possible = 0;
  forRandomCases(3000, [&](Random &random) {
    ChoiceGraph graph = randomGraph(random, 7);
    double least = findLeastCost(graph);
    ChoiceGraph::Solution solution = graph.solve();
    EXPECT_EQ(solution.cost, least);
    EXPECT_EQ(solution.bound, least);
    possible += solution.isPossible();
  });
  EXPECT_TRUE(HasFailure() || possible > 1500) << possible;
}

TEST(ChoiceGraphTest, WhereTablesAreTooLargeOptionsAreTried) {
  int possible = 0;
  forRandomCases(3000, [&](Random &random) {
    ChoiceGraph graph = randomGraph(random, 7);
    double least = findLeastCost(graph);
    // Tables of one entry: not even chains are eliminated.
    ChoiceGraph::Solution solution = graph.solve({static_cast<size_t>(1 + random.below(6))});
    EXPECT_EQ(solution.cost, least);
    EXPECT_LE(solution.bound, least);
    if (!solution.isPossible())
      return;
    // Costs are rounded when they are shifted.
    EXPECT_NEAR(solution.bound, least, 1e-6);
    ++possible;
  });
  EXPECT_TRUE(HasFailure() || possible > 1500) << possible;
}

TEST(ChoiceGraphTest, LittleWorkBoundsTheOptimum) {
  int best = 0, open = 0;
  forRandomCases(3000, [&](Random &random) {
    ChoiceGraph graph = randomGraph(random, 7);
    double least = findLeastCost(graph);
    ChoiceGraph::Solution solution = graph.solve({4, static_cast<uint64_t>(random.below(80))});
    EXPECT_LE(solution.bound, least + 1e-6);
    EXPECT_GE(solution.cost, least);
    best += solution.cost == least;
    open += solution.bound < solution.cost - 1e-6;
  });
  EXPECT_TRUE(HasFailure() || (best > 500 && open > 300)) << best << " " << open;
}

TEST(ChoiceGraphTest, AtRandomAllThatIsPossibleIsChosen) {
  ChoiceGraph graph;
  unsigned a = graph.addNode({0, 1, ChoiceGraph::impossible}), b = graph.addNode({0, 1000, 0});
  graph.addEdge(a, b, edge({0, 0, ChoiceGraph::impossible, 0, 7, ChoiceGraph::impossible, 0, 0, 0}));
  std::set<std::vector<unsigned>> chosen;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    ChoiceGraph random = graph;
    random.randomize(seed);
    chosen.insert(random.solve().options);
  }
  using Options = std::vector<unsigned>;
  EXPECT_THAT(chosen, ElementsAre(Options{0, 0}, Options{0, 1}, Options{1, 0}, Options{1, 1}));
}

TEST(ChoiceGraphTest, LongNarrowGraphsAreSolvedAsWholes) {
  // A ladder of 2000 rungs: what a network with connections across is like.
  forRandomCases(1, [&](Random &random) {
    ChoiceGraph graph;
    for (int i = 0; i < 4000; ++i)
      graph.addNode(randomCosts(random, 5, 0));
    for (unsigned i = 0; i + 2 < 4000; ++i)
      graph.addEdge(i, i + 2, edge(randomCosts(random, 25, 0)));
    for (unsigned i = 0; i < 4000; i += 2)
      graph.addEdge(i, i + 1, edge(randomCosts(random, 25, 0)));
    ChoiceGraph::Solution solution = graph.solve({5 * 5 * 5});
    EXPECT_EQ(solution.cost, solution.bound);
  });
}

TEST(ChoiceGraphTest, WideGraphsAreSearched) {
  // All nodes pay for each other's choices, so that elimination would need a table of 4^17 entries.
  forRandomCases(3, [&](Random &random) {
    ChoiceGraph graph;
    for (unsigned i = 0; i < 18; ++i) {
      graph.addNode(randomCosts(random, 4, 0));
      for (unsigned j = 0; j < i; ++j) {
        std::vector<double> costs(16);
        for (unsigned option = 0; option < 16; ++option)
          costs[option] = option % 5 == 0 ? 0 : 1 + random.below(2);
        graph.addEdge(j, i, edge(std::move(costs)));
      }
    }
    ChoiceGraph::Solution solution = graph.solve({size_t(1) << 10});
    EXPECT_NEAR(solution.bound, solution.cost, 1e-6);
  });
}
