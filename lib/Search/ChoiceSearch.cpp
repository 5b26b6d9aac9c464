//===- ChoiceSearch.cpp - Search for the least cost of choices ------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements ChoiceSearch.
//
//===----------------------------------------------------------------------===//

#include "ChoiceSearch.h"
#include "CostShifting.h"
#include "DominatedOptions.h"
#include "Elimination.h"

#include "dovetail/runtime/Interruption.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace dovetail;

/// What parts may cost beyond what is known, so that what is known is found again.
static constexpr double kSlack = 1e-9;

/// The graph with these options alone, of each node one at least.
static ChoiceGraph restrict(const ChoiceGraph &graph, const std::vector<std::vector<unsigned>> &left) {
  ChoiceGraph result;
  for (auto [node, options] : llvm::enumerate(left)) {
    std::vector<double> costs;
    for (unsigned option : options)
      costs.push_back(graph.getCosts(node)[option]);
    result.addNode(std::move(costs));
  }
  // Edges of the same nodes become one.
  std::map<std::pair<unsigned, unsigned>, std::vector<double>> sums;
  for (const ChoiceGraph::Edge &edge : graph.getEdges()) {
    bool isOrdered = edge.a < edge.b;
    auto key = isOrdered ? std::pair(edge.a, edge.b) : std::pair(edge.b, edge.a);
    std::vector<double> &sum = sums[key];
    sum.resize(left[key.first].size() * left[key.second].size());
    size_t width = graph.getNumOptions(edge.b), index = 0;
    for (unsigned first : left[key.first])
      for (unsigned second : left[key.second]) {
        auto [a, b] = isOrdered ? std::pair(first, second) : std::pair(second, first);
        sum[index++] += (*edge.costs)[a * width + b];
      }
  }
  for (auto &[nodes, costs] : sums)
    result.addEdge(nodes.first, nodes.second, std::make_shared<const std::vector<double>>(std::move(costs)));
  return result;
}

/// Divides a graph into parts that are connected by nodes with several options. What the choices of all others cost is
/// added to `constant`, or to the nodes of the parts.
static std::vector<ReducedGraph> divide(const ChoiceGraph &graph, double &constant) {
  std::vector<ReducedGraph> parts;
  std::vector<std::vector<unsigned>> neighbours(graph.getNumNodes());
  auto isFixed = [&](unsigned node) { return graph.getNumOptions(node) == 1; };
  std::vector<std::vector<double>> costs;
  for (unsigned node = 0; node < graph.getNumNodes(); ++node)
    costs.push_back(graph.getCosts(node));
  for (const ChoiceGraph::Edge &edge : graph.getEdges()) {
    if (isFixed(edge.a) || isFixed(edge.b)) {
      // There is a row or a column.
      for (auto [cost, more] : llvm::zip_equal(costs[isFixed(edge.a) ? edge.b : edge.a], *edge.costs))
        cost += more;
      continue;
    }
    neighbours[edge.a].push_back(edge.b);
    neighbours[edge.b].push_back(edge.a);
  }
  std::vector<std::pair<unsigned, unsigned>> places(graph.getNumNodes());
  std::vector<bool> seen(graph.getNumNodes());
  for (unsigned start = 0; start < graph.getNumNodes(); ++start) {
    if (isFixed(start))
      constant += costs[start][0];
    if (isFixed(start) || seen[start])
      continue;
    ReducedGraph &part = parts.emplace_back();
    part.nodes.push_back(start);
    seen[start] = true;
    for (size_t i = 0; i < part.nodes.size(); ++i)
      for (unsigned next : neighbours[part.nodes[i]])
        if (!seen[next]) {
          seen[next] = true;
          part.nodes.push_back(next);
        }
    llvm::sort(part.nodes);
    for (unsigned node : part.nodes)
      places[node] = {parts.size() - 1, part.graph.addNode(std::move(costs[node]))};
  }
  for (const ChoiceGraph::Edge &edge : graph.getEdges())
    if (!isFixed(edge.a) && !isFixed(edge.b))
      parts[places[edge.a].first].graph.addEdge(places[edge.a].second, places[edge.b].second, edge.costs);
  return parts;
}

/// Costs that are looked at to find dominated options, at least.
static double getDominanceWork(const ChoiceGraph &graph) {
  double work = 0;
  for (const ChoiceGraph::Edge &edge : graph.getEdges())
    work += static_cast<double>(edge.costs->size()) *
            static_cast<double>(graph.getNumOptions(edge.a) + graph.getNumOptions(edge.b));
  return work;
}

ChoiceGraph::Solution ChoiceSearch::solve(const ChoiceGraph &graph, double upper, bool isOriginal) {
  CostShifting shifting(graph, upper);
  // It is not to take longer than what it may save.
  double affordable =
      std::min(Elimination(graph).getWork(), static_cast<double>(limits.work - std::min(work, limits.work)));
  work += shifting.run(static_cast<uint64_t>(affordable));
  ChoiceGraph::Solution known{shifting.getBest(),
                              shifting.getBest().empty() ? ChoiceGraph::impossible : shifting.getUpper(),
                              shifting.getBound()};
  bool isClosed = CostShifting::isClosed(shifting.getBound(), shifting.getUpper());
  if (shifting.getBound() == ChoiceGraph::impossible || (isClosed && !isOriginal))
    return known;

  // Of options that cost as much those of lower numbers are left.
  std::vector<std::vector<unsigned>> left = shifting.getLeft();
  ChoiceGraph reduced = restrict(isOriginal ? graph : shifting.getShifted(), left);
  // To find those takes as long as some eliminations.
  std::vector<std::vector<unsigned>> kept = Elimination(reduced).getWork() > getDominanceWork(reduced)
                                                ? removeDominatedOptions(reduced)
                                                : reduced.getAllOptions();
  reduced = restrict(reduced, kept);
  for (auto [node, options] : llvm::enumerate(kept))
    for (unsigned &option : options)
      option = left[node][option];

  ChoiceGraph::Solution found;
  for (const std::vector<unsigned> &options : kept)
    found.options.push_back(options.front());
  double constant = isOriginal ? 0 : shifting.getBound();
  std::vector<ReducedGraph> parts = divide(reduced, constant);
  // Those that take least first. What none of the others costs less than is left to each.
  std::vector<std::pair<double, size_t>> order;
  for (auto [number, part] : llvm::enumerate(parts))
    order.push_back({Elimination(part.graph).getWork(), number});
  llvm::sort(order);
  found.cost = found.bound = constant;
  for (auto [effort, number] : order) {
    const ReducedGraph &part = parts[number];
    double most = (shifting.getUpper() - found.bound) * (1 + kSlack) + kSlack * shifting.getUpper();
    ChoiceGraph::Solution ofPart = solvePart(part.graph, most, isOriginal);
    found.bound += ofPart.bound;
    found.cost += ofPart.cost;
    for (auto [node, option] : llvm::zip(part.nodes, ofPart.options))
      found.options[node] = kept[node][option];
  }
  found.bound = std::max(found.bound, shifting.getBound());
  if (!(found.cost <= known.cost)) {
    known.bound = std::min(found.bound, known.cost);
    return known;
  }
  return found;
}

ChoiceGraph::Solution ChoiceSearch::solvePart(const ChoiceGraph &part, double upper, bool isOriginal) {
  Elimination elimination(part);
  if (elimination.getLargestTable() > static_cast<double>(limits.tableSize) ||
      elimination.getWork() > static_cast<double>(limits.work) - static_cast<double>(work))
    return isOriginal ? solve(part, upper, /*isOriginal=*/false) : branch(part, upper);
  work += static_cast<uint64_t>(elimination.getWork());
  double cost = elimination.run();
  return {elimination.choose(), cost, cost};
}

ChoiceGraph::Solution ChoiceSearch::branch(const ChoiceGraph &part, double upper) {
  // With the choice of a node with many neighbours much falls apart.
  std::vector<double> degrees(part.getNumNodes());
  for (const ChoiceGraph::Edge &edge : part.getEdges()) {
    degrees[edge.a] += std::log2(part.getNumOptions(edge.b));
    degrees[edge.b] += std::log2(part.getNumOptions(edge.a));
  }
  unsigned chosen = std::max_element(degrees.begin(), degrees.end()) - degrees.begin();
  std::vector<std::pair<double, unsigned>> order;
  for (auto [option, cost] : llvm::enumerate(part.getCosts(chosen)))
    order.push_back({cost, option});
  for (const ChoiceGraph::Edge &edge : part.getEdges()) {
    if (edge.a != chosen && edge.b != chosen)
      continue;
    size_t width = part.getNumOptions(edge.b);
    std::vector<double> least(order.size(), ChoiceGraph::impossible);
    for (auto [index, cost] : llvm::enumerate(*edge.costs)) {
      double &entry = least[edge.a == chosen ? index / width : index % width];
      entry = std::min(entry, cost);
    }
    for (auto &[cost, option] : order)
      cost += least[option];
  }
  llvm::sort(order);
  std::vector<std::vector<unsigned>> left = part.getAllOptions();
  ChoiceGraph::Solution best;
  best.bound = ChoiceGraph::impossible;
  for (auto [least, option] : order) {
    double bound = least;
    bool isOpen = !CostShifting::isClosed(least, upper);
    exhausted |= isOpen && work >= limits.work;
    if (isOpen && work < limits.work && !runtime::isInterrupted()) {
      left[chosen] = {option};
      ChoiceGraph::Solution found = solve(restrict(part, left), upper, /*isOriginal=*/false);
      bound = std::max(bound, found.bound);
      if (!found.options.empty() && found.cost < std::min(upper, best.cost)) {
        found.options[chosen] = option;
        found.bound = best.bound;
        best = std::move(found);
        upper = best.cost;
      }
    }
    best.bound = std::min(best.bound, bound);
  }
  best.bound = std::min(best.bound, upper);
  return best;
}
