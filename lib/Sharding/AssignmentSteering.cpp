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
// A value departs where it lies along a stated dimension and its reader does not. It also departs where it has stated
// cuts and its reader has others. To leave both costs twice as much. Afterwards all may stay so: the way back costs the
// exchange alone. Upstream of a stated result, the way to the stated split is the departure. Work that could follow and
// does not has a price, too. So of ways that gain alike, the one that departs late is taken.
//
// The plan without departures is left only where departures together save a share of its time. Each costs that share,
// so that there are few. The price falls while the best plan is still faster by that share.
//
//===----------------------------------------------------------------------===//

#include "AssignmentProblem.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dovetail;

/// Doubt about the predicted time of a departure's exchange, as a share of it. docs/performance.md compares predictions
/// with measurements. Exchanges are predicted worst.
static constexpr double kExchangeDoubt = 0.5;
/// How often the price of a departure is halved.
static constexpr int kMaxHalvings = 3;
/// The price of what there is to be no more of than must be, in times of the whole.
static constexpr double kProhibitive = 10;
/// The price of work that does not follow, if that were all of it, in prices of a departure.
static constexpr double kWorkPrice = 0.5;

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

AssignmentProblem::Course AssignmentProblem::getCourse(Splits splits, size_t number) {
  ArrayRef<StringAttr> axes = families.getStatedAxes()[number];
  Course course;
  for (auto [index, dim] : llvm::enumerate(splits.dims)) {
    ArrayRef<StringAttr> own = dim.getAxes();
    unsigned place = splits.place + index;
    if (own.size() < axes.size() || own.take_front(axes.size()) != axes || !followers[number].places.contains(place))
      continue;
    course.isAlong = true;
    for (const CutFamilies::Cuts &cuts : families.get(place, axes)) {
      if (!cuts.isStated)
        continue;
      // Over more axes, what is stated is divided further.
      bool isAlike = own.size() == axes.size()
                         ? cuts.sharding == dim
                         : cuts.isOpen || getCoarseCuts(dim, cuts.sharding.getNumPieces()) ==
                                              getCoarseCuts(cuts.sharding, cuts.sharding.getNumPieces());
      if (!isAlike)
        continue;
      course.isExact |= !cuts.isOpen;
      for (unsigned origin : cuts.origins)
        if (!llvm::is_contained(course.origins, origin))
          course.origins.push_back(origin);
    }
  }
  return course;
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
      auto addSum = [](Course course) {
        course.isAlong = course.isExact = true;
        return course;
      };
      Operation *maker = opOf.lookup(source.node), *op = opOf.lookup(reader.node);
      std::vector<Course> held, made, kept;
      for (auto [option, state] : llvm::enumerate(source.states)) {
        held.push_back(getCourse(getHeld(connection, option), axes));
        made.push_back(maker ? getCourse(getLoops(maker, option), axes) : held.back());
        if (!maker && isSum(state))
          made.back() = addSum(made.back());
      }
      for (unsigned option = 0; option < reader.needs.size(); ++option)
        kept.push_back(getCourse(getRead(connection, option), axes));
      auto isAlong = [](const Course &course) { return course.isAlong; };
      auto isExact = [](const Course &course) { return course.isExact; };
      // A reader that cannot follow does not depart.
      bool mayRun = llvm::any_of(kept, isAlong) && llvm::any_of(made, isAlong);
      bool mayBeExact = llvm::any_of(kept, isExact) && llvm::any_of(made, isExact);
      if (!mayRun)
        continue;
      // Of an argument ranks may be given what they need.
      unsigned place = *families.getPlace(value);
      auto dims = llvm::seq<unsigned>(place, place + connection.getType().getRank());
      bool mayReturn = isa<BlockArgument>(value) ||
                       llvm::any_of(dims, [&](unsigned dim) { return followers[axes].behind.contains(dim); });
      std::vector<Pair> pairs;
      for (auto [from, makes] : llvm::zip_equal(held, made)) {
        bool mayStay = llvm::any_of(kept, [&](const Course &to) { return from.sharesOrigin(to); });
        for (auto [to, need] : llvm::zip_equal(kept, reader.needs)) {
          Course reached = !op && isSum(need) ? addSum(to) : to;
          Pair &pair = pairs.emplace_back();
          pair.departures += from.isAlong && !reached.isAlong;
          pair.departures += mayBeExact && from.isExact && !reached.isExact;
          if (!mayReturn) {
            pair.departures += reached.isAlong && !makes.isAlong;
            pair.departures += mayBeExact && reached.isExact && !makes.isExact;
          }
          pair.isChange = mayStay && !from.origins.empty() && !to.origins.empty() && !from.sharesOrigin(to);
        }
      }
      if (llvm::all_of(pairs, [](Pair pair) { return pair == Pair(); }))
        continue;
      // Requests over several sets of axes are left once.
      auto [entry, isFirst] = found.try_emplace(number, departures.size());
      if (isFirst) {
        departures.push_back({number, std::move(pairs)});
        continue;
      }
      for (auto [pair, other] : llvm::zip_equal(departures[entry->second].pairs, pairs)) {
        pair.departures = std::max(pair.departures, other.departures);
        pair.isChange |= other.isChange;
      }
    }
  for (Departure &departure : departures)
    departure.costs = graph.getEdges()[connections[departure.connection].edge].costs;
  for (const auto &[op, list] : options)
    findStraying(op, list);
}

void AssignmentProblem::findStraying(Operation *op, ArrayRef<LoopOption> list) {
  if (!(totalWork > 0) || constants.contains(op->getResult(0)))
    return;
  std::vector<double> shares(list.size());
  for (size_t axes = 0; axes < followers.size(); ++axes) {
    std::vector<Course> courses;
    bool mayRun = false, mayBeExact = false;
    for (unsigned option = 0; option < list.size(); ++option) {
      courses.push_back(getCourse(getLoops(op, option), axes));
      mayRun |= courses.back().isAlong;
      mayBeExact |= courses.back().isExact;
    }
    for (auto [share, course] : llvm::zip_equal(shares, courses)) {
      double left = (mayRun && !course.isAlong) + (mayBeExact && !course.isExact);
      share = std::max(share, left / (1 + mayBeExact));
    }
  }
  if (llvm::all_of(shares, [](double share) { return share == 0; }))
    return;
  for (double &share : shares)
    share *= workOf.lookup(op) / totalWork;
  unsigned node = sources[op->getResult(0)].node;
  straying.push_back({node, std::move(shares), graph.getCosts(node)});
}

void AssignmentProblem::setDeparturePrice(double price, double changePrice) {
  // The price becomes a part of what the exchange costs: more edges would make the graph wider.
  std::map<std::pair<ChoiceGraph::EdgeCosts, std::vector<Pair>>, ChoiceGraph::EdgeCosts> tables;
  for (const Departure &departure : departures) {
    ChoiceGraph::EdgeCosts &table = tables[{departure.costs, departure.pairs}];
    if (!table) {
      std::vector<double> entries(*departure.costs);
      for (auto [entry, pair] : llvm::zip_equal(entries, departure.pairs)) {
        if (price > 0 && pair.departures > 0)
          entry += price * pair.departures + kExchangeDoubt * entry;
        if (pair.isChange)
          entry += changePrice;
      }
      table = std::make_shared<const std::vector<double>>(std::move(entries));
    }
    graph.setEdge(connections[departure.connection].edge, table);
  }
  for (const Straying &each : straying) {
    std::vector<double> sums = each.costs;
    // Without departures, nothing is left to be said about work.
    if (price < ChoiceGraph::impossible)
      for (auto [cost, share] : llvm::zip_equal(sums, each.shares))
        cost += kWorkPrice * price * share;
    graph.setCosts(each.node, std::move(sums));
  }
}

double AssignmentProblem::getUnpriced(const ChoiceGraph::Solution &solution) const {
  double cost = graph.evaluate(solution.options);
  for (const Departure &departure : departures) {
    const Connection &connection = connections[departure.connection];
    size_t number = getNumber(connection, solution);
    if (departure.pairs[number] != Pair())
      cost -= (*graph.getEdges()[connection.edge].costs)[number] - (*departure.costs)[number];
  }
  for (const Straying &each : straying)
    cost -= graph.getCosts(each.node)[solution.options[each.node]] - each.costs[solution.options[each.node]];
  return cost;
}

double AssignmentProblem::getExchangeSeconds(const ChoiceGraph::Solution &solution) const {
  double seconds = 0;
  for (const Departure &departure : departures) {
    size_t number = getNumber(connections[departure.connection], solution);
    if (departure.pairs[number].departures > 0)
      seconds += (*departure.costs)[number];
  }
  return seconds;
}

ChoiceGraph::Solution AssignmentProblem::steer(ChoiceGraph::Solution solution, ShardingAssignment &assignment) {
  if (!goal.describes())
    return solution;
  findDepartures();
  // The search is free.
  if (!goal.steers())
    return solution;
  if (llvm::all_of(departures, [&](const Departure &departure) { return getPair(departure, solution) == Pair(); }))
    return solution;
  auto searchAt = [&](double price, double changePrice) {
    setDeparturePrice(price, changePrice);
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
  ChoiceGraph::Solution followed = searchAt(ChoiceGraph::impossible, kProhibitive * predict(solution).seconds);
  bool mayFollow = isUsable(followed);
  if (mayFollow)
    assignment.followedSeconds = predict(followed).seconds;
  if (mayFollow && (isStrict || !isWorth(followed, solution)))
    return followed;
  double price = predict(mayFollow ? followed : solution).seconds * (isStrict ? kProhibitive : goal.follow);
  for (int halvings = 0; halvings <= kMaxHalvings; ++halvings, price /= 2) {
    ChoiceGraph::Solution found = searchAt(price, price);
    if (isUsable(found) && (!mayFollow || isWorth(followed, found)) && (isStrict || !isWorth(found, solution)))
      return found;
  }
  setDeparturePrice(0, 0);
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
                        [&](size_t axes) { return getCourse(splits, axes).isAlong; });
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
    if (getPair(departure, solution).departures == 0)
      continue;
    const Connection &connection = connections[departure.connection];
    Move move = getMove(solution, connection);
    for (size_t axes = 0; axes < followers.size(); ++axes) {
      Course from = getCourse(getHeld(connection, solution.options[connection.source.node]), axes);
      Course to = getCourse(getRead(connection, solution.options[connection.reader.node]), axes);
      move.isHeld |= (from.isAlong && !to.isAlong) || (from.isExact && !to.isExact);
    }
    assignment.departures.push_back(std::move(move));
  }
  if (goal.describes() && assignment.departures.empty())
    findEnd(solution, assignment);
  findFollowers();
  for (size_t axes = 0; axes < followers.size(); ++axes)
    for (CutFamilies::Unaligned &found : families.findUnaligned(families.getStatedAxes()[axes]))
      for (auto &[op, list] : options) {
        unsigned loop = found.loop;
        std::optional<unsigned> place = families.getPlace(op->getResult(0));
        Splits loops = place ? getLoops(op, solution.options[sources[op->getResult(0)].node]) : Splits{0, {}};
        if (!place || loop < *place || loop >= *place + loops.dims.size() || !getCourse(loops, axes).isExact)
          continue;
        assignment.unaligned.push_back({op, found.step, std::move(found.cuts), std::move(found.alternatives)});
        break;
      }
  // One request cannot contradict itself.
  if (requests.arguments.size() + requests.results.size() + requests.loops.size() + requests.outputs.size() < 2)
    return;
  for (size_t axes = 0; axes < followers.size(); ++axes)
    for (const Connection &connection : connections) {
      if (!mayMove(connection))
        continue;
      Course from = getCourse(getHeld(connection, solution.options[connection.source.node]), axes);
      Course to = getCourse(getRead(connection, solution.options[connection.reader.node]), axes);
      if (from.origins.empty() || to.origins.empty() || from.sharesOrigin(to))
        continue;
      if (Move move = getMove(solution, connection); move.bytes > 0)
        assignment.changes.push_back(std::move(move));
    }
}
