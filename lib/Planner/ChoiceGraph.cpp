//===- ChoiceGraph.cpp - Choices that cost by themselves and in pairs -----===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements ChoiceGraph: elimination of nodes in the order of the tables that they leave, with mini-buckets (Dechter
// and Rish, 2003) where a table would be too large.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Planner/ChoiceGraph.h"

#include "DominatedOptions.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cassert>
#include <random>
#include <set>

using namespace dovetail;

namespace {

/// Costs of the options of some nodes together, ascending, the last one's varying fastest.
struct Table {
  std::vector<unsigned> nodes;
  std::vector<double> costs;
};

/// A node that was removed, with the tables that said what its options cost.
struct Removed {
  unsigned node;
  std::vector<Table> tables;
};

class Elimination {
public:
  Elimination(std::vector<size_t> sizes, size_t maxTableSize) : sizes(std::move(sizes)), maxTableSize(maxTableSize) {
    tablesOf.resize(this->sizes.size());
    neighbours.resize(this->sizes.size());
  }

  void add(Table table);
  /// Removes all nodes, those that leave the smallest tables first. Returns the least cost, or a bound of it.
  double run();
  /// The best options, found in the opposite order.
  std::vector<unsigned> choose() const;

private:
  /// Entries of the table that would be left without `node`.
  double getTableSize(unsigned node) const;
  void remove(unsigned node);
  /// What the options of `node` add at least, for the choices of all others in `tables`.
  Table minimize(unsigned node, const std::vector<const Table *> &tables) const;

  std::vector<size_t> sizes;
  size_t maxTableSize;
  std::vector<Table> tables;
  std::vector<std::set<unsigned>> tablesOf;
  std::vector<std::set<unsigned>> neighbours;
  std::vector<Removed> removed;
  double constant = 0;
};

} // namespace

void Elimination::add(Table table) {
  if (table.nodes.empty()) {
    constant += table.costs[0];
    return;
  }
  for (unsigned node : table.nodes) {
    tablesOf[node].insert(tables.size());
    for (unsigned other : table.nodes)
      if (other != node)
        neighbours[node].insert(other);
  }
  tables.push_back(std::move(table));
}

double Elimination::getTableSize(unsigned node) const {
  double size = 1;
  for (unsigned neighbour : neighbours[node])
    size *= static_cast<double>(sizes[neighbour]);
  return size;
}

Table Elimination::minimize(unsigned node, const std::vector<const Table *> &parts) const {
  Table result;
  for (const Table *part : parts)
    for (unsigned other : part->nodes)
      if (other != node)
        result.nodes.push_back(other);
  std::sort(result.nodes.begin(), result.nodes.end());
  result.nodes.erase(std::unique(result.nodes.begin(), result.nodes.end()), result.nodes.end());
  size_t size = 1;
  for (unsigned other : result.nodes)
    size *= sizes[other];
  result.costs.resize(size);

  // How far an entry of each part moves with a choice of the result's nodes, and with one of the node itself.
  std::vector<std::vector<size_t>> strides(parts.size(), std::vector<size_t>(result.nodes.size()));
  std::vector<size_t> own(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    size_t stride = 1;
    for (size_t n = parts[i]->nodes.size(); n-- > 0; stride *= sizes[parts[i]->nodes[n]]) {
      unsigned other = parts[i]->nodes[n];
      if (other == node)
        own[i] = stride;
      else
        strides[i][std::lower_bound(result.nodes.begin(), result.nodes.end(), other) - result.nodes.begin()] = stride;
    }
  }
  std::vector<size_t> choice(result.nodes.size()), offsets(parts.size());
  std::vector<double> sums(sizes[node]);
  for (double &cost : result.costs) {
    std::fill(sums.begin(), sums.end(), 0);
    for (size_t i = 0; i < parts.size(); ++i) {
      const double *entry = parts[i]->costs.data() + offsets[i];
      for (size_t option = 0; option < sums.size(); ++option)
        sums[option] += entry[option * own[i]];
    }
    cost = *std::min_element(sums.begin(), sums.end());
    for (size_t n = choice.size(); n-- > 0;) {
      ++choice[n];
      for (size_t i = 0; i < parts.size(); ++i)
        offsets[i] += strides[i][n];
      if (choice[n] < sizes[result.nodes[n]])
        break;
      for (size_t i = 0; i < parts.size(); ++i)
        offsets[i] -= choice[n] * strides[i][n];
      choice[n] = 0;
    }
  }
  return result;
}

void Elimination::remove(unsigned node) {
  // Parts whose table is not too large together, each of which the node may choose for by itself: a bound where there
  // are several.
  Removed entry{node, {}};
  std::vector<unsigned> numbers(tablesOf[node].begin(), tablesOf[node].end());
  std::sort(numbers.begin(), numbers.end(), [&](unsigned a, unsigned b) {
    return std::pair(tables[b].costs.size(), a) < std::pair(tables[a].costs.size(), b);
  });
  struct Part {
    std::vector<const Table *> tables;
    std::set<unsigned> nodes;
  };
  std::vector<Part> parts;
  for (unsigned number : numbers) {
    const Table &table = tables[number];
    auto fits = [&](const Part &part) {
      std::set<unsigned> nodes = part.nodes;
      nodes.insert(table.nodes.begin(), table.nodes.end());
      double size = 1;
      for (unsigned other : nodes)
        if (other != node)
          size *= static_cast<double>(sizes[other]);
      return size <= static_cast<double>(maxTableSize);
    };
    auto part = std::find_if(parts.begin(), parts.end(), fits);
    if (part == parts.end())
      part = parts.insert(parts.end(), Part());
    part->tables.push_back(&table);
    part->nodes.insert(table.nodes.begin(), table.nodes.end());
  }
  std::vector<Table> left;
  for (const Part &part : parts)
    left.push_back(minimize(node, part.tables));
  for (unsigned number : numbers) {
    for (unsigned other : tables[number].nodes)
      if (other != node)
        tablesOf[other].erase(number);
    entry.tables.push_back(std::move(tables[number]));
  }
  for (unsigned neighbour : neighbours[node])
    neighbours[neighbour].erase(node);
  neighbours[node].clear();
  tablesOf[node].clear();
  removed.push_back(std::move(entry));
  for (Table &table : left)
    add(std::move(table));
}

double Elimination::run() {
  std::vector<double> keys(sizes.size());
  std::set<std::pair<double, unsigned>> order;
  for (unsigned node = 0; node < sizes.size(); ++node)
    order.insert({keys[node] = getTableSize(node), node});
  while (!order.empty()) {
    unsigned node = order.begin()->second;
    order.erase(order.begin());
    std::set<unsigned> affected = neighbours[node];
    remove(node);
    for (unsigned neighbour : affected) {
      order.erase({keys[neighbour], neighbour});
      order.insert({keys[neighbour] = getTableSize(neighbour), neighbour});
    }
  }
  return constant;
}

std::vector<unsigned> Elimination::choose() const {
  std::vector<unsigned> options(sizes.size());
  for (auto entry = removed.rbegin(); entry != removed.rend(); ++entry) {
    double best = ChoiceGraph::impossible;
    for (unsigned option = 0; option < sizes[entry->node]; ++option) {
      double cost = 0;
      for (const Table &table : entry->tables) {
        size_t index = 0;
        for (unsigned node : table.nodes)
          index = index * sizes[node] + (node == entry->node ? option : options[node]);
        cost += table.costs[index];
      }
      if (cost < best) {
        best = cost;
        options[entry->node] = option;
      }
    }
  }
  return options;
}

unsigned ChoiceGraph::addNode(std::vector<double> costs) {
  assert(!costs.empty() && "nothing to choose from");
  nodes.push_back(std::move(costs));
  return nodes.size() - 1;
}

void ChoiceGraph::setCosts(unsigned node, std::vector<double> costs) {
  assert(costs.size() == nodes[node].size() && "costs of another node");
  nodes[node] = std::move(costs);
}

void ChoiceGraph::addEdge(unsigned a, unsigned b, EdgeCosts costs) {
  assert(a != b && costs->size() == nodes[a].size() * nodes[b].size() && "costs of other nodes");
  edges.push_back({a, b, std::move(costs)});
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

ChoiceGraph::Solution ChoiceGraph::solve(size_t maxTableSize) const {
  std::vector<PairCosts> pairs;
  for (const Edge &edge : edges)
    pairs.push_back({edge.a, edge.b, edge.costs.get()});
  std::vector<std::vector<unsigned>> left = removeDominatedOptions(nodes, pairs);
  std::vector<size_t> sizes;
  for (const std::vector<unsigned> &options : left)
    sizes.push_back(options.size());
  Elimination elimination(sizes, maxTableSize);
  for (unsigned node = 0; node < nodes.size(); ++node) {
    Table table{{node}, {}};
    for (unsigned option : left[node])
      table.costs.push_back(nodes[node][option]);
    elimination.add(std::move(table));
  }
  for (const Edge &edge : edges) {
    bool isOrdered = edge.a < edge.b;
    Table table{{std::min(edge.a, edge.b), std::max(edge.a, edge.b)}, {}};
    for (unsigned first : left[table.nodes[0]])
      for (unsigned second : left[table.nodes[1]]) {
        auto [a, b] = isOrdered ? std::pair(first, second) : std::pair(second, first);
        table.costs.push_back((*edge.costs)[a * nodes[edge.b].size() + b]);
      }
    elimination.add(std::move(table));
  }
  Solution solution;
  solution.bound = elimination.run();
  for (auto [node, option] : llvm::enumerate(elimination.choose()))
    solution.options.push_back(left[node][option]);
  solution.cost = evaluate(solution.options);
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
