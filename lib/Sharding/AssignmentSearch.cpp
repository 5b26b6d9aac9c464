//===- AssignmentSearch.cpp - Solutions of the graph of choices -----------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Searches the graph of choices, with a price of memory where that is limited.
//
//===----------------------------------------------------------------------===//

#include "AssignmentProblem.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

/// How often the price of memory is raised, tenfold each time, and then halved towards the least that suffices.
static constexpr int kMaxRaises = 12;
static constexpr int kMaxHalvings = 5;
/// Of the work that is left, what one of those searches may take.
static constexpr double kShareOfOne = 0.5;
/// Searches for what takes least memory, each of which knows more about where most is used.
static constexpr int kMaxSearchesForLeast = 8;

ChoiceGraph::Solution AssignmentProblem::search(double share) {
  SearchLimits limits;
  limits.work = static_cast<uint64_t>(share * static_cast<double>(goal.work - std::min(work, goal.work)));
  ChoiceGraph::Solution solution = graph.solve(limits);
  work += solution.work;
  isCut |= solution.isCut;
  return solution;
}

ChoiceGraph::Solution AssignmentProblem::follow() {
  std::vector<std::vector<const ChoiceGraph::Edge *>> edgesOf(graph.getNumNodes());
  for (const ChoiceGraph::Edge &edge : graph.getEdges()) {
    edgesOf[edge.a].push_back(&edge);
    edgesOf[edge.b].push_back(&edge);
  }
  ChoiceGraph::Solution solution;
  solution.options.resize(graph.getNumNodes());
  std::vector<bool> isDecided(graph.getNumNodes());
  auto decide = [&](unsigned node, const std::vector<LoopOption> *list) {
    if (isDecided[node])
      return;
    std::tuple<double, double, double> least(ChoiceGraph::impossible, 0, 0);
    for (unsigned option = 0; option < graph.getNumOptions(node); ++option) {
      double moved = 0, splits = 0;
      for (const ChoiceGraph::Edge *edge : edgesOf[node]) {
        unsigned other = edge->a == node ? edge->b : edge->a;
        auto [a, b] =
            edge->a == node ? std::pair(option, solution.options[other]) : std::pair(solution.options[other], option);
        if (isDecided[other])
          moved += (*edge->costs)[a * graph.getNumOptions(edge->b) + b];
      }
      if (list && goal.following == Following::Inputs)
        for (DimShardingAttr loop : (*list)[option].loops)
          splits += static_cast<double>(loop.getAxes().size());
      std::tuple key(moved, splits, graph.getCosts(node)[option]);
      if (key < least) {
        least = key;
        solution.options[node] = option;
      }
    }
    isDecided[node] = true;
  };
  for (const auto &[value, source] : sources) {
    Operation *op = value.getDefiningOp();
    // Arguments that are left open are given to all: what does not split them is the last of their states.
    if (!op) {
      solution.options[source.node] = graph.getNumOptions(source.node) - 1;
      isDecided[source.node] = true;
    }
    auto list = options.find(op);
    decide(source.node, list == options.end() ? nullptr : &list->second);
    const Source *from = &source;
    if (auto entry = pinned.find(value); entry != pinned.end()) {
      decide(entry->second.node, nullptr);
      from = &entry->second;
    }
    // Each user gets what it needs of the value as it is.
    if (auto form = forms.find(value); form != forms.end()) {
      solution.options[form->second.node] =
          llvm::find(form->second.states, getState(solution, *from)) - form->second.states.begin();
      isDecided[form->second.node] = true;
    }
  }
  for (unsigned node = 0; node < graph.getNumNodes(); ++node)
    decide(node, nullptr);
  solution.cost = graph.evaluate(solution.options);
  return solution;
}

ChoiceGraph::Solution AssignmentProblem::searchFreely(Peak &atMost) {
  ChoiceGraph::Solution solution = search(goal.memory || !weights.empty() ? kShareOfOne : 1);
  if (weights.empty() || goal.seed || goal.objective != Objective::Memory || !solution.isPossible())
    return solution;
  double bound = solution.bound;
  Peak peak;
  ChoiceGraph::Solution found = solution;
  Expectation least = predict(solution, &peak);
  for (int searches = 1; searches < kMaxSearchesForLeast; ++searches) {
    size_t known = atMost.gathered.size();
    atMost.gathered.insert(peak.gathered.begin(), peak.gathered.end());
    if (atMost.gathered.size() == known)
      break;
    setWeightCosts(0, atMost);
    found = search(kShareOfOne);
    Expectation expected = predict(found, &peak);
    if (std::pair(expected.getMemory(), expected.seconds) < std::pair(least.getMemory(), least.seconds)) {
      solution = found;
      least = expected;
    }
  }
  solution.cost = graph.evaluate(solution.options);
  solution.bound = bound;
  return solution;
}

ChoiceGraph::Solution AssignmentProblem::searchWithin(double memory) {
  Peak peak, atMost;
  ChoiceGraph::Solution solution = searchFreely(atMost);
  if (!solution.isPossible())
    return solution;
  Expectation expected = predict(solution, &peak);
  if (expected.getMemory() <= memory)
    return solution;
  double unlimited = solution.bound;
  // What memory costs at first: not less than it might gain.
  double price = std::max(solution.cost, 1e-9) / std::max(expected.getMemory(), 1.0), tooLow = 0;
  std::optional<ChoiceGraph::Solution> fitting;
  ChoiceGraph::Solution least = solution;
  double leastMemory = expected.getMemory();
  std::vector<std::pair<unsigned, std::vector<double>>> own;
  for (auto &[op, list] : options) {
    unsigned node = sources[op->getResult(0)].node;
    own.push_back({node, graph.getCosts(node)});
  }
  for (int raises = 0, halvings = 0; raises < kMaxRaises && halvings < kMaxHalvings;) {
    atMost.values.insert(peak.values.begin(), peak.values.end());
    atMost.gathered.insert(peak.gathered.begin(), peak.gathered.end());
    for (auto [entry, ofOperation] : llvm::zip_equal(options, own)) {
      auto &[op, list] = entry;
      std::vector<double> sums = ofOperation.second;
      for (auto [cost, option] : llvm::zip_equal(sums, list)) {
        bool isLive = llvm::any_of(op->getResults(), [&](Value result) { return atMost.values.contains(result); });
        cost += price * (goal.weightFactor * option.weightBytes + (isLive ? option.resultBytes : 0));
      }
      graph.setCosts(ofOperation.first, std::move(sums));
    }
    if (!goal.seed)
      setWeightCosts(price, atMost);
    solution = search(kShareOfOne);
    // The limit of work may leave nothing.
    if (!solution.isPossible())
      break;
    expected = predict(solution, &peak);
    bool fits = expected.getMemory() <= memory;
    if (expected.getMemory() < leastMemory) {
      leastMemory = expected.getMemory();
      least = solution;
    }
    if (fits) {
      fitting = solution;
      ++halvings;
      price = tooLow == 0 ? price / 10 : std::sqrt(price * tooLow);
    } else {
      tooLow = price;
      fitting ? ++halvings : ++raises;
      price *= fitting ? 2 : 10;
    }
  }
  for (auto &[node, costs] : own)
    graph.setCosts(node, std::move(costs));
  if (!goal.seed)
    setWeightCosts(0, atMost);
  solution = fitting ? *fitting : least;
  // All weights that cost alike are gathered at the same price, though fewer of them may do.
  if (fitting && !goal.seed)
    weights.holdWithin(solution, memory - predict(solution).getMemory());
  solution.cost = graph.evaluate(solution.options);
  solution.bound = unlimited;
  return solution;
}
