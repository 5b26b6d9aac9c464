//===- HaloWidths.cpp - How wide halos are --------------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes a graph of choices of a function, and reads from its solution what is to change.
//
//===----------------------------------------------------------------------===//

#include "HaloWidths.h"
#include "dovetail/Cost/ExchangeCosts.h"
#include "dovetail/Cost/OpCosts.h"

#include "dovetail/Layout/Cuts.h"
#include "dovetail/Search/ChoiceGraph.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace dovetail;

/// Ways to widen one operation: of more, some of all widths.
static constexpr size_t kMaxOptions = 24;
/// Forms in which a value may be brought to all its readers.
static constexpr size_t kMaxForms = 64;
/// Entries of the tables of a search.
static constexpr size_t kMaxTableSize = size_t(1) << 18;

namespace {

/// The choices of one function: of each operation, which windows of its result ranks compute; of each value with
/// several readers, the form in which it is brought to all of them.
class HaloProblem {
public:
  HaloProblem(func::FuncOp function, const layout::Mesh &mesh, FlatSymbolRefAttr meshName, const HaloGoal &goal)
      : function(function), meshName(meshName), goal(goal), costs(mesh, goal.cluster, goal.engine),
        constants(getConstantValues(function)) {}

  FailureOr<HaloWidths> solve();

private:
  /// How an operation's loops are split, and how else they may be.
  struct Choice {
    OpRelation relation;
    /// The first one is what was decided before.
    SmallVector<LoopShardings> options;
    SmallVector<ShardingAttr> results;
    /// How long each takes the slowest rank; nothing where there is but one.
    SmallVector<double> seconds;
    unsigned node = 0;
    bool mayWiden = false;
  };
  /// A node of the graph, and what ranks hold or need with each of its options.
  struct End {
    unsigned node;
    SmallVector<ShardingAttr> states;
  };
  /// A value that is brought from one to the other.
  struct Connection {
    Value value;
    End source, reader;
  };

  LogicalResult findChoices();
  void findOptions(SplitOpInterface op, Choice &choice);
  void addNodes();
  void addEdges(Value value, ArrayRef<OpOperand *> operands);
  void connect(Value value, const End &source, const End &reader);
  /// No value where it is not done.
  std::optional<ExchangeCost> getExchange(Value value, ShardingAttr held, ShardingAttr needed) {
    return costs.get(cast<RankedTensorType>(value.getType()), held, needed);
  }
  double getCost(const ExchangeCost &exchange) const;
  ShardingAttr getNeed(OpOperand &operand, ArrayRef<DimShardingAttr> loops);
  /// What costs least if operations stay as they are.
  ChoiceGraph::Solution findFormer() const;
  HaloWidths::Expense getExpense(const ChoiceGraph::Solution &solution);

  func::FuncOp function;
  FlatSymbolRefAttr meshName;
  const HaloGoal &goal;
  ExchangeCosts costs;
  DenseSet<Value> constants;
  llvm::MapVector<Operation *, Choice> choices;
  /// Of what is computed or given, but for constants, the operands that read it, by itself or with a halo.
  llvm::MapVector<Value, SmallVector<OpOperand *>> readers;
  llvm::MapVector<Value, End> forms;
  std::vector<Connection> connections;
  /// Where bytes are to be least, what a second counts: all of them less than a byte.
  double bytesPerSecond = 0;
  ChoiceGraph graph;
};

} // namespace

/// Whether a reshard gives ranks, besides what they hold, what lies around it, and operations alone read that. Others,
/// such as what a user asks for, stay where they are.
static bool isHalo(ReshardOp reshard) {
  ShardingAttr held = getSharding(reshard.getOperand()), given = getSharding(reshard.getResult());
  if (!held || !given || held.isPartial() || given.isPartial())
    return false;
  auto type = cast<RankedTensorType>(reshard.getType());
  bool overlaps = false;
  for (auto [index, from] : llvm::enumerate(held.getDims())) {
    DimShardingAttr to = given.getDims()[index];
    if (from.getAxes() != to.getAxes())
      return false;
    overlaps |= !to.coversOnce(type.getDimSize(index));
  }
  return overlaps && llvm::all_of(reshard->getUsers(), [](Operation *user) { return isa<SplitOpInterface>(user); });
}

/// The value that an operand reads, perhaps with a halo.
static Value getSource(Value operand) {
  auto reshard = operand.getDefiningOp<ReshardOp>();
  return reshard && isHalo(reshard) ? reshard.getOperand() : operand;
}

ConstantOp dovetail::getReadConstant(Value operand) {
  if (auto reshard = operand.getDefiningOp<ReshardOp>())
    operand = reshard.getOperand();
  return operand.getDefiningOp<ConstantOp>();
}

/// Whether ranks may compute more of the result than their parts: each element is computed as a whole by whoever has
/// it.
static bool mayWiden(const OpRelation &relation, ShardingAttr result, ArrayRef<DimShardingAttr> loops) {
  if (!result || result.isPartial())
    return false;
  bool isSplit = false;
  for (auto [index, sharding] : llvm::enumerate(loops)) {
    if (!sharding.isSplit())
      continue;
    if (index >= result.getDims().size() || relation.loops[index].kind != LoopKind::Parallel)
      return false;
    isSplit = true;
  }
  return isSplit;
}

/// Whether on each rank what both have is no more than their hull: there is no gap. An end that wraps around is no
/// halo.
static bool meet(DimShardingAttr a, DimShardingAttr b) {
  if (!a.isSplit() || a.getAxes() != b.getAxes())
    return true;
  for (unsigned i = 0, e = a.getNumPieces(); i < e; ++i) {
    layout::Interval one = a.getPiece(i), other = b.getPiece(i);
    if (!one.empty() && !other.empty() && one.hull(other).size() > one.size() + other.size())
      return false;
  }
  return true;
}

static bool meet(ShardingAttr a, ShardingAttr b) {
  return llvm::all_of(llvm::zip_equal(a.getDims(), b.getDims()),
                      [](auto dims) { return meet(std::get<0>(dims), std::get<1>(dims)); });
}

/// Loops in which all ranks have, besides their pieces of `loops`, what is needed. Nothing where that is not split
/// alike.
static std::optional<LoopShardings> widen(const OpRelation &relation, ArrayRef<DimShardingAttr> loops,
                                          ArrayRef<DimShardingAttr> needed) {
  LoopShardings widened(loops);
  for (auto [index, need] : llvm::enumerate(needed)) {
    // What is not split all ranks compute whole.
    if (!loops[index].isSplit())
      continue;
    if (need.getAxes() != loops[index].getAxes() || !meet(loops[index], need))
      return std::nullopt;
    widened[index] = getHull(loops[index], need);
    if (!widened[index].covers(relation.loops[index].extent))
      return std::nullopt;
  }
  return widened;
}

/// How many iterations ranks have of all loops, to compare widths.
static double getWidth(const OpRelation &relation, ArrayRef<DimShardingAttr> loops) {
  double width = 1;
  for (auto [loop, sharding] : llvm::zip_equal(relation.loops, loops)) {
    if (!sharding.isSplit() || loop.extent == 0)
      continue;
    int64_t sum = 0;
    for (unsigned i = 0, e = sharding.getNumPieces(); i < e; ++i)
      sum += sharding.getPiece(i).size();
    width *= static_cast<double>(sum) / static_cast<double>(loop.extent);
  }
  return width;
}

/// The same axes split each loop, as evenly as its iterations can be.
static LoopShardings getEven(const OpRelation &relation, ArrayRef<DimShardingAttr> loops) {
  LoopShardings even(loops);
  for (auto [loop, sharding] : llvm::zip_equal(relation.loops, even))
    if (sharding.isSplit())
      sharding =
          DimShardingAttr::getCuts(sharding.getAxes(), layout::balancedCuts(loop.extent, sharding.getNumPieces()));
  return even;
}

ShardingAttr HaloProblem::getNeed(OpOperand &operand, ArrayRef<DimShardingAttr> loops) {
  auto type = cast<RankedTensorType>(operand.get().getType());
  return getNeededSharding(choices[operand.getOwner()].relation, operand.getOperandNumber(), type, loops, meshName);
}

LogicalResult HaloProblem::findChoices() {
  for (auto op : function.getBody().front().getOps<SplitOpInterface>()) {
    FailureOr<LoopShardings> loops = readLoopShardings(op);
    if (failed(loops))
      return failure();
    Choice &choice = choices[op];
    choice.relation = op.getRelation();
    choice.options.push_back(*loops);
    choice.mayWiden = !constants.contains(op->getResult(0)) && isPure(op) &&
                      mayWiden(choice.relation, getSharding(op->getResult(0)), *loops);
    for (OpOperand &operand : op->getOpOperands()) {
      Value source = getSource(operand.get());
      // Constants are at hand; partial values are combined as they are.
      if (getReadConstant(operand.get()) || !getSharding(source) || isPartial(source))
        continue;
      readers[source].push_back(&operand);
    }
  }
  // Those that read come after what they read.
  for (auto &[op, choice] : llvm::reverse(choices))
    if (choice.mayWiden)
      findOptions(cast<SplitOpInterface>(op), choice);
  return success();
}

void HaloProblem::findOptions(SplitOpInterface op, Choice &choice) {
  LoopShardings loops = choice.options.front();
  SmallVector<LoopShardings> found;
  auto add = [&](const std::optional<LoopShardings> &option) {
    if (option && *option != loops && !llvm::is_contained(found, *option))
      found.push_back(*option);
  };
  for (Value result : op->getResults())
    for (OpOperand *operand : readers.lookup(result))
      for (const LoopShardings &option : choices[operand->getOwner()].options)
        add(widen(choice.relation, loops, getNeed(*operand, option).getDims()));
  if (found.empty())
    return;
  int64_t rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank();
  // What two readers need together.
  for (size_t i = 0, e = found.size(); i < e; ++i)
    for (size_t j = 0; j < i && found.size() < 4 * kMaxOptions; ++j)
      add(widen(choice.relation, found[i], ArrayRef(found[j]).take_front(rank)));
  SmallVector<std::pair<double, size_t>> order;
  for (auto [number, option] : llvm::enumerate(found))
    order.push_back({getWidth(choice.relation, option), number});
  llvm::sort(order);
  for (size_t i = 0, e = order.size(); e > kMaxOptions && i < kMaxOptions; ++i)
    order[i] = order[i * (e - 1) / (kMaxOptions - 1)];
  order.resize(std::min(order.size(), kMaxOptions));
  std::optional<OpCosts> work;
  double most = 0;
  if (goal.objective == Objective::Bytes && !goal.always && !goal.seed) {
    // Else computing everything everywhere would move least.
    work.emplace(op, choice.relation, constants);
    double now = work->getLargestShare(goal.cluster, costs.getMesh(), loops);
    double even = work->getLargestShare(goal.cluster, costs.getMesh(), getEven(choice.relation, loops));
    most = std::max(now, kEvenTolerance * std::min(now, even));
  }
  for (auto [width, number] : order)
    if (!work || work->getLargestShare(goal.cluster, costs.getMesh(), found[number]) <= most)
      choice.options.push_back(std::move(found[number]));
}

void HaloProblem::addNodes() {
  double total = 0;
  for (auto &[op, choice] : choices) {
    ShardingAttr result = getSharding(op->getResult(0));
    if (result)
      for (const LoopShardings &option : choice.options)
        choice.results.push_back(result.withDims(ArrayRef(option).take_front(result.getDims().size())));
    if (choice.options.size() == 1)
      continue;
    OpCosts work(cast<SplitOpInterface>(op), choice.relation, constants);
    for (const LoopShardings &option : choice.options)
      choice.seconds.push_back(work.getSeconds(goal.cluster, costs.getMesh(), option));
    total += *llvm::max_element(choice.seconds);
  }
  // Of ways that move as much, that which takes less time is chosen.
  total += 2 * static_cast<double>(readers.size()) * goal.cluster.getLinks().back().exchangeSeconds;
  bytesPerSecond = total > 0 ? 0.5 / total : 0;
  double scale = goal.always ? 0 : goal.objective == Objective::Bytes ? bytesPerSecond : 1;
  for (auto &[op, choice] : choices) {
    std::vector<double> optionCosts(choice.options.size(), 0);
    for (auto [cost, seconds] : llvm::zip(optionCosts, choice.seconds))
      cost = scale * seconds;
    choice.node = graph.addNode(std::move(optionCosts));
  }
}

double HaloProblem::getCost(const ExchangeCost &exchange) const {
  if (goal.always)
    return exchange.phases;
  return goal.objective == Objective::Bytes ? exchange.totalBytes + bytesPerSecond * exchange.seconds
                                            : exchange.seconds;
}

void HaloProblem::connect(Value value, const End &source, const End &reader) {
  std::vector<double> table;
  for (ShardingAttr held : source.states)
    for (ShardingAttr needed : reader.states) {
      std::optional<ExchangeCost> exchange = getExchange(value, held, needed);
      table.push_back(exchange ? getCost(*exchange) : ChoiceGraph::impossible);
    }
  if (llvm::none_of(table, [](double cost) { return cost > 0; }))
    return;
  graph.addEdge(source.node, reader.node, std::make_shared<const std::vector<double>>(std::move(table)));
  connections.push_back({value, source, reader});
}

void HaloProblem::addEdges(Value value, ArrayRef<OpOperand *> operands) {
  auto entry = choices.find(value.getDefiningOp());
  bool isWidened = entry != choices.end() && entry->second.options.size() > 1;
  if (!isWidened &&
      llvm::all_of(operands, [&](OpOperand *operand) { return choices[operand->getOwner()].options.size() == 1; }))
    return;
  End source;
  if (entry != choices.end())
    source = {entry->second.node, entry->second.results};
  else
    source = {graph.addNode({0}), {getSharding(value)}};
  if (isWidened)
    for (Operation *user : value.getUsers())
      if (auto other = dyn_cast<ReshardOp>(user); other && !isHalo(other))
        if (ShardingAttr given = getSharding(other.getResult()); given && !given.isPartial())
          connect(value, source, {graph.addNode({0}), {given}});

  SmallVector<End> ends;
  for (OpOperand *operand : operands) {
    const Choice &choice = choices[operand->getOwner()];
    End &end = ends.emplace_back(End{choice.node, {}});
    for (const LoopShardings &option : choice.options)
      end.states.push_back(getNeed(*operand, option));
  }
  if (ends.size() > 1) {
    // It is brought to all of them at once.
    llvm::SetVector<ShardingAttr> states(source.states.begin(), source.states.end());
    for (const End &end : ends)
      states.insert(end.states.begin(), end.states.end());
    for (size_t i = 0, e = states.size(); i < e; ++i)
      for (size_t j = 0; j < i && states.size() < kMaxForms; ++j)
        if (meet(states[i], states[j]))
          states.insert(getHull(states[i], states[j]));
    End form{0, SmallVector<ShardingAttr>(states.begin(), states.end())};
    form.node = graph.addNode(std::vector<double>(states.size(), 0));
    connect(value, source, form);
    source = forms[value] = form;
  }
  for (const End &end : ends)
    connect(value, source, end);
}

ChoiceGraph::Solution HaloProblem::findFormer() const {
  ChoiceGraph former = graph;
  for (const auto &[op, choice] : choices) {
    std::vector<double> stays(choice.options.size(), ChoiceGraph::impossible);
    stays.front() = graph.getCosts(choice.node).front();
    former.setCosts(choice.node, std::move(stays));
  }
  return former.solve({kMaxTableSize});
}

HaloWidths::Expense HaloProblem::getExpense(const ChoiceGraph::Solution &solution) {
  HaloWidths::Expense expense;
  for (const auto &[op, choice] : choices)
    if (!choice.seconds.empty())
      expense.workSeconds += choice.seconds[solution.options[choice.node]];
  for (const auto &[value, source, reader] : connections) {
    std::optional<ExchangeCost> exchange =
        getExchange(value, source.states[solution.options[source.node]], reader.states[solution.options[reader.node]]);
    // What is chosen can be done.
    expense.exchanges += exchange->phases;
    expense.bytes += exchange->totalBytes;
    expense.exchangeSeconds += exchange->seconds;
  }
  return expense;
}

FailureOr<HaloWidths> HaloProblem::solve() {
  HaloWidths widths;
  if (failed(findChoices()))
    return failure();
  if (llvm::all_of(choices, [](const auto &entry) { return entry.second.options.size() == 1; }))
    return widths;
  addNodes();
  for (const auto &[value, operands] : readers)
    addEdges(value, operands);
  if (goal.seed)
    graph.randomize(goal.seed);
  ChoiceGraph::Solution solution = graph.solve({kMaxTableSize}), former = findFormer();
  // Where tables are bounded, what is found may not be the optimum.
  if (!solution.isPossible() || !former.isPossible() || (!goal.seed && solution.cost >= former.cost))
    return widths;
  widths.before = getExpense(former);
  widths.after = getExpense(solution);
  for (const auto &[op, choice] : choices)
    if (unsigned option = solution.options[choice.node])
      widths.operations[op] = {choice.options[option], choice.seconds[option] - choice.seconds.front()};
  auto isChanged = [&](Operation *op) { return widths.operations.contains(op); };
  for (const auto &[value, operands] : readers) {
    if (!isChanged(value.getDefiningOp()) &&
        llvm::none_of(operands, [&](OpOperand *operand) { return isChanged(operand->getOwner()); }))
      continue;
    HaloWidths::Change change{value, operands, {}};
    if (auto form = forms.find(value); form != forms.end())
      change.form = form->second.states[solution.options[form->second.node]];
    widths.values.push_back(std::move(change));
  }
  return widths;
}

FailureOr<HaloWidths> dovetail::findHaloWidths(func::FuncOp function, const layout::Mesh &mesh,
                                               FlatSymbolRefAttr meshName, const HaloGoal &goal) {
  return HaloProblem(function, mesh, meshName, goal).solve();
}
