//===- CostShifting.cpp - Bounds of what options cost ---------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements CostShifting.
//
//===----------------------------------------------------------------------===//

#include "CostShifting.h"
#include "LeastCost.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace dovetail;

/// Sweeps at most, and the share of what is left between the bound and what is known that one has to gain.
static constexpr int kMaxSweeps = 100;
static constexpr double kLeastGain = 0.01;
/// How often each option is changed at most to improve what was found.
static constexpr int kMaxChanges = 10;
/// What costs differ by that are equal but for rounding, as a share.
static constexpr double kRounding = 1e-9;

bool CostShifting::isClosed(double bound, double upper) {
  return bound == ChoiceGraph::impossible || (upper < ChoiceGraph::impossible && bound >= upper * (1 - kRounding));
}

CostShifting::CostShifting(const ChoiceGraph &graph, double upper)
    : graph(graph), neighboursOf(graph.getNumNodes()), left(graph.getAllOptions()), upper(upper) {
  for (unsigned node = 0; node < graph.getNumNodes(); ++node)
    rest.push_back(graph.getCosts(node));
  for (auto [number, edge] : llvm::enumerate(graph.getEdges())) {
    neighboursOf[edge.a].push_back({static_cast<unsigned>(number), edge.b, true});
    neighboursOf[edge.b].push_back({static_cast<unsigned>(number), edge.a, false});
    moved.push_back(
        {std::vector<double>(graph.getNumOptions(edge.a)), std::vector<double>(graph.getNumOptions(edge.b))});
  }
  excess = rest;
  orderNodes();
}

void CostShifting::orderNodes() {
  // Neighbours stand close to each other.
  position.assign(graph.getNumNodes(), graph.getNumNodes());
  for (unsigned start = 0; start < graph.getNumNodes(); ++start) {
    if (position[start] < graph.getNumNodes())
      continue;
    size_t next = order.size();
    position[start] = order.size();
    order.push_back(start);
    for (; next < order.size(); ++next)
      for (const Neighbour &neighbour : neighboursOf[order[next]])
        if (position[neighbour.node] == graph.getNumNodes()) {
          position[neighbour.node] = order.size();
          order.push_back(neighbour.node);
        }
  }
}

double CostShifting::getPairCost(const Neighbour &neighbour, unsigned option, unsigned other) const {
  const ChoiceGraph::Edge &edge = graph.getEdges()[neighbour.edge];
  auto [a, b] = neighbour.isFirst ? std::pair(option, other) : std::pair(other, option);
  return (*edge.costs)[a * graph.getNumOptions(edge.b) + b];
}

void CostShifting::collect(unsigned node, const Neighbour &neighbour) {
  const ChoiceGraph::Edge &edge = graph.getEdges()[neighbour.edge];
  const double *costs = edge.costs->data();
  size_t width = graph.getNumOptions(edge.b);
  const std::vector<double> &others = moved[neighbour.edge][neighbour.isFirst ? 1 : 0];
  std::vector<double> &own = moved[neighbour.edge][neighbour.isFirst ? 0 : 1];
  const std::vector<unsigned> &options = left[node], &choices = left[neighbour.node];
  // Others side by side are looked at together, as long as none is missing.
  size_t first = choices.front(), end = choices.back() + 1;
  bool isDense = end - first == choices.size();
  least.assign(own.size(), ChoiceGraph::impossible);
  if (neighbour.isFirst && isDense) {
    differences.resize(choices.size());
    for (unsigned option : options) {
      const double *row = costs + option * width;
      for (size_t other = first; other < end; ++other)
        differences[other - first] = row[other] - others[other];
      least[option] = findLeast(differences);
    }
  } else if (neighbour.isFirst) {
    for (unsigned option : options)
      for (unsigned other : choices)
        least[option] = std::min(least[option], costs[option * width + other] - others[other]);
  } else {
    // What is missing among the own options does no harm.
    size_t firstOwn = options.front(), endOwn = options.back() + 1;
    for (unsigned other : choices) {
      const double *row = costs + other * width;
      for (size_t option = firstOwn; option < endOwn; ++option)
        least[option] = std::min(least[option], row[option] - others[other]);
    }
  }
  work += left[node].size() * left[neighbour.node].size();
  for (unsigned option : left[node]) {
    rest[node][option] += least[option] - own[option];
    own[option] = least[option];
  }
}

bool CostShifting::reduce(unsigned node) {
  double common = ChoiceGraph::impossible;
  for (unsigned option : left[node])
    common = std::min(common, rest[node][option]);
  bound += common;
  if (bound == ChoiceGraph::impossible)
    return false;
  double most = upper < ChoiceGraph::impossible ? upper * (1 + kRounding) : upper;
  removed += left[node].size();
  llvm::erase_if(left[node], [&](unsigned option) {
    double &cost = rest[node][option];
    cost -= common;
    return cost == ChoiceGraph::impossible || bound + cost > most;
  });
  removed -= left[node].size();
  excess[node] = rest[node];
  if (left[node].empty())
    bound = ChoiceGraph::impossible;
  return !left[node].empty();
}

unsigned CostShifting::round(unsigned node, bool isForth, const std::vector<unsigned> &options) const {
  std::pair<double, unsigned> chosen(ChoiceGraph::impossible, left[node].front());
  for (unsigned option : left[node]) {
    double cost = rest[node][option];
    for (const Neighbour &neighbour : neighboursOf[node])
      if (isBefore(neighbour.node, node, isForth)) {
        unsigned other = options[neighbour.node];
        const auto &[first, second] = moved[neighbour.edge];
        cost += getPairCost(neighbour, option, other) - (neighbour.isFirst ? first[option] : second[option]) -
                (neighbour.isFirst ? second[other] : first[other]);
      }
    chosen = std::min(chosen, {cost, option});
  }
  return chosen.second;
}

void CostShifting::keep(std::vector<unsigned> options) {
  bool changes = true;
  for (int i = 0; changes && i < kMaxChanges; ++i) {
    changes = false;
    for (unsigned node : order) {
      auto getCost = [&](unsigned option) {
        double cost = graph.getCosts(node)[option];
        for (const Neighbour &neighbour : neighboursOf[node])
          cost += getPairCost(neighbour, option, options[neighbour.node]);
        return cost;
      };
      double cost = getCost(options[node]);
      for (unsigned option : left[node])
        if (double other = getCost(option); other < cost) {
          cost = other;
          options[node] = option;
          changes = true;
        }
      work += left[node].size() * neighboursOf[node].size();
    }
  }
  if (double cost = graph.evaluate(options); cost < upper) {
    upper = cost;
    best = std::move(options);
  }
}

void CostShifting::sweep(bool isForth) {
  std::vector<unsigned> options(graph.getNumNodes());
  for (size_t i = 0; i < order.size(); ++i) {
    unsigned node = order[isForth ? i : order.size() - 1 - i];
    size_t before = 0;
    for (const Neighbour &neighbour : neighboursOf[node])
      if (isBefore(neighbour.node, node, isForth)) {
        ++before;
        collect(node, neighbour);
      }
    if (!reduce(node))
      return;
    options[node] = round(node, isForth, options);
    size_t after = neighboursOf[node].size() - before;
    if (after == 0)
      continue;
    // Those that come later divide it; what more of them came before keeps its part.
    double share = 1 / static_cast<double>(std::max(before, after));
    for (const Neighbour &neighbour : neighboursOf[node]) {
      if (isBefore(neighbour.node, node, isForth))
        continue;
      std::vector<double> &own = moved[neighbour.edge][neighbour.isFirst ? 0 : 1];
      for (unsigned option : left[node])
        own[option] -= share * rest[node][option];
    }
    double kept = before > after ? 1 - share * static_cast<double>(after) : 0;
    for (unsigned option : left[node])
      rest[node][option] *= kept;
  }
  if (!isForth)
    keep(std::move(options));
}

uint64_t CostShifting::run(uint64_t maxWork) {
  for (int i = 0; i < kMaxSweeps && work < maxWork; ++i) {
    double before = bound, known = upper;
    size_t removedBefore = removed;
    sweep(/*isForth=*/true);
    if (bound < ChoiceGraph::impossible)
      sweep(/*isForth=*/false);
    if (isClosed(bound, upper))
      break;
    bool isBetter = upper < known || removed > removedBefore;
    bool isTighter = upper == ChoiceGraph::impossible ? bound > before * (1 + kLeastGain)
                                                      : bound - before > kLeastGain * (upper - bound);
    if (i > 0 && !isBetter && !isTighter)
      break;
  }
  return work;
}

ChoiceGraph CostShifting::getShifted() const {
  ChoiceGraph shifted;
  for (const std::vector<double> &costs : rest)
    shifted.addNode(costs);
  for (auto [number, edge] : llvm::enumerate(graph.getEdges())) {
    std::vector<double> costs(*edge.costs);
    size_t width = graph.getNumOptions(edge.b);
    const auto &[first, second] = moved[number];
    for (unsigned a : left[edge.a])
      for (unsigned b : left[edge.b])
        costs[a * width + b] = std::max(costs[a * width + b] - first[a] - second[b], 0.0);
    shifted.addEdge(edge.a, edge.b, std::make_shared<const std::vector<double>>(std::move(costs)));
  }
  return shifted;
}
