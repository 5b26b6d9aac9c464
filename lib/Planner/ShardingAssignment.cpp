//===- ShardingAssignment.cpp - How everything is split -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes a graph of choices of a function, and reads the assignment from its solution.
//
//===----------------------------------------------------------------------===//

#include "ShardingAssignment.h"

#include "WeightStorage.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace mlir;
using namespace dovetail;

/// Light operations take no more than this share of all the time each, and all together what the tolerance leaves.
static constexpr double kLightShare = 0.01;
/// Options of one operation: of more, for each set of mesh axes some with few changes from axis to axis, and of these
/// the most even ones.
static constexpr size_t kMaxOptions = 64;
/// How often the price of memory is raised, tenfold each time, and then halved towards the least that suffices.
static constexpr int kMaxRaises = 12;
static constexpr int kMaxHalvings = 5;
/// Of the work that is left, what one of those searches may take.
static constexpr double kShareOfOne = 0.5;
/// Operations that are explained.
static constexpr size_t kMaxExplained = 8;
/// What searches that explain may take, which are many and need not be exact.
static constexpr SearchLimits kExplainingLimits = {size_t(1) << 20, uint64_t(1) << 28};
/// An operation is said to be slow if it takes so many times what it could.
static constexpr double kMuchSlower = 1.5;
/// Searches for what takes least memory, each of which knows more about where most is used.
static constexpr int kMaxSearchesForLeast = 8;
/// Operations that may read a weight of which ranks store pieces: each has to gather it.
static constexpr unsigned kMaxReaders = 4;

namespace {

class AssignmentProblem {
public:
  AssignmentProblem(func::FuncOp function, const layout::Mesh &mesh, FlatSymbolRefAttr meshName,
                    const FunctionRequests &requests, const Goal &goal,
                    const DenseMap<Operation *, LoopOption> &decided)
      : function(function), meshName(meshName), requests(requests), goal(goal), decided(decided),
        costs(mesh, goal.cluster, goal.transport), constants(getConstantValues(function)),
        families(function, costs.getMesh(), goal.cluster), weights(costs, goal.weightFactor) {}

  FailureOr<ShardingAssignment> solve();

private:
  /// What is chosen for an argument, an operation or the form in which a value is brought to its users: a node of the
  /// graph, and what ranks then hold.
  struct Source {
    unsigned node;
    std::vector<ShardingAttr> states;
  };
  /// One that reads a value, and what it needs with each of its options.
  struct Reader {
    unsigned node;
    std::vector<ShardingAttr> needs;
  };

  /// What there is at the time of most memory: values, and operands that are gathered then.
  struct Peak {
    DenseSet<Value> values;
    DenseSet<OpOperand *> gathered;
  };

  /// A value that is brought from one to the other.
  struct Connection {
    RankedTensorType type;
    Source source;
    Reader reader;
  };

  void stateCuts();
  void findOptions();
  std::vector<LoopOption> getOptions(DefinitionOpInterface op);
  /// `kMaxOptions` of more options.
  static std::vector<LoopOption> keepSome(std::vector<LoopOption> found);
  void findLight();
  void keepEven();
  void addNodes();
  void addEdges(Value value, const Source &source);
  /// Lets constants be stored in pieces, where memory matters.
  void addWeights();
  /// How all operations read a constant, in their order; nothing if not all of them may gather it.
  std::vector<WeightStorage::Use> getUses(Value constant);
  /// What is chosen, of the source of a value.
  ShardingAttr getState(const ChoiceGraph::Solution &solution, const Source &source) const {
    return source.states[solution.options[source.node]];
  }
  const LoopOption &getOption(const ChoiceGraph::Solution &solution, Operation *op) {
    return options[op][solution.options[sources[op->getResult(0)].node]];
  }
  /// Searches with this share of the work that is left.
  ChoiceGraph::Solution search(double share = 1);
  ChoiceGraph::Solution follow();
  /// The same where memory is as large as it takes: if it is what matters, with what is known of where most is used.
  ChoiceGraph::Solution searchFreely(Peak &atMost);
  /// Weights cost what memory does: so much a byte, beside what the objective says.
  void setWeightCosts(double price, const Peak &atMost);
  void findIdle(ShardingAssignment &assignment);
  std::vector<Explanation> explain(const ChoiceGraph::Solution &solution);
  ChoiceGraph::Solution searchWithin(double memory);
  /// What a solution takes. `peak`, if given, receives what there is at the time of most.
  Expectation predict(const ChoiceGraph::Solution &solution, Peak *peak = nullptr);
  void connect(RankedTensorType type, const Source &source, const Reader &reader);
  double getCost(const ExchangeCost &cost) const { return cost.get(goal.objective); }
  /// What an option of an operation costs by itself.
  double getCost(const LoopOption &option) const;
  /// The sharding in the type of what a reshard gives; none there means whole.
  ShardingAttr getStated(Value value) const {
    ShardingAttr sharding = getSharding(value);
    return sharding ? sharding
                    : ShardingAttr::getReplicated(meshName, cast<RankedTensorType>(value.getType()).getRank());
  }
  /// The shardings that meet a request.
  std::vector<ShardingAttr> close(Value value, const ShardingRequest &request);

  func::FuncOp function;
  FlatSymbolRefAttr meshName;
  const FunctionRequests &requests;
  const Goal &goal;
  const DenseMap<Operation *, LoopOption> &decided;
  ExchangeCosts costs;
  DenseSet<Value> constants;
  CutFamilies families;
  std::optional<LoopOptions> loopOptions;
  llvm::MapVector<Operation *, std::vector<LoopOption>> options;
  DenseMap<Operation *, double> workOf;
  double totalWork = 0;
  /// Operations that take so little that it does not matter who has how much of them.
  DenseSet<Operation *> light;
  /// Operations of which not all options were tried.
  size_t numLimited = 0;
  uint64_t work = 0;
  bool isCut = false;
  /// Of operations, with the option that takes least.
  llvm::MapVector<Operation *, double> leastSeconds;
  /// Values through which sums may pass.
  DenseSet<Value> mayBePartial;
  ChoiceGraph graph;
  WeightStorage weights;
  llvm::MapVector<Value, Source> sources;
  /// Of values whose sharding is requested.
  llvm::MapVector<Value, Source> pinned;
  llvm::MapVector<OpOperand *, Source> outputs;
  /// Of values with several users.
  llvm::MapVector<Value, Source> forms;
  DenseMap<Value, SmallVector<Reader, 2>> readers;
  std::vector<Connection> connections;
  /// What it costs to take a tensor of one type from one sharding to another; negative where that is not known yet.
  struct Prices {
    std::vector<unsigned> getNumbers(ArrayRef<ShardingAttr> shardings) {
      std::vector<unsigned> list;
      for (ShardingAttr sharding : shardings)
        list.push_back(numbers.try_emplace(sharding, numbers.size()).first->second);
      costs.resize(numbers.size());
      return list;
    }

    DenseMap<ShardingAttr, unsigned> numbers;
    std::vector<std::vector<double>> costs;
    std::map<std::pair<std::vector<unsigned>, std::vector<unsigned>>, ChoiceGraph::EdgeCosts> tables;
  };
  DenseMap<Type, Prices> prices;
};

} // namespace

double AssignmentProblem::getCost(const LoopOption &option) const {
  switch (goal.objective) {
  case Objective::Time:
    return option.seconds + getCost(option.inner);
  case Objective::Memory:
    return goal.weightFactor * option.weightBytes + option.resultBytes + kBytesPerSecond * option.seconds +
           getCost(option.inner);
  case Objective::Bytes:
    // Time decides between what moves as much: all of it is less than a byte for each rank.
    return getCost(option.inner) + (totalWork > 0 ? option.seconds / totalWork : 0);
  }
  llvm_unreachable("covered switch");
}

void AssignmentProblem::stateCuts() {
  auto state = [&](Value value, ArrayRef<DimShardingAttr> dims, bool isStated = true) {
    std::optional<unsigned> place = families.getPlace(value);
    if (!place)
      return;
    for (auto [index, dim] : llvm::enumerate(dims))
      if (dim.isSplit() && dim.getPieces().empty())
        families.stateOpen(*place + index, dim.getAxes());
      else if (dim.isSplit())
        families.state(*place + index, dim, isStated);
  };
  for (BlockArgument argument : function.getArguments())
    if (auto request = requests.arguments.find(argument); request != requests.arguments.end())
      state(argument, request->second);
  for (Operation &op : function.getBody().front()) {
    if (auto entry = decided.find(&op); entry != decided.end())
      state(op.getResult(0), entry->second.loops, /*isStated=*/false);
    else if (auto loops = requests.loops.find(&op); loops != requests.loops.end())
      state(op.getResult(0), loops->second);
    else if (isa<ReshardOp>(op))
      state(op.getResult(0), getStated(op.getResult(0)).getDims());
    else if (op.getNumResults() > 0)
      if (auto request = requests.results.find(op.getResult(0)); request != requests.results.end())
        state(op.getResult(0), request->second);
  }
  for (const auto &[operand, request] : requests.outputs)
    state(operand->get(), request);
}

std::vector<LoopOption> AssignmentProblem::getOptions(DefinitionOpInterface op) {
  OpRelation relation = op.getRelation();
  WorkModel work(op, relation, constants);
  bool isWeight = constants.contains(op->getResult(0)) && !requests.loops.contains(op);
  if (!isWeight) {
    workOf[op] = work.getSeconds(goal.cluster.getDevice(0));
    totalWork += workOf[op];
  }
  if (auto entry = decided.find(op); entry != decided.end())
    return {entry->second};
  // Every rank computes weights as it needs them, once.
  if (isWeight) {
    LoopShardings whole(relation.loops.size(), DimShardingAttr::getUnsplit(op.getContext()));
    LoopOption option = loopOptions->get(op, relation, work, whole);
    option.seconds = option.weightBytes = option.resultBytes = 0;
    return {option};
  }
  if (auto loops = requests.loops.find(op); loops != requests.loops.end())
    return {loopOptions->get(op, relation, work, loops->second)};
  SmallVector<unsigned> passing;
  // Linear in one operand means with the others fixed: products of two partial values are not sums of products.
  if (!op.isReduction() || op->getNumOperands() == 1)
    for (auto [number, operand] : llvm::enumerate(op->getOperands()))
      if (mayBePartial.contains(operand) && op.isLinearIn(number))
        passing.push_back(number);
  bool adds = llvm::any_of(relation.loops, [](const Loop &loop) {
    return loop.kind == LoopKind::Reduction && loop.reduction == ReduceKind::Sum && loop.extent > 1;
  });
  if (adds || !passing.empty())
    mayBePartial.insert(op->result_begin(), op->result_end());
  std::vector<LoopOption> found = loopOptions->get(op, relation, work, passing);
  double &least = leastSeconds[op] = found.front().seconds;
  for (const LoopOption &option : found)
    least = std::min(least, option.seconds);
  numLimited += found.size() > kMaxOptions || !loopOptions->hasFoundAll();
  return found.size() > kMaxOptions ? keepSome(std::move(found)) : std::move(found);
}

std::vector<LoopOption> AssignmentProblem::keepSome(std::vector<LoopOption> found) {
  // Options that use more axes are more even, but not always faster, so that some of each set of axes stay.
  std::map<std::set<StringRef>, std::vector<size_t>> byAxes;
  for (auto [number, option] : llvm::enumerate(found)) {
    std::set<StringRef> axes;
    for (DimShardingAttr loop : option.loops)
      for (StringAttr axis : loop.getAxes())
        axes.insert(axis.getValue());
    byAxes[axes].push_back(number);
  }
  // Those that are not among the first of their axes come later.
  std::vector<std::pair<bool, size_t>> order;
  auto getKey = [&](size_t number) {
    const LoopOption &option = found[number];
    return std::tuple(option.changes > LoopOptions::kMaxChanges, option.share / option.imbalance, option.changes,
                      number);
  };
  size_t share = kMaxOptions / byAxes.size();
  for (auto &[axes, numbers] : byAxes) {
    llvm::sort(numbers, [&](size_t a, size_t b) { return getKey(a) < getKey(b); });
    // Not to split is an option on any mesh.
    size_t first = axes.empty() ? std::max<size_t>(share, 1) : share;
    for (auto [place, number] : llvm::enumerate(numbers))
      order.push_back({place >= first, number});
  }
  llvm::sort(order, [&](auto a, auto b) {
    return std::tuple(a.first, getKey(a.second)) < std::tuple(b.first, getKey(b.second));
  });
  order.resize(kMaxOptions);
  std::vector<LoopOption> kept;
  for (auto [isLater, number] : order)
    kept.push_back(std::move(found[number]));
  return kept;
}

void AssignmentProblem::findOptions() {
  for (auto op : function.getBody().front().getOps<DefinitionOpInterface>())
    options[op] = getOptions(op);
}

void AssignmentProblem::findLight() {
  // Of equal ones the first.
  std::vector<std::tuple<double, size_t, Operation *>> byWork;
  for (const auto &[op, list] : options)
    byWork.push_back({workOf.lookup(op), byWork.size(), op});
  llvm::sort(byWork);
  double together = 0;
  for (auto [work, number, op] : byWork) {
    together += work;
    if (work <= kLightShare * totalWork && together <= (kEvenTolerance - 1) * totalWork)
      light.insert(op);
  }
}

void AssignmentProblem::keepEven() {
  // Else computing everything everywhere would move least. Time has a price for that.
  if (goal.objective == Objective::Time)
    return;
  for (auto &[op, list] : options) {
    if (list.size() == 1 || light.contains(op))
      continue;
    double least = list.front().share;
    for (const LoopOption &option : list)
      least = std::min(least, option.share);
    llvm::erase_if(list,
                   [&](const LoopOption &option) { return option.share > kEvenTolerance * least * option.imbalance; });
  }
}

std::vector<ShardingAttr> AssignmentProblem::close(Value value, const ShardingRequest &request) {
  std::vector<SmallVector<DimShardingAttr>> ways = {SmallVector<DimShardingAttr>(request)};
  std::optional<unsigned> place = families.getPlace(value);
  auto type = cast<RankedTensorType>(value.getType());
  for (auto [index, dim] : llvm::enumerate(request)) {
    if (!dim.isSplit() || !dim.getPieces().empty())
      continue;
    std::vector<SmallVector<DimShardingAttr>> closed;
    for (SmallVector<DimShardingAttr> &way : ways) {
      if (!place) {
        closed.push_back(closeCuts(way, costs.getMesh(), type.getShape()));
        continue;
      }
      for (const CutFamilies::Cuts &cuts : families.get(*place + index, dim.getAxes())) {
        closed.push_back(way);
        closed.back()[index] = cuts.sharding;
      }
    }
    ways = std::move(closed);
  }
  std::vector<ShardingAttr> shardings;
  for (const SmallVector<DimShardingAttr> &way : ways)
    shardings.push_back(ShardingAttr::get(value.getContext(), meshName, way, {}, ReduceKind::Sum));
  return shardings;
}

void AssignmentProblem::addNodes() {
  auto addFree = [&](std::vector<ShardingAttr> states) {
    unsigned node = graph.addNode(std::vector<double>(states.size(), 0));
    return Source{node, std::move(states)};
  };
  for (BlockArgument argument : function.getArguments()) {
    if (auto request = requests.arguments.find(argument); request != requests.arguments.end()) {
      sources[argument] = addFree(close(argument, request->second));
      continue;
    }
    // Where the user may hand over parts, ranks are not given more than they need.
    auto type = cast<RankedTensorType>(argument.getType());
    std::vector<ShardingAttr> states = loopOptions->get(*families.getPlace(argument), type);
    std::vector<double> giving;
    for (ShardingAttr state : states)
      giving.push_back(getCost(costs.getGiving(type, state)));
    unsigned node = graph.addNode(std::move(giving));
    sources[argument] = {node, std::move(states)};
  }
  for (Operation &op : function.getBody().front()) {
    if (auto reshard = dyn_cast<ReshardOp>(op)) {
      ShardingAttr stated = getStated(reshard.getResult());
      Source source = addFree({stated});
      readers[reshard.getOperand()].push_back({source.node, {stated}});
      sources[reshard.getResult()] = std::move(source);
      continue;
    }
    auto entry = options.find(&op);
    if (entry == options.end())
      continue;
    std::vector<double> optionCosts;
    std::vector<ShardingAttr> states;
    for (const LoopOption &option : entry->second) {
      optionCosts.push_back(getCost(option));
      states.push_back(option.result);
    }
    unsigned node = graph.addNode(std::move(optionCosts));
    for (Value result : op.getResults())
      sources[result] = {node, states};
    for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
      Reader reader{node, {}};
      for (const LoopOption &option : entry->second)
        reader.needs.push_back(option.needs[number]);
      readers[operand].push_back(std::move(reader));
    }
    // Results are requested alike.
    if (auto request = requests.results.find(op.getResult(0)); request != requests.results.end())
      for (Value result : op.getResults())
        pinned[result] = addFree(close(result, request->second));
  }
  for (OpOperand &operand : function.getBody().front().getTerminator()->getOpOperands()) {
    auto request = llvm::find_if(requests.outputs, [&](const auto &entry) { return entry.first == &operand; });
    Source output = addFree(request == requests.outputs.end() ? std::vector<ShardingAttr>{ShardingAttr()}
                                                              : close(operand.get(), request->second));
    readers[operand.get()].push_back({output.node, output.states});
    if (request != requests.outputs.end())
      outputs[&operand] = std::move(output);
  }
}

void AssignmentProblem::connect(RankedTensorType type, const Source &source, const Reader &reader) {
  Prices &ofType = prices[RankedTensorType::get(type.getShape(), type.getElementType())];
  std::vector<unsigned> held = ofType.getNumbers(source.states), needed = ofType.getNumbers(reader.needs);
  // Networks repeat themselves.
  ChoiceGraph::EdgeCosts &table = ofType.tables[{held, needed}];
  if (!table) {
    std::vector<double> entries;
    entries.reserve(held.size() * needed.size());
    for (auto [from, state] : llvm::zip_equal(held, source.states)) {
      std::vector<double> &row = ofType.costs[from];
      row.resize(ofType.numbers.size(), -1);
      for (auto [to, need] : llvm::zip_equal(needed, reader.needs)) {
        if (row[to] < 0) {
          std::optional<ExchangeCost> cost = costs.get(type, state, need);
          row[to] = cost ? getCost(*cost) : ChoiceGraph::impossible;
        }
        entries.push_back(row[to]);
      }
    }
    table = std::make_shared<const std::vector<double>>(std::move(entries));
  }
  graph.addEdge(source.node, reader.node, table);
  connections.push_back({type, source, reader});
}

void AssignmentProblem::addEdges(Value value, const Source &source) {
  auto type = cast<RankedTensorType>(value.getType());
  ArrayRef<Reader> all = readers[value];
  const Source *from = &source;
  if (auto entry = pinned.find(value); entry != pinned.end()) {
    connect(type, source, {entry->second.node, entry->second.states});
    from = &entry->second;
  }
  if (all.size() > 1) {
    // The form in which the value is brought to all of them.
    Source form;
    llvm::SetVector<ShardingAttr> states(from->states.begin(), from->states.end());
    for (const Reader &reader : all)
      for (ShardingAttr need : reader.needs)
        if (need)
          states.insert(need);
    form.states.assign(states.begin(), states.end());
    form.node = graph.addNode(std::vector<double>(form.states.size(), 0));
    connect(type, *from, {form.node, form.states});
    from = &(forms[value] = std::move(form));
  }
  for (const Reader &reader : all)
    connect(type, *from, reader);
}

ChoiceGraph::Solution AssignmentProblem::search(double share) {
  SearchLimits limits;
  limits.work = static_cast<uint64_t>(share * static_cast<double>(goal.work - std::min(work, goal.work)));
  ChoiceGraph::Solution solution = graph.solve(limits);
  work += solution.work;
  isCut |= solution.isCut;
  return solution;
}

ChoiceGraph::Solution AssignmentProblem::follow() {
  std::vector<std::vector<const ChoiceGraph::Edge *>> edgesOf(graph.getNumNodes());
  for (const ChoiceGraph::Edge &edge : graph.getEdges()) {
    edgesOf[edge.a].push_back(&edge);
    edgesOf[edge.b].push_back(&edge);
  }
  ChoiceGraph::Solution solution;
  solution.options.resize(graph.getNumNodes());
  std::vector<bool> isDecided(graph.getNumNodes());
  auto decide = [&](unsigned node, const std::vector<LoopOption> *list) {
    if (isDecided[node])
      return;
    std::tuple<double, double, double> least(ChoiceGraph::impossible, 0, 0);
    for (unsigned option = 0; option < graph.getNumOptions(node); ++option) {
      double moved = 0, splits = 0;
      for (const ChoiceGraph::Edge *edge : edgesOf[node]) {
        unsigned other = edge->a == node ? edge->b : edge->a;
        auto [a, b] =
            edge->a == node ? std::pair(option, solution.options[other]) : std::pair(solution.options[other], option);
        if (isDecided[other])
          moved += (*edge->costs)[a * graph.getNumOptions(edge->b) + b];
      }
      if (list && goal.following == Following::Inputs)
        for (DimShardingAttr loop : (*list)[option].loops)
          splits += static_cast<double>(loop.getAxes().size());
      std::tuple key(moved, splits, graph.getCosts(node)[option]);
      if (key < least) {
        least = key;
        solution.options[node] = option;
      }
    }
    isDecided[node] = true;
  };
  for (const auto &[value, source] : sources) {
    Operation *op = value.getDefiningOp();
    // Arguments that are left open are given to all: what does not split them is the last of their states.
    if (!op) {
      solution.options[source.node] = graph.getNumOptions(source.node) - 1;
      isDecided[source.node] = true;
    }
    auto list = options.find(op);
    decide(source.node, list == options.end() ? nullptr : &list->second);
    const Source *from = &source;
    if (auto entry = pinned.find(value); entry != pinned.end()) {
      decide(entry->second.node, nullptr);
      from = &entry->second;
    }
    // Each user gets what it needs of the value as it is.
    if (auto form = forms.find(value); form != forms.end()) {
      solution.options[form->second.node] =
          llvm::find(form->second.states, getState(solution, *from)) - form->second.states.begin();
      isDecided[form->second.node] = true;
    }
  }
  for (unsigned node = 0; node < graph.getNumNodes(); ++node)
    decide(node, nullptr);
  solution.cost = graph.evaluate(solution.options);
  return solution;
}

Expectation AssignmentProblem::predict(const ChoiceGraph::Solution &solution, Peak *peak) {
  Expectation expected;
  Block &block = function.getBody().front();
  DenseMap<Value, Operation *> lastUsers;
  for (Operation &op : block)
    for (Value operand : op.getOperands())
      lastUsers[operand] = &op;
  DenseMap<Value, double> held, constantBytes;
  double values = 0;
  auto begin = [&](Value value, ShardingAttr state) {
    double bytes =
        WorkModel::isStored(value) ? costs.getLargestBytes(cast<RankedTensorType>(value.getType()), state) : 0;
    held[value] = bytes;
    values += bytes;
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
      if (peak) {
        peak->values.clear();
        for (const auto &[value, bytes] : held)
          peak->values.insert(value);
        peak->gathered = {gathered.begin(), gathered.end()};
      }
    }
    for (Value operand : op.getOperands())
      if (lastUsers.lookup(operand) == &op)
        if (auto entry = held.find(operand); entry != held.end()) {
          values -= entry->second;
          held.erase(entry);
        }
  }
  for (const auto &[value, bytes] : constantBytes)
    expected.weightBytes += bytes;
  for (const Connection &connection : connections) {
    const auto &[type, source, reader] = connection;
    std::optional<ExchangeCost> cost =
        costs.get(type, getState(solution, source), reader.needs[solution.options[reader.node]]);
    expected.seconds += cost->seconds;
    expected.bytes += cost->totalBytes;
  }
  return expected;
}

std::vector<WeightStorage::Use> AssignmentProblem::getUses(Value constant) {
  std::vector<WeightStorage::Use> uses;
  for (OpOperand &operand : constant.getUses()) {
    Operation *op = operand.getOwner();
    auto entry = options.find(op);
    if (entry == options.end() || constants.contains(op->getResult(0)) || uses.size() == kMaxReaders)
      return {};
    WeightStorage::Use use{&operand, sources[op->getResult(0)].node, {}};
    for (const LoopOption &option : entry->second)
      use.needs.push_back(option.needs[operand.getOperandNumber()]);
    uses.push_back(std::move(use));
  }
  // Uses of a value are listed from the last one made.
  llvm::sort(uses, [](const WeightStorage::Use &a, const WeightStorage::Use &b) {
    return std::pair(a.node, a.operand->getOperandNumber()) < std::pair(b.node, b.operand->getOperandNumber());
  });
  return uses;
}

void AssignmentProblem::addWeights() {
  // Where there is room, to gather anything only takes time.
  if (!goal.mayGather || (!goal.memory && goal.objective != Objective::Memory && !goal.seed))
    return;
  std::vector<std::tuple<int64_t, size_t, Value>> bySize;
  double all = 0, together = 0;
  for (auto constant : function.getBody().front().getOps<ConstantOp>()) {
    // Uniform ones become part of kernels.
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (elements && elements.isSplat())
      continue;
    bySize.push_back({getByteSize(cast<RankedTensorType>(constant.getType())), bySize.size(), constant.getResult()});
    all += static_cast<double>(std::get<0>(bySize.back()));
  }
  llvm::sort(bySize, [](const auto &a, const auto &b) {
    return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
  });
  std::mt19937_64 random(goal.seed);
  for (auto [bytes, number, value] : bySize) {
    together += static_cast<double>(bytes);
    // Small ones save nothing; at random, some are as users need them.
    bool isLight = static_cast<double>(bytes) <= kLightShare * all && together <= (kEvenTolerance - 1) * all;
    if (goal.seed ? random() & 1 : isLight)
      continue;
    if (std::vector<WeightStorage::Use> uses = getUses(value); !uses.empty())
      weights.add(value, std::move(uses), graph);
  }
  if (weights.empty())
    return;
  // How these are stored is a choice of theirs, not of the operations.
  for (auto &[op, list] : options) {
    if (llvm::none_of(op->getOperands(), [&](Value operand) { return weights.contains(operand); }))
      continue;
    for (LoopOption &option : list) {
      option.weightBytes = 0;
      for (auto [value, need] : llvm::zip_equal(op->getOperands(), option.needs))
        if (constants.contains(value) && !weights.contains(value))
          option.weightBytes += costs.getLargestBytes(cast<RankedTensorType>(value.getType()), need);
    }
    std::vector<double> own;
    for (const LoopOption &option : list)
      own.push_back(getCost(option));
    graph.setCosts(sources[op->getResult(0)].node, std::move(own));
  }
  setWeightCosts(0, {});
}

void AssignmentProblem::setWeightCosts(double price, const Peak &atMost) {
  weights.setCosts(
      graph,
      {price + (goal.objective == Objective::Memory ? 1 : 0), [&](const ExchangeCost &cost) { return getCost(cost); }},
      [&](OpOperand *operand) { return atMost.gathered.contains(operand); });
}

ChoiceGraph::Solution AssignmentProblem::searchFreely(Peak &atMost) {
  ChoiceGraph::Solution solution = search(goal.memory || !weights.empty() ? kShareOfOne : 1);
  if (weights.empty() || goal.seed || goal.objective != Objective::Memory || !solution.isPossible())
    return solution;
  double bound = solution.bound;
  Peak peak;
  ChoiceGraph::Solution found = solution;
  Expectation least = predict(solution, &peak);
  for (int searches = 1; searches < kMaxSearchesForLeast; ++searches) {
    size_t known = atMost.gathered.size();
    atMost.gathered.insert(peak.gathered.begin(), peak.gathered.end());
    if (atMost.gathered.size() == known)
      break;
    setWeightCosts(0, atMost);
    found = search(kShareOfOne);
    Expectation expected = predict(found, &peak);
    if (std::pair(expected.getMemory(), expected.seconds) < std::pair(least.getMemory(), least.seconds)) {
      solution = found;
      least = expected;
    }
  }
  solution.cost = graph.evaluate(solution.options);
  solution.bound = bound;
  return solution;
}

ChoiceGraph::Solution AssignmentProblem::searchWithin(double memory) {
  Peak peak, atMost;
  ChoiceGraph::Solution solution = searchFreely(atMost);
  if (!solution.isPossible())
    return solution;
  Expectation expected = predict(solution, &peak);
  if (expected.getMemory() <= memory)
    return solution;
  double unlimited = solution.bound;
  // What memory costs at first: not less than it might gain.
  double price = std::max(solution.cost, 1e-9) / std::max(expected.getMemory(), 1.0), tooLow = 0;
  std::optional<ChoiceGraph::Solution> fitting;
  ChoiceGraph::Solution least = solution;
  double leastMemory = expected.getMemory();
  std::vector<std::pair<unsigned, std::vector<double>>> own;
  for (auto &[op, list] : options) {
    unsigned node = sources[op->getResult(0)].node;
    own.push_back({node, graph.getCosts(node)});
  }
  for (int raises = 0, halvings = 0; raises < kMaxRaises && halvings < kMaxHalvings;) {
    atMost.values.insert(peak.values.begin(), peak.values.end());
    atMost.gathered.insert(peak.gathered.begin(), peak.gathered.end());
    for (auto [entry, ofOperation] : llvm::zip_equal(options, own)) {
      auto &[op, list] = entry;
      std::vector<double> sums = ofOperation.second;
      for (auto [cost, option] : llvm::zip_equal(sums, list)) {
        bool isLive = llvm::any_of(op->getResults(), [&](Value result) { return atMost.values.contains(result); });
        cost += price * (goal.weightFactor * option.weightBytes + (isLive ? option.resultBytes : 0));
      }
      graph.setCosts(ofOperation.first, std::move(sums));
    }
    if (!goal.seed)
      setWeightCosts(price, atMost);
    solution = search(kShareOfOne);
    // The limit of work may leave nothing.
    if (!solution.isPossible())
      break;
    expected = predict(solution, &peak);
    bool fits = expected.getMemory() <= memory;
    if (expected.getMemory() < leastMemory) {
      leastMemory = expected.getMemory();
      least = solution;
    }
    if (fits) {
      fitting = solution;
      ++halvings;
      price = tooLow == 0 ? price / 10 : std::sqrt(price * tooLow);
    } else {
      tooLow = price;
      fitting ? ++halvings : ++raises;
      price *= fitting ? 2 : 10;
    }
  }
  for (auto &[node, costs] : own)
    graph.setCosts(node, std::move(costs));
  if (!goal.seed)
    setWeightCosts(0, atMost);
  solution = fitting ? *fitting : least;
  // All weights that cost alike are gathered at the same price, though fewer of them may do.
  if (fitting && !goal.seed)
    weights.holdWithin(solution, memory - predict(solution).getMemory());
  solution.cost = graph.evaluate(solution.options);
  solution.bound = unlimited;
  return solution;
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
                              solution.cost > 0 ? other.cost / solution.cost - 1 : 0});
  }
  return explanations;
}

void AssignmentProblem::findIdle(ShardingAssignment &assignment) {
  const layout::Mesh &mesh = costs.getMesh();
  llvm::SmallDenseSet<StringAttr> busyAxes;
  std::vector<bool> isBusy(mesh.numRanks());
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
    SmallVector<int64_t> extents;
    for (const Loop &loop : cast<DefinitionOpInterface>(op).getRelation().loops)
      extents.push_back(loop.extent);
    layout::Sharding sharding = toLayout(loops, mesh);
    for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank)
      isBusy[rank] = isBusy[rank] || !sharding.boxOf(mesh, extents, rank).empty();
  }
  if (!isAny)
    return;
  for (const layout::MeshAxis &axis : mesh.getAxes())
    if (auto name = StringAttr::get(function.getContext(), axis.name); axis.size > 1 && !busyAxes.contains(name))
      assignment.idleAxes.push_back(name);
  for (int rank = 0, e = mesh.numRanks(); rank < e; ++rank)
    if (!isBusy[rank])
      assignment.idleRanks.push_back(rank);
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
    return function.emitError("no way to split it that meets all that is asked for was found; search longer");
  if (!solution.isPossible())
    return function.emitError("cannot be split as is stated: no sharding of its values meets all that is asked for");
  ShardingAssignment assignment;
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
