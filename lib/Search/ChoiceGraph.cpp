//===- ChoiceGraph.cpp - Choices that cost by themselves and in pairs -----===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements ChoiceGraph.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Search/ChoiceGraph.h"

#include "ChoiceSearch.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <random>

using namespace dovetail;

unsigned ChoiceGraph::addNode(std::vector<double> costs) {
  assert(!costs.empty() && "nothing to choose from");
  nodes.push_back(std::move(costs));
  return nodes.size() - 1;
}

void ChoiceGraph::setCosts(unsigned node, std::vector<double> costs) {
  assert(costs.size() == nodes[node].size() && "costs of another node");
  nodes[node] = std::move(costs);
}

unsigned ChoiceGraph::addEdge(unsigned a, unsigned b, EdgeCosts costs) {
  assert(a != b && costs->size() == nodes[a].size() * nodes[b].size() && "costs of other nodes");
  edges.push_back({a, b, std::move(costs)});
  return edges.size() - 1;
}

void ChoiceGraph::setEdge(unsigned edge, EdgeCosts costs) {
  assert(costs->size() == edges[edge].costs->size() && "costs of another edge");
  edges[edge].costs = std::move(costs);
}

void ChoiceGraph::randomize(uint64_t seed) {
  // The library's distributions differ from one implementation to another.
  std::mt19937_64 random(seed);
  for (std::vector<double> &costs : nodes)
    for (double &cost : costs)
      if (cost < impossible)
        cost = static_cast<double>(random() >> 32);
  std::vector<Edge> kept;
  for (Edge &edge : edges) {
    std::vector<double> costs(*edge.costs);
    for (double &cost : costs)
      cost = cost < impossible ? 0 : impossible;
    if (std::find(costs.begin(), costs.end(), impossible) != costs.end())
      kept.push_back({edge.a, edge.b, std::make_shared<const std::vector<double>>(std::move(costs))});
  }
  edges = std::move(kept);
}

std::vector<std::vector<unsigned>> ChoiceGraph::getAllOptions() const {
  std::vector<std::vector<unsigned>> options;
  for (const std::vector<double> &costs : nodes) {
    options.emplace_back(costs.size());
    std::iota(options.back().begin(), options.back().end(), 0);
  }
  return options;
}

ChoiceGraph::Solution ChoiceGraph::solve(const SearchLimits &limits) const {
  ChoiceSearch search(limits);
  Solution solution = search.solve(*this, impossible, /*isOriginal=*/true);
  solution.work = search.getWork();
  solution.isCut = search.isExhausted();
  // What is impossible is so with any options.
  solution.options.resize(nodes.size());
  solution.cost = evaluate(solution.options);
  solution.bound = std::min(solution.bound, solution.cost);
  return solution;
}

double ChoiceGraph::evaluate(const std::vector<unsigned> &options) const {
  double cost = 0;
  for (unsigned node = 0; node < nodes.size(); ++node)
    cost += nodes[node][options[node]];
  for (const Edge &edge : edges)
    cost += (*edge.costs)[options[edge.a] * nodes[edge.b].size() + options[edge.b]];
  return cost;
}
