//===- AssignmentSteering.cpp - Stated shardings that steer ---------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets a stated sharding hold for all that follows it, unless a departure saves enough.
//
// A departure is a value that lies split along a dimension that follows a stated one, over the same mesh axes, and is
// read otherwise. Each costs a share of the time of the best assignment without such a price. After a departure all may
// stay so: the way back costs the exchange alone.
//
//===----------------------------------------------------------------------===//

#include "AssignmentProblem.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dovetail;

/// Whether a loop or dimension is split over all of these axes. If it is split over no others, its cuts must be stated
/// ones, of `cuts`, or follow from these.
static bool isSplitAs(DimShardingAttr dim, ArrayRef<StringAttr> axes, ArrayRef<CutFamilies::Cuts> cuts) {
  ArrayRef<StringAttr> own = dim.getAxes();
  if (own.size() > axes.size())
    return llvm::all_of(axes, [&](StringAttr axis) { return llvm::is_contained(own, axis); });
  return llvm::any_of(cuts, [&](const CutFamilies::Cuts &each) { return each.isStated && each.sharding == dim; });
}

std::vector<AssignmentProblem::Departure> AssignmentProblem::findDepartures() {
  DenseMap<unsigned, Operation *> opOf;
  for (const auto &[op, list] : options)
    opOf[sources[op->getResult(0)].node] = op;
  std::vector<Departure> departures;
  for (ArrayRef<StringAttr> axes : families.getStatedAxes()) {
    DenseSet<unsigned> followers = families.getFollowers(axes);
    // Several dimensions may follow, such as queries and keys of scores: one of them is split.
    auto follows = [&](unsigned place, ArrayRef<DimShardingAttr> dims) {
      return llvm::any_of(llvm::enumerate(dims), [&](auto entry) {
        unsigned own = place + entry.index();
        return followers.contains(own) && isSplitAs(entry.value(), axes, families.get(own, axes));
      });
    };
    for (const auto &[value, computed] : sources) {
      std::optional<unsigned> place = families.getPlace(value);
      if (!place)
        continue;
      auto entry = pinned.find(value);
      const Source &source = entry == pinned.end() ? computed : entry->second;
      std::vector<bool> held;
      for (ShardingAttr state : source.states)
        held.push_back(state && follows(*place, state.getDims()));
      if (!llvm::is_contained(held, true))
        continue;
      auto add = [&](unsigned from, const std::vector<bool> &held, unsigned to, std::vector<bool> kept) {
        // A reader that cannot follow does not depart.
        if (from != to && llvm::is_contained(kept, true) && llvm::is_contained(kept, false))
          departures.push_back({value, from, to, held, std::move(kept)});
      };
      // A value of several readers is brought to all of them in one form.
      unsigned from = source.node;
      if (auto form = forms.find(value); form != forms.end()) {
        std::vector<bool> brought;
        for (ShardingAttr state : form->second.states)
          brought.push_back(follows(*place, state.getDims()));
        add(from, held, form->second.node, brought);
        from = form->second.node;
        held = std::move(brought);
      }
      for (const Reader &reader : readers[value]) {
        std::vector<bool> kept;
        if (Operation *op = opOf.lookup(reader.node)) {
          // An operand may be brought to all ranks, if the operation follows by another one.
          unsigned loops = *families.getPlace(op->getResult(0));
          for (const LoopOption &option : options[op])
            kept.push_back(follows(loops, option.loops));
        } else {
          for (ShardingAttr need : reader.needs)
            kept.push_back(!need || follows(*place, need.getDims()));
        }
        add(from, held, reader.node, std::move(kept));
      }
    }
  }
  return departures;
}

ChoiceGraph::Solution AssignmentProblem::steer(ChoiceGraph::Solution solution, ShardingAssignment &assignment) {
  if (goal.follow <= 0 || goal.seed || goal.objective != Objective::Time || goal.following != Following::No)
    return solution;
  std::vector<Departure> departures = findDepartures();
  auto count = [&](const ChoiceGraph::Solution &found) {
    return llvm::count_if(departures, [&](const Departure &departure) { return departure.isTaken(found); });
  };
  if (count(solution) == 0)
    return solution;
  double price = goal.follow * solution.cost;
  // The price becomes a part of what the exchange costs: more edges would make the graph wider.
  DenseMap<std::pair<unsigned, unsigned>, unsigned> edges;
  for (auto [number, edge] : llvm::enumerate(graph.getEdges()))
    edges[{edge.a, edge.b}] = number;
  std::map<std::tuple<ChoiceGraph::EdgeCosts, std::vector<bool>, std::vector<bool>>, ChoiceGraph::EdgeCosts> tables;
  for (const Departure &departure : departures) {
    unsigned edge = edges.at({departure.source, departure.reader});
    const ChoiceGraph::EdgeCosts &own = graph.getEdges()[edge].costs;
    ChoiceGraph::EdgeCosts &table = tables[{own, departure.held, departure.kept}];
    if (!table) {
      std::vector<double> entries(*own);
      for (size_t i = 0, number = 0; i < departure.held.size(); ++i)
        for (size_t j = 0; j < departure.kept.size(); ++j, ++number)
          entries[number] += departure.held[i] && !departure.kept[j] ? price : 0;
      table = std::make_shared<const std::vector<double>>(std::move(entries));
    }
    graph.setEdge(edge, table);
  }
  Peak atMost;
  ChoiceGraph::Solution steered = goal.memory ? searchWithin(*goal.memory) : searchFreely(atMost);
  if (!steered.isPossible())
    return solution;
  // Prices of departures are no time.
  double paid = price * static_cast<double>(count(steered));
  steered.cost -= paid;
  steered.bound = std::max(steered.bound - paid, 0.0);
  for (const Departure &departure : departures)
    if (departure.isTaken(steered))
      assignment.departures.push_back(departure.value);
  return steered;
}
