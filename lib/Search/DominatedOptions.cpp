//===- DominatedOptions.cpp - Options that others are no worse than -------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements removeDominatedOptions.
//
//===----------------------------------------------------------------------===//

#include "DominatedOptions.h"

#include <algorithm>
#include <deque>

using namespace dovetail;

namespace {

class Remover {
public:
  explicit Remover(const ChoiceGraph &graph)
      : graph(graph), edges(graph.getEdges()), left(graph.getAllOptions()), edgesOf(graph.getNumNodes()) {
    for (unsigned edge = 0; edge < edges.size(); ++edge) {
      edgesOf[edges[edge].a].push_back(edge);
      edgesOf[edges[edge].b].push_back(edge);
    }
  }

  std::vector<std::vector<unsigned>> run();

private:
  /// Removes what it can of a node's options; true if there was something.
  bool reduce(unsigned node);
  /// Whether `option` costs at least as much as `other`, whatever neighbours choose; more if `isStrict`.
  bool isDominated(unsigned node, unsigned option, unsigned other, bool isStrict) const;

  const ChoiceGraph &graph;
  const std::vector<ChoiceGraph::Edge> &edges;
  std::vector<std::vector<unsigned>> left;
  std::vector<std::vector<unsigned>> edgesOf;
};

} // namespace

bool Remover::isDominated(unsigned node, unsigned option, unsigned other, bool isStrict) const {
  const std::vector<double> &own = graph.getCosts(node);
  if (own[option] == ChoiceGraph::impossible)
    return true;
  if (own[other] == ChoiceGraph::impossible)
    return false;
  double difference = own[option] - own[other];
  for (unsigned number : edgesOf[node]) {
    const ChoiceGraph::Edge &edge = edges[number];
    bool isFirst = edge.a == node;
    size_t width = graph.getNumOptions(edge.b);
    const double *mine = edge.costs->data() + (isFirst ? option * width : option);
    const double *its = edge.costs->data() + (isFirst ? other * width : other);
    size_t stride = isFirst ? 1 : width;
    double least = ChoiceGraph::impossible;
    for (unsigned choice : left[isFirst ? edge.b : edge.a]) {
      double first = mine[choice * stride], second = its[choice * stride];
      if (first == ChoiceGraph::impossible)
        continue;
      if (second == ChoiceGraph::impossible)
        return false;
      least = std::min(least, first - second);
    }
    // No choice of this neighbour goes with the option.
    if (least == ChoiceGraph::impossible)
      return true;
    difference += least;
  }
  return isStrict ? difference > 0 : difference >= 0;
}

bool Remover::reduce(unsigned node) {
  std::vector<unsigned> &options = left[node];
  size_t before = options.size();
  // The last ones first: of equal ones those of lower numbers are preferred.
  for (size_t i = options.size(); i-- > 0 && options.size() > 1;)
    for (unsigned other : options)
      if (other != options[i] && isDominated(node, options[i], other, other > options[i])) {
        options.erase(options.begin() + static_cast<std::ptrdiff_t>(i));
        break;
      }
  return options.size() < before;
}

std::vector<std::vector<unsigned>> Remover::run() {
  std::deque<unsigned> queue;
  std::vector<bool> isQueued(left.size(), true);
  for (unsigned node = 0; node < left.size(); ++node)
    queue.push_back(node);
  while (!queue.empty()) {
    unsigned node = queue.front();
    queue.pop_front();
    isQueued[node] = false;
    if (!reduce(node))
      continue;
    for (unsigned number : edgesOf[node]) {
      unsigned neighbour = edges[number].a == node ? edges[number].b : edges[number].a;
      if (!isQueued[neighbour] && left[neighbour].size() > 1) {
        isQueued[neighbour] = true;
        queue.push_back(neighbour);
      }
    }
  }
  return std::move(left);
}

std::vector<std::vector<unsigned>> dovetail::removeDominatedOptions(const ChoiceGraph &graph) {
  return Remover(graph).run();
}
