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
// read otherwise. After it all may stay so: the way back costs the exchange alone. Of what a stated result is computed
// of, the way to what is stated is the departure.
//
// What takes least time without departures is left where some save a share of that time, all together. Each costs that
// share, so that there are few; less, where the best way is still that much faster.
//
//===----------------------------------------------------------------------===//

#include "AssignmentProblem.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dovetail;

/// Of the time that a departure's exchange is predicted to take, what it may take besides. docs/performance.md compares
/// predictions with measurements: exchanges are what is predicted worst, most of all those of small models.
static constexpr double kExchangeDoubt = 0.5;
/// How often the price of a departure is halved.
static constexpr int kMaxHalvings = 3;
/// The price where there are to be no departures but those that must be, in times of the whole.
static constexpr double kProhibitive = 1e3;

/// The cuts of a dimension over the first `parts` of its pieces' groups: over the first of its axes.
static std::vector<int64_t> getCoarseCuts(DimShardingAttr dim, int64_t parts) {
  unsigned width = dim.getNumPieces() / parts;
  std::vector<int64_t> cuts = {dim.getPiece(0).lo};
  for (int64_t part = 0; part < parts; ++part)
    cuts.push_back(dim.getPiece((part + 1) * width - 1).hi);
  return cuts;
}

AssignmentProblem::Splits AssignmentProblem::getRead(const Connection &connection, unsigned option) {
  const auto &[value, source, reader, edge] = connection;
  // An operand may be brought to all ranks, if the operation follows by another one.
  if (Operation *op = opOf.lookup(reader.node))
    return getLoops(op, option);
  return {*families.getPlace(value), reader.needs[option].getDims()};
}

AssignmentProblem::Origins AssignmentProblem::getOrigins(Splits splits, size_t number) {
  ArrayRef<StringAttr> axes = families.getStatedAxes()[number];
  Origins origins;
  for (auto [index, dim] : llvm::enumerate(splits.dims)) {
    ArrayRef<StringAttr> own = dim.getAxes();
    unsigned place = splits.place + index;
    if (own.size() < axes.size() || own.take_front(axes.size()) != axes || !followers[number].places.contains(place))
      continue;
    for (const CutFamilies::Cuts &cuts : families.get(place, axes)) {
      // Over more axes, what is stated is divided further.
      bool isAlike = own.size() == axes.size()
                         ? cuts.sharding == dim
                         : cuts.isOpen || getCoarseCuts(dim, cuts.sharding.getNumPieces()) ==
                                              getCoarseCuts(cuts.sharding, cuts.sharding.getNumPieces());
      if (cuts.isStated && isAlike)
        for (unsigned origin : cuts.origins)
          if (!llvm::is_contained(origins, origin))
            origins.push_back(origin);
    }
  }
  return origins;
}

bool AssignmentProblem::mayMove(const Connection &connection) const {
  // A result that is to be split in no certain way takes any.
  return families.getPlace(connection.value) && !llvm::is_contained(connection.reader.needs, ShardingAttr());
}

void AssignmentProblem::findFollowers() {
  if (followers.empty())
    for (ArrayRef<StringAttr> axes : families.getStatedAxes())
      followers.push_back(families.getFollowers(axes));
}

void AssignmentProblem::findDepartures() {
  findFollowers();
  DenseMap<std::pair<unsigned, unsigned>, size_t> numbers;
  DenseMap<size_t, size_t> found;
  for (size_t axes = 0; axes < followers.size(); ++axes)
    for (const auto &[number, connection] : llvm::enumerate(connections)) {
      const auto &[value, source, reader, edge] = connection;
      if (!mayMove(connection))
        continue;
      // An operation that reads a value twice leaves it once.
      auto [known, isNew] = numbers.try_emplace({source.node, reader.node}, number);
      if (known->second != number)
        continue;
      // A value lies so, or is a sum whose terms are split so: as the loops of an operation say, or in another form.
      auto isSum = [&](ShardingAttr state) {
        return llvm::all_of(families.getStatedAxes()[axes],
                            [&](StringAttr axis) { return llvm::is_contained(state.getPartialAxes(), axis); });
      };
      Operation *maker = opOf.lookup(source.node), *op = opOf.lookup(reader.node);
      SmallVector<bool> held, made, kept;
      for (auto [option, state] : llvm::enumerate(source.states)) {
        held.push_back(!getOrigins(getHeld(connection, option), axes).empty());
        made.push_back(held.back() || (maker ? !getOrigins(getLoops(maker, option), axes).empty() : isSum(state)));
      }
      if (!llvm::is_contained(made, true))
        continue;
      for (unsigned option = 0; option < reader.needs.size(); ++option)
        kept.push_back(!getOrigins(getRead(connection, option), axes).empty());
      // What cannot follow does not depart.
      if (!llvm::is_contained(kept, true))
        continue;
      unsigned place = *families.getPlace(value);
      auto dims = llvm::seq<unsigned>(place, place + connection.getType().getRank());
      // Of an argument ranks may be given what they need.
      bool mayReturn = isa<BlockArgument>(value) ||
                       llvm::any_of(dims, [&](unsigned dim) { return followers[axes].behind.contains(dim); });
      std::vector<bool> pairs;
      for (unsigned from = 0; from < held.size(); ++from)
        for (unsigned to = 0; to < kept.size(); ++to) {
          bool isKept = kept[to] || (!op && isSum(reader.needs[to]));
          pairs.push_back(held[from] ? !isKept : !made[from] && isKept && !mayReturn);
        }
      if (!llvm::is_contained(pairs, true))
        continue;
      // What is stated over several sets of axes is left once.
      auto [entry, isFirst] = found.try_emplace(number, departures.size());
      if (isFirst)
        departures.push_back({number, std::move(pairs)});
      else
        for (size_t pair = 0; pair < pairs.size(); ++pair)
          if (pairs[pair])
            departures[entry->second].pairs[pair] = true;
    }
  for (const Departure &departure : departures)
    unpriced.push_back(graph.getEdges()[connections[departure.connection].edge].costs);
}

void AssignmentProblem::setDeparturePrice(double price) {
  // The price becomes a part of what the exchange costs: more edges would make the graph wider.
  std::map<std::pair<ChoiceGraph::EdgeCosts, std::vector<bool>>, ChoiceGraph::EdgeCosts> tables;
  for (auto [departure, own] : llvm::zip_equal(departures, unpriced)) {
    ChoiceGraph::EdgeCosts &table = tables[{own, departure.pairs}];
    if (!table) {
      std::vector<double> entries(*own);
      for (auto [entry, departs] : llvm::zip_equal(entries, departure.pairs))
        if (price > 0 && departs)
          entry += price + kExchangeDoubt * entry;
      table = std::make_shared<const std::vector<double>>(std::move(entries));
    }
    graph.setEdge(connections[departure.connection].edge, table);
  }
}

double AssignmentProblem::getUnpriced(const ChoiceGraph::Solution &solution) const {
  double cost = graph.evaluate(solution.options);
  for (auto [departure, own] : llvm::zip_equal(departures, unpriced)) {
    if (!isTaken(departure, solution))
      continue;
    const auto &[value, source, reader, edge] = connections[departure.connection];
    size_t pair = solution.options[source.node] * reader.needs.size() + solution.options[reader.node];
    cost -= (*graph.getEdges()[edge].costs)[pair] - (*own)[pair];
  }
  return cost;
}

double AssignmentProblem::getExchangeSeconds(const ChoiceGraph::Solution &solution) const {
  double seconds = 0;
  for (auto [departure, own] : llvm::zip_equal(departures, unpriced)) {
    if (!isTaken(departure, solution))
      continue;
    const auto &[value, source, reader, edge] = connections[departure.connection];
    seconds += (*own)[solution.options[source.node] * reader.needs.size() + solution.options[reader.node]];
  }
  return seconds;
}

ChoiceGraph::Solution AssignmentProblem::steer(ChoiceGraph::Solution solution, ShardingAssignment &assignment) {
  if (!goal.steers())
    return solution;
  findDepartures();
  auto departs = [&](const ChoiceGraph::Solution &found) {
    return llvm::any_of(departures, [&](const Departure &departure) { return isTaken(departure, found); });
  };
  if (!departs(solution))
    return solution;
  auto searchAt = [&](double price) {
    setDeparturePrice(price);
    Peak atMost;
    ChoiceGraph::Solution found = goal.memory ? searchWithin(*goal.memory) : searchFreely(atMost);
    if (!found.isPossible())
      return found;
    double paid = found.cost - getUnpriced(found);
    found.cost -= paid;
    found.bound = std::clamp(found.bound - paid, 0.0, found.cost);
    return found;
  };
  bool isFitting = !goal.memory || predict(solution).getMemory() <= *goal.memory;
  auto isUsable = [&](const ChoiceGraph::Solution &found) {
    return found.isPossible() && (!goal.memory || !isFitting || predict(found).getMemory() <= *goal.memory);
  };
  bool isStrict = goal.follow >= 1;
  // Arguments cost what it takes to give them to ranks, which is no part of a run.
  auto isWorth = [&](const ChoiceGraph::Solution &from, const ChoiceGraph::Solution &to) {
    double seconds = predict(from).seconds;
    double doubt = kExchangeDoubt * std::max(getExchangeSeconds(to) - getExchangeSeconds(from), 0.0);
    return seconds - predict(to).seconds - doubt >= goal.follow * seconds;
  };
  ChoiceGraph::Solution followed = searchAt(ChoiceGraph::impossible);
  bool mayFollow = isUsable(followed);
  if (mayFollow)
    assignment.followedSeconds = predict(followed).seconds;
  if (mayFollow && (isStrict || !isWorth(followed, solution)))
    return followed;
  double price = predict(mayFollow ? followed : solution).seconds * (isStrict ? kProhibitive : goal.follow);
  for (int halvings = 0; halvings <= kMaxHalvings; ++halvings, price /= 2) {
    ChoiceGraph::Solution found = searchAt(price);
    if (isUsable(found) && (!mayFollow || isWorth(followed, found)) && (isStrict || !isWorth(found, solution)))
      return found;
  }
  setDeparturePrice(0);
  return solution;
}

Move AssignmentProblem::getMove(const ChoiceGraph::Solution &solution, const Connection &connection) {
  const auto &[value, source, reader, edge] = connection;
  ShardingAttr state = getState(solution, source), need = reader.needs[solution.options[reader.node]];
  Move move{value, opOf.lookup(reader.node), LoopShardings(state.getDims()), {}, false, 0};
  if (move.reader)
    move.to = options[move.reader][solution.options[reader.node]].loops;
  else if (need)
    move.to = LoopShardings(need.getDims());
  if (std::optional<ExchangeCost> cost = costs.get(connection.getType(), state, need))
    move.bytes = cost->totalBytes;
  return move;
}

void AssignmentProblem::findEnd(const ChoiceGraph::Solution &solution, ShardingAssignment &assignment) {
  findFollowers();
  auto follows = [&](Splits splits) {
    return llvm::any_of(llvm::seq<size_t>(0, followers.size()),
                        [&](size_t axes) { return !getOrigins(splits, axes).empty(); });
  };
  // All that inputs lead to, and that leads to outputs.
  DenseSet<Value> reached;
  auto isSplit = [](const ShardingRequest &request) {
    return llvm::any_of(request, [](DimShardingAttr dim) { return dim.isSplit(); });
  };
  for (const auto &[argument, request] : requests.arguments)
    if (isSplit(request))
      reached.insert(argument);
  Block &block = function.getBody().front();
  for (Operation &op : block)
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return reached.contains(operand); }))
      reached.insert(op.result_begin(), op.result_end());
  DenseSet<Value> leading;
  for (const auto &[operand, request] : requests.outputs)
    if (isSplit(request))
      leading.insert(operand->get());
  for (Operation &op : llvm::reverse(block))
    if (llvm::any_of(op.getResults(), [&](Value result) { return leading.contains(result); }))
      leading.insert(op.operand_begin(), op.operand_end());
  for (const auto &[op, list] : options) {
    double work = workOf.lookup(op);
    Value result = op->getResult(0);
    if (work <= kLightShare * totalWork || (!reached.contains(result) && !leading.contains(result)) ||
        follows(getLoops(op, solution.options[sources[result].node])))
      continue;
    assignment.apart.push_back(op);
    assignment.shareApart += work / totalWork;
  }
  if (assignment.apart.empty())
    return;
  for (const Connection &connection : connections)
    if (mayMove(connection) && follows(getHeld(connection, solution.options[connection.source.node])) &&
        !follows(getRead(connection, solution.options[connection.reader.node]))) {
      assignment.end = getMove(solution, connection);
      return;
    }
}

void AssignmentProblem::describeMoves(const ChoiceGraph::Solution &solution, ShardingAssignment &assignment) {
  if (!goal.isAsked || goal.seed || goal.following != Following::No)
    return;
  for (const Departure &departure : departures) {
    if (!isTaken(departure, solution))
      continue;
    const Connection &connection = connections[departure.connection];
    Move move = getMove(solution, connection);
    for (size_t axes = 0; axes < followers.size(); ++axes)
      move.isHeld |= !getOrigins(getHeld(connection, solution.options[connection.source.node]), axes).empty();
    assignment.departures.push_back(std::move(move));
  }
  if (goal.steers() && assignment.departures.empty())
    findEnd(solution, assignment);
  // One request cannot contradict itself.
  if (requests.arguments.size() + requests.results.size() + requests.loops.size() + requests.outputs.size() < 2)
    return;
  findFollowers();
  for (size_t axes = 0; axes < followers.size(); ++axes)
    for (const Connection &connection : connections) {
      if (!mayMove(connection))
        continue;
      Origins from = getOrigins(getHeld(connection, solution.options[connection.source.node]), axes);
      Origins to = getOrigins(getRead(connection, solution.options[connection.reader.node]), axes);
      if (from.empty() || to.empty() ||
          llvm::any_of(to, [&](unsigned origin) { return llvm::is_contained(from, origin); }))
        continue;
      if (Move move = getMove(solution, connection); move.bytes > 0)
        assignment.changes.push_back(std::move(move));
    }
}
