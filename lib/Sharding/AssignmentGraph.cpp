//===- AssignmentGraph.cpp - A graph of choices of a function -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes the graph of choices: of arguments, operations, forms in which values are brought to users, and weights.
//
//===----------------------------------------------------------------------===//

#include "AssignmentProblem.h"

#include "llvm/ADT/STLExtras.h"

#include <random>

using namespace mlir;
using namespace dovetail;

/// Operations that may read a weight of which ranks store pieces: each has to gather it.
static constexpr unsigned kMaxReaders = 4;

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
    // Where the user may hand over parts, ranks are not given more than they need. What is fed back, he gives once.
    bool isFedBack = llvm::any_of(requests.feedback, [&](const auto &entry) { return entry.second == argument; });
    auto type = cast<RankedTensorType>(argument.getType());
    std::vector<ShardingAttr> states = loopOptions->get(*families.getPlace(argument), type);
    std::vector<double> giving;
    for (ShardingAttr state : states)
      giving.push_back(isFedBack ? 0 : getCost(costs.getGiving(type, state)));
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
    opOf[node] = &op;
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
    auto feedback = llvm::find_if(requests.feedback, [&](const auto &entry) { return entry.first == &operand; });
    if (feedback != requests.feedback.end()) {
      // It is brought to where the argument is.
      const Source &argument = outputs[&operand] = sources[feedback->second];
      if (operand.get() != feedback->second)
        readers[operand.get()].push_back({argument.node, argument.states});
      continue;
    }
    auto request = llvm::find_if(requests.outputs, [&](const auto &entry) { return entry.first == &operand; });
    Source output = addFree(request == requests.outputs.end() ? std::vector<ShardingAttr>{ShardingAttr()}
                                                              : close(operand.get(), request->second));
    readers[operand.get()].push_back({output.node, output.states});
    if (request != requests.outputs.end())
      outputs[&operand] = std::move(output);
  }
}

void AssignmentProblem::connect(Value value, const Source &source, const Reader &reader) {
  auto type = cast<RankedTensorType>(value.getType());
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
  connections.push_back({value, source, reader, graph.addEdge(source.node, reader.node, table)});
}

void AssignmentProblem::addEdges(Value value, const Source &source) {
  ArrayRef<Reader> all = readers[value];
  const Source *from = &source;
  if (auto entry = pinned.find(value); entry != pinned.end()) {
    connect(value, source, {entry->second.node, entry->second.states});
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
    connect(value, *from, {form.node, form.states});
    from = &(forms[value] = std::move(form));
  }
  for (const Reader &reader : all)
    connect(value, *from, reader);
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
