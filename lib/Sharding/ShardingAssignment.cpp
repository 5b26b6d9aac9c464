//===- ShardingAssignment.cpp - How everything is split -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the assignment, and what there is to say about it, from a solution of the graph of choices.
//
//===----------------------------------------------------------------------===//

#include "AssignmentProblem.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dovetail;

/// Operations that are explained.
static constexpr size_t kMaxExplained = 8;
/// What searches that explain may take, which are many and need not be exact.
static constexpr SearchLimits kExplainingLimits = {size_t(1) << 20, uint64_t(1) << 28};
/// An operation is said to be slow if it takes so many times what it could.
static constexpr double kMuchSlower = 1.5;

Expectation AssignmentProblem::predict(const ChoiceGraph::Solution &solution, Peak *peak) {
  Expectation expected;
  Block &block = function.getBody().front();
  DenseMap<Value, Operation *> lastUsers;
  for (Operation &op : block)
    for (Value operand : op.getOperands())
      lastUsers[operand] = &op;
  DenseMap<Value, double> held, constantBytes;
  double values = 0;
  // Values that begin and end to be held, and how many of these changes there are up to the peak.
  std::vector<std::pair<Value, bool>> changes;
  std::optional<size_t> numAtPeak;
  auto begin = [&](Value value, ShardingAttr state) {
    double bytes = OpCosts::isStored(value) ? costs.getLargestBytes(cast<RankedTensorType>(value.getType()), state) : 0;
    held[value] = bytes;
    values += bytes;
    changes.push_back({value, true});
  };
  for (BlockArgument argument : block.getArguments())
    begin(argument, getState(solution, sources[argument]));
  for (Operation &op : block) {
    // What is brought to it in another form takes room beside what it is made of.
    double brought = 0;
    SmallVector<OpOperand *> gathered;
    if (auto entry = options.find(&op); entry != options.end() && !constants.contains(op.getResult(0))) {
      const LoopOption &option = getOption(solution, &op);
      expected.seconds += option.seconds + option.inner.seconds;
      expected.bytes += option.inner.totalBytes;
      for (auto [operand, need] : llvm::zip_equal(op.getOpOperands(), option.needs)) {
        Value value = operand.get();
        auto type = cast<RankedTensorType>(value.getType());
        if (constants.contains(value)) {
          ShardingAttr stored = weights.getStored(solution, value);
          ExchangeCost gathering = weights.getGathering(solution, operand);
          double needed = gathering.phases == 0 ? costs.getLargestBytes(type, need) : 0;
          double &bytes = constantBytes[value];
          bytes = std::max(bytes, stored ? costs.getLargestBytes(type, stored) + (goal.weightFactor - 1) * needed
                                         : goal.weightFactor * needed);
          expected.seconds += gathering.seconds;
          expected.bytes += gathering.totalBytes;
          if (gathering.phases == 0)
            continue;
          gathered.push_back(&operand);
          brought += goal.weightFactor * costs.getLargestBytes(type, need);
          continue;
        }
        if (getState(solution, sources[value]) != need)
          brought += costs.getLargestBytes(type, need);
      }
    }
    for (Value result : op.getResults())
      if (auto source = sources.find(result); source != sources.end() && !constants.contains(result))
        begin(result, getState(solution, source->second));
    if (values + brought > expected.valueBytes) {
      expected.valueBytes = values + brought;
      numAtPeak = changes.size();
      if (peak)
        peak->gathered = {gathered.begin(), gathered.end()};
    }
    for (Value operand : op.getOperands())
      if (lastUsers.lookup(operand) == &op)
        if (auto entry = held.find(operand); entry != held.end()) {
          values -= entry->second;
          held.erase(entry);
          changes.push_back({operand, false});
        }
  }
  if (peak && numAtPeak) {
    peak->values.clear();
    for (auto [value, begins] : ArrayRef(changes).take_front(*numAtPeak))
      begins ? (void)peak->values.insert(value) : (void)peak->values.erase(value);
  }
  for (const auto &[value, bytes] : constantBytes)
    expected.weightBytes += bytes;
  for (const Connection &connection : connections) {
    const auto &[value, source, reader, edge] = connection;
    std::optional<ExchangeCost> cost =
        costs.get(connection.getType(), getState(solution, source), reader.needs[solution.options[reader.node]]);
    expected.seconds += cost->seconds;
    expected.bytes += cost->totalBytes;
  }
  return expected;
}

std::vector<Explanation> AssignmentProblem::explain(const ChoiceGraph::Solution &solution) {
  // Blocks repeat themselves: the first of those that are alike stands for all.
  std::vector<std::tuple<double, size_t, Operation *>> heaviest;
  DenseMap<std::pair<StringAttr, Attribute>, size_t> numbers;
  std::vector<unsigned> alike;
  for (auto &[op, list] : options) {
    if (list.size() == 1 || !(workOf.lookup(op) > 0))
      continue;
    auto [number, isNew] = numbers.try_emplace(
        {op->getName().getIdentifier(),
         ArrayAttr::get(op->getContext(),
                        {LoopShardingsAttr::get(op->getContext(), meshName, getOption(solution, op).loops),
                         TypeAttr::get(op->getResult(0).getType()), TypeAttr::get(op->getOperand(0).getType())})},
        alike.size());
    if (isNew) {
      heaviest.push_back({-workOf.lookup(op), alike.size(), op});
      alike.push_back(0);
    }
    ++alike[number->second];
  }
  llvm::sort(heaviest);
  std::vector<Explanation> explanations;
  for (auto [work, number, op] : ArrayRef(heaviest).take_front(kMaxExplained)) {
    unsigned node = sources[op->getResult(0)].node, chosen = solution.options[node];
    std::vector<double> own = graph.getCosts(node), without = own;
    without[chosen] = ChoiceGraph::impossible;
    graph.setCosts(node, std::move(without));
    ChoiceGraph::Solution other = graph.solve(kExplainingLimits);
    graph.setCosts(node, std::move(own));
    if (other.isPossible())
      explanations.push_back({op, alike[number] - 1, options[op][chosen].loops, options[op][other.options[node]].loops,
                              solution.cost > 0 ? getUnpriced(other) / solution.cost - 1 : 0});
  }
  return explanations;
}

void AssignmentProblem::findIdle(ShardingAssignment &assignment) {
  const layout::Mesh &mesh = costs.getMesh();
  llvm::SmallDenseSet<StringAttr> busyAxes;
  // Whether some operation would have elements for a rank, and gives it none.
  std::vector<bool> isBusy(mesh.numRanks()), isLeftOut(mesh.numRanks());
  bool isAny = false;
  DenseSet<Attribute> seen;
  for (auto &[op, list] : options) {
    if (light.contains(op))
      continue;
    isAny = true;
    const LoopShardings &loops = assignment.operations.find(op)->second.loops;
    for (DimShardingAttr loop : loops)
      busyAxes.insert(loop.getAxes().begin(), loop.getAxes().end());
    if (!seen.insert(LoopShardingsAttr::get(function.getContext(), meshName, loops)).second)
      continue;
    SmallVector<int64_t> extents = getExtents(cast<SplitOpInterface>(op).getRelation().loops);
    layout::Sharding sharding = toLayout(loops, mesh);
    bool hasFew = llvm::any_of(llvm::zip_equal(loops, extents), [](const auto &entry) {
      auto [loop, extent] = entry;
      return loop.isSplit() && extent < loop.getNumPieces();
    });
    for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank) {
      bool isEmpty = sharding.boxOf(mesh, extents, rank).empty();
      isBusy[rank] = isBusy[rank] || !isEmpty;
      isLeftOut[rank] = isLeftOut[rank] || (isEmpty && !hasFew);
    }
  }
  if (!isAny)
    return;
  for (const layout::MeshAxis &axis : mesh.getAxes())
    if (auto name = StringAttr::get(function.getContext(), axis.name); axis.size > 1 && !busyAxes.contains(name))
      assignment.idleAxes.push_back(name);
  for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank)
    if (!isBusy[rank])
      assignment.idleRanks.push_back({rank, !isLeftOut[rank]});
}

FailureOr<ShardingAssignment> AssignmentProblem::solve() {
  stateCuts();
  loopOptions.emplace(costs, meshName, families);
  findOptions();
  findLight();
  if (!goal.seed && goal.following == Following::No)
    keepEven();
  addNodes();
  for (const auto &[value, source] : sources)
    addEdges(value, source);
  addWeights();
  if (goal.seed)
    graph.randomize(goal.seed);
  Peak atMost;
  ChoiceGraph::Solution solution = goal.following != Following::No ? follow()
                                   : goal.memory                   ? searchWithin(*goal.memory)
                                                                   : searchFreely(atMost);
  if (!solution.isPossible() && solution.bound < ChoiceGraph::impossible)
    return function.emitError("the search found no sharding that meets all requests; give a larger --search-seconds");
  if (!solution.isPossible())
    return function.emitError("no sharding of its values meets all requests; leave out some of --shard and --sizes");
  ShardingAssignment assignment;
  solution = steer(std::move(solution), assignment);
  describeMoves(solution, assignment);
  assignment.expected = predict(solution);
  assignment.expected.cost = solution.cost;
  assignment.expected.bound = solution.bound;
  assignment.numLimited = numLimited;
  assignment.isCut = isCut;
  if (goal.explain) {
    assignment.explanations = explain(solution);
    for (auto &[op, least] : leastSeconds)
      if (!light.contains(op) && getOption(solution, op).seconds > kMuchSlower * least)
        assignment.slow.push_back({op, getOption(solution, op).seconds / least});
  }
  for (const auto &[value, source] : sources)
    if (isa<BlockArgument>(value))
      assignment.arguments[value] = getState(solution, source);
  for (const auto &[op, list] : options)
    assignment.operations[op] = getOption(solution, op);
  findIdle(assignment);
  for (const auto &[value, source] : pinned)
    assignment.values[value] = getState(solution, source);
  for (const auto &[value, source] : forms)
    assignment.forms[value] = getState(solution, source);
  assignment.stored = weights.getAllStored(solution);
  for (const auto &[operand, source] : outputs)
    assignment.outputs[operand] = getState(solution, source);
  return assignment;
}

FailureOr<ShardingAssignment> dovetail::findAssignment(func::FuncOp function, const layout::Mesh &mesh,
                                                       FlatSymbolRefAttr meshName, const FunctionRequests &requests,
                                                       const Goal &goal,
                                                       const DenseMap<Operation *, LoopOption> &decided) {
  return AssignmentProblem(function, mesh, meshName, requests, goal, decided).solve();
}
