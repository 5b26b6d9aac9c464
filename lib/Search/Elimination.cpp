//===- Elimination.cpp - Least costs by removal of nodes ------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements eliminate: nodes are removed in the order of the tables that they leave.
//
//===----------------------------------------------------------------------===//

#include "Elimination.h"
#include "LeastCost.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace dovetail;

Elimination::Elimination(const ChoiceGraph &graph) : graph(graph), tablesOf(graph.getNumNodes()) { findOrder(); }

void Elimination::findOrder() {
  std::vector<std::set<unsigned>> neighbours(graph.getNumNodes());
  // What has one option connects nothing: most of a graph, where little is to be decided.
  for (const ChoiceGraph::Edge &edge : graph.getEdges()) {
    if (isFixed(edge.a) || isFixed(edge.b))
      continue;
    neighbours[edge.a].insert(edge.b);
    neighbours[edge.b].insert(edge.a);
  }
  auto getTableSize = [&](unsigned node) {
    double size = 1;
    for (unsigned neighbour : neighbours[node])
      size *= static_cast<double>(graph.getNumOptions(neighbour));
    return size;
  };
  std::vector<double> keys(graph.getNumNodes());
  std::set<std::pair<double, unsigned>> queue;
  for (unsigned node = 0; node < keys.size(); ++node)
    queue.insert({keys[node] = getTableSize(node), node});
  while (!queue.empty()) {
    auto [size, node] = *queue.begin();
    queue.erase(queue.begin());
    order.push_back(node);
    largestTable = std::max(largestTable, size);
    work += size * static_cast<double>(graph.getNumOptions(node));
    for (unsigned neighbour : neighbours[node]) {
      neighbours[neighbour].erase(node);
      for (unsigned other : neighbours[node])
        if (other != neighbour)
          neighbours[neighbour].insert(other);
    }
    for (unsigned neighbour : neighbours[node]) {
      queue.erase({keys[neighbour], neighbour});
      queue.insert({keys[neighbour] = getTableSize(neighbour), neighbour});
    }
  }
}

void Elimination::add(Table table) {
  if (table.nodes.empty()) {
    constant += table.costs[0];
    return;
  }
  for (unsigned node : table.nodes)
    tablesOf[node].insert(tables.size());
  tables.push_back(std::move(table));
}

std::vector<double> Elimination::withFastest(const Table &table, unsigned node) const {
  // Options of nodes before it, of it, and of those after it.
  size_t before = 1, after = 1, options = graph.getNumOptions(node);
  for (unsigned other : table.nodes)
    (other < node ? before : after) *= other == node ? 1 : graph.getNumOptions(other);
  if (after == 1)
    return table.costs;
  std::vector<double> costs(table.costs.size());
  for (size_t i = 0; i < before; ++i)
    for (size_t option = 0; option < options; ++option)
      for (size_t j = 0; j < after; ++j)
        costs[(i * after + j) * options + option] = table.costs[(i * options + option) * after + j];
  return costs;
}

Elimination::Table Elimination::minimize(unsigned node, const std::vector<const Table *> &parts) const {
  Table result;
  for (const Table *part : parts)
    for (unsigned other : part->nodes)
      if (other != node)
        result.nodes.push_back(other);
  std::sort(result.nodes.begin(), result.nodes.end());
  result.nodes.erase(std::unique(result.nodes.begin(), result.nodes.end()), result.nodes.end());
  size_t size = 1;
  for (unsigned other : result.nodes)
    size *= graph.getNumOptions(other);
  result.costs.resize(size);

  // Of each part the node's options are to lie side by side, and of the result those of the last other node: what does
  // not depend on that is added up once.
  size_t numOptions = graph.getNumOptions(node), last = result.nodes.size() - 1;
  std::vector<std::vector<double>> aligned;
  std::vector<std::vector<size_t>> strides(parts.size(), std::vector<size_t>(result.nodes.size()));
  for (size_t i = 0; i < parts.size(); ++i) {
    aligned.push_back(withFastest(*parts[i], node));
    size_t stride = numOptions;
    for (unsigned other : llvm::reverse(parts[i]->nodes))
      if (other != node) {
        strides[i][std::lower_bound(result.nodes.begin(), result.nodes.end(), other) - result.nodes.begin()] = stride;
        stride *= graph.getNumOptions(other);
      }
  }
  std::vector<size_t> choice(result.nodes.size()), offsets(parts.size());
  std::vector<double> outer(numOptions), sums(numOptions);
  size_t width = result.nodes.empty() ? 1 : graph.getNumOptions(result.nodes[last]);
  auto isInner = [&](size_t part) { return !result.nodes.empty() && strides[part][last] > 0; };
  auto addTo = [&](std::vector<double> &to, size_t part, size_t offset) {
    const double *entry = aligned[part].data() + offset;
    for (size_t option = 0; option < numOptions; ++option)
      to[option] += entry[option];
  };
  for (size_t first = 0; first < size; first += width) {
    std::fill(outer.begin(), outer.end(), 0);
    for (size_t i = 0; i < parts.size(); ++i)
      if (!isInner(i))
        addTo(outer, i, offsets[i]);
    for (size_t inner = 0; inner < width; ++inner) {
      sums = outer;
      for (size_t i = 0; i < parts.size(); ++i)
        if (isInner(i))
          addTo(sums, i, offsets[i] + inner * strides[i][last]);
      result.costs[first + inner] = findLeast(sums);
    }
    for (size_t n = last; n-- > 0 && n < choice.size();) {
      ++choice[n];
      for (size_t i = 0; i < parts.size(); ++i)
        offsets[i] += strides[i][n];
      if (choice[n] < graph.getNumOptions(result.nodes[n]))
        break;
      for (size_t i = 0; i < parts.size(); ++i)
        offsets[i] -= choice[n] * strides[i][n];
      choice[n] = 0;
    }
  }
  return result;
}

void Elimination::remove(unsigned node) {
  std::vector<const Table *> parts;
  for (unsigned number : tablesOf[node])
    parts.push_back(&tables[number]);
  Table result = minimize(node, parts);
  std::vector<Table> &entry = removed.emplace_back();
  for (unsigned number : tablesOf[node]) {
    for (unsigned other : tables[number].nodes)
      if (other != node)
        tablesOf[other].erase(number);
    entry.push_back(std::move(tables[number]));
  }
  add(std::move(result));
}

double Elimination::run() {
  for (unsigned node = 0; node < graph.getNumNodes(); ++node)
    add({{node}, graph.getCosts(node)});
  for (const ChoiceGraph::Edge &edge : graph.getEdges()) {
    if (isFixed(edge.a) || isFixed(edge.b)) {
      // There is a row or a column.
      add({{isFixed(edge.a) ? edge.b : edge.a}, *edge.costs});
      continue;
    }
    if (edge.a < edge.b) {
      add({{edge.a, edge.b}, *edge.costs});
      continue;
    }
    Table table{{edge.b, edge.a}, {}};
    size_t width = graph.getNumOptions(edge.b);
    for (size_t b = 0; b < width; ++b)
      for (size_t a = 0; a < graph.getNumOptions(edge.a); ++a)
        table.costs.push_back((*edge.costs)[a * width + b]);
    add(std::move(table));
  }
  for (unsigned node : order)
    remove(node);
  return constant;
}

std::vector<unsigned> Elimination::choose() const {
  std::vector<unsigned> options(graph.getNumNodes());
  for (size_t i = order.size(); i-- > 0;) {
    unsigned removedNode = order[i];
    double best = ChoiceGraph::impossible;
    for (unsigned option = 0; option < graph.getNumOptions(removedNode); ++option) {
      double cost = 0;
      for (const Table &table : removed[i]) {
        size_t index = 0;
        for (unsigned node : table.nodes)
          index = index * graph.getNumOptions(node) + (node == removedNode ? option : options[node]);
        cost += table.costs[index];
      }
      if (cost < best) {
        best = cost;
        options[removedNode] = option;
      }
    }
  }
  return options;
}
