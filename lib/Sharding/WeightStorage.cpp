//===- WeightStorage.cpp - How ranks store weights ------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements WeightStorage.
//
//===----------------------------------------------------------------------===//

#include "WeightStorage.h"

#include "dovetail/Layout/Cuts.h"

#include <cmath>

using namespace mlir;
using namespace dovetail;

/// How much more than in the most even way a rank may store: pieces of outer dimensions lie in one place.
static constexpr double kTolerance = 1.05;
/// Of more axes that could divide a weight, all together and each by itself.
static constexpr size_t kMaxAxes = 3;

ShardingAttr WeightStorage::divide(RankedTensorType type, ShardingAttr need, ArrayRef<StringAttr> axes) const {
  int64_t parts = getNumParts(costs.getMesh(), axes);
  std::optional<unsigned> best;
  double least = 1;
  for (auto [index, dim] : llvm::enumerate(need.getDims())) {
    auto extent = static_cast<double>(std::max<int64_t>(type.getDimSize(index), 1));
    double share = std::ceil(extent / static_cast<double>(parts)) / extent;
    if (!dim.isSplit() && (best ? kTolerance * share < least : share < 1)) {
      best = index;
      least = share;
    }
  }
  if (!best)
    return {};
  SmallVector<DimShardingAttr> dims(need.getDims());
  dims[*best] = DimShardingAttr::getCuts(axes, layout::balancedCuts(type.getDimSize(*best), parts));
  return need.withDims(dims);
}

void WeightStorage::addStates(RankedTensorType type, ShardingAttr need, llvm::SetVector<ShardingAttr> &states) {
  llvm::SmallSetVector<StringAttr, 4> taken;
  for (DimShardingAttr dim : need.getDims())
    taken.insert(dim.getAxes().begin(), dim.getAxes().end());
  SmallVector<StringAttr> free;
  for (const layout::MeshAxis &axis : costs.getMesh().getAxes())
    if (auto name = StringAttr::get(type.getContext(), axis.name); axis.size > 1 && !taken.contains(name))
      free.push_back(name);
  for (size_t chosen = 1, all = size_t(1) << free.size(); chosen < all; ++chosen) {
    bool isOne = (chosen & (chosen - 1)) == 0;
    if (free.size() > kMaxAxes && !isOne && chosen + 1 != all)
      continue;
    SmallVector<StringAttr> axes;
    for (auto [number, axis] : llvm::enumerate(free))
      if (chosen >> number & 1)
        axes.push_back(axis);
    if (ShardingAttr stored = divide(type, need, axes))
      states.insert(stored);
  }
}

bool WeightStorage::add(Value value, std::vector<Use> uses, ChoiceGraph &graph) {
  auto type = cast<RankedTensorType>(value.getType());
  llvm::SetVector<ShardingAttr> needs, states;
  for (const Use &use : uses)
    needs.insert(use.needs.begin(), use.needs.end());
  states.insert(ShardingAttr());
  for (ShardingAttr need : needs)
    addStates(type, need, states);
  if (states.size() == 1)
    return false;
  Weight weight{
      type, graph.addNode(std::vector<double>(states.size(), 0)), {states.begin(), states.end()}, std::move(uses), {}};
  for (const Use &use : weight.uses)
    weight.edges.push_back(
        graph.addEdge(weight.node, use.node,
                      std::make_shared<const std::vector<double>>(weight.states.size() * use.needs.size(), 0)));
  weights.insert({value, std::move(weight)});
  return true;
}

std::optional<ExchangeCost> WeightStorage::getGathering(RankedTensorType type, ShardingAttr stored, ShardingAttr need) {
  return stored ? costs.get(type, stored, need) : ExchangeCost();
}

double WeightStorage::getBytes(RankedTensorType type, ShardingAttr sharding) {
  auto [entry, isNew] = sizes.try_emplace({type, sharding});
  if (isNew)
    entry->second = costs.getLargestBytes(type, sharding);
  return entry->second;
}

void WeightStorage::setCosts(ChoiceGraph &graph, const Prices &prices,
                             llvm::function_ref<bool(OpOperand *)> isCrowded) {
  for (auto &[value, weight] : weights) {
    std::vector<double> own;
    for (ShardingAttr state : weight.states)
      own.push_back(state ? prices.ofByte * getBytes(weight.type, state) : 0);
    graph.setCosts(weight.node, std::move(own));
    for (auto [use, edge] : llvm::zip_equal(weight.uses, weight.edges)) {
      double ofGathered = isCrowded(use.operand) ? prices.ofByte : 0;
      std::vector<double> pairs;
      for (ShardingAttr state : weight.states)
        for (ShardingAttr need : use.needs) {
          std::optional<ExchangeCost> gathering = getGathering(weight.type, state, need);
          double bytes = getBytes(weight.type, need);
          if (!gathering)
            pairs.push_back(ChoiceGraph::impossible);
          else if (gathering->phases > 0)
            pairs.push_back(prices.ofExchange(*gathering) + ofGathered * weightFactor * bytes);
          else // Of what is stored, it is all the same who reads it where.
            pairs.push_back(prices.ofByte * (state ? weightFactor - 1 : weightFactor) * bytes);
        }
      graph.setEdge(edge, std::make_shared<const std::vector<double>>(std::move(pairs)));
    }
  }
}

ShardingAttr WeightStorage::getStored(const ChoiceGraph::Solution &solution, Value value) const {
  auto entry = weights.find(value);
  return entry == weights.end() ? ShardingAttr() : entry->second.states[solution.options[entry->second.node]];
}

ExchangeCost WeightStorage::getGathering(const ChoiceGraph::Solution &solution, OpOperand &operand) {
  auto entry = weights.find(operand.get());
  if (entry == weights.end())
    return {};
  const Weight &weight = entry->second;
  auto use = llvm::find_if(weight.uses, [&](const Use &use) { return use.operand == &operand; });
  return *getGathering(weight.type, weight.states[solution.options[weight.node]],
                       use->needs[solution.options[use->node]]);
}

void WeightStorage::holdWithin(ChoiceGraph::Solution &solution, double bytes) {
  struct Candidate {
    unsigned node;
    double seconds, bytes;
  };
  std::vector<Candidate> candidates;
  for (auto &[value, weight] : weights) {
    ShardingAttr stored = weight.states[solution.options[weight.node]];
    if (!stored)
      continue;
    Candidate candidate{weight.node, 0, -getBytes(weight.type, stored)};
    double held = 0;
    for (const Use &use : weight.uses) {
      ShardingAttr need = use.needs[solution.options[use.node]];
      candidate.seconds += getGathering(weight.type, stored, need)->seconds;
      held = std::max(held, getBytes(weight.type, need));
    }
    candidate.bytes += weightFactor * held;
    candidates.push_back(candidate);
  }
  // Those first that save most time for a byte.
  auto getKey = [](const Candidate &candidate) {
    return std::pair(-candidate.seconds / std::max(candidate.bytes, 1.0), candidate.node);
  };
  llvm::sort(candidates, [&](const Candidate &a, const Candidate &b) { return getKey(a) < getKey(b); });
  for (const Candidate &candidate : candidates) {
    if (candidate.bytes > bytes)
      continue;
    solution.options[candidate.node] = 0;
    bytes -= std::max(candidate.bytes, 0.0);
  }
}

llvm::MapVector<Value, ShardingAttr> WeightStorage::getAllStored(const ChoiceGraph::Solution &solution) {
  llvm::MapVector<Value, ShardingAttr> stored;
  for (const auto &[value, weight] : weights)
    if (ShardingAttr state = getStored(solution, value))
      if (llvm::any_of(weight.uses, [&](const Use &use) { return getGathering(solution, *use.operand).phases > 0; }))
        stored[value] = state;
  return stored;
}
