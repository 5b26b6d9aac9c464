//===- ChooseFormats.cpp - Choose memory formats -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses how each value lies in memory, for the whole function at once.
//
//===----------------------------------------------------------------------===//

#include "FormatCosts.h"
#include "LibraryPass.h"
#include "dovetail/Conversion/Passes.h"
#include "dovetail/Search/ChoiceGraph.h"

namespace dovetail {
#define GEN_PASS_DEF_CHOOSEFORMATS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;
using plan::FormatAttr;

static int64_t getRank(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

namespace {

/// Carries formats from operations that prefer one to those around them, nearest first, whatever that costs: a good
/// choice to begin with, and the one that is kept where others cost as much.
class FormatCarrier {
public:
  FormatCarrier(func::FuncOp function, const Libraries &libraries)
      : function(function), context(function.getContext()), libraries(libraries) {}

  /// The formats of all arguments and results.
  DenseMap<Value, FormatAttr> run();

private:
  FormatAttr getRowMajor(Value value) { return FormatAttr::getRowMajor(context, getRank(value)); }
  FormatAttr getWish(Value value) {
    FormatAttr wish = wishes.lookup(value);
    return wish ? wish : getRowMajor(value);
  }
  void collectWishes(Operation &op);
  void assign(Operation &op);
  /// Chooses that of the first result.
  void assignFirst(Operation &op);

  func::FuncOp function;
  MLIRContext *context;
  const Libraries &libraries;
  /// What the users of a value would like.
  DenseMap<Value, FormatAttr> wishes;
  /// Values whose format an operation's preference decided.
  DenseSet<Value> decided;
  DenseMap<Value, FormatAttr> formats;
};

/// Chooses the formats of all values together, by what they cost those who write and read them.
///
/// Values of one format are one choice: all results of an operation, and what reshards make of them. What prefers a
/// format has no other.
class FormatChooser {
public:
  FormatChooser(func::FuncOp function, const Libraries &libraries)
      : function(function), libraries(libraries), carried(FormatCarrier(function, libraries).run()) {}

  /// Writes the choices into the function.
  void run();

private:
  using Options = SmallVector<FormatAttr, 4>;

  /// The formats that a value may have, the one that is carried to it first. `isFixed`: it has that one.
  Options getOptions(Value value, bool isFixed);
  /// Makes one choice of these values.
  void addChoice(ValueRange values, bool isFixed);
  void addChoices(Operation &op);
  void addReads(SplitOpInterface op);

  func::FuncOp function;
  const Libraries &libraries;
  DenseMap<Value, FormatAttr> carried;
  ChoiceGraph graph;
  DenseMap<Value, unsigned> nodes;
  SmallVector<Options> options;
};

struct ChooseFormats : LibraryPass<dovetail::impl::ChooseFormatsBase<ChooseFormats>> {
  using LibraryPass::LibraryPass;

  LogicalResult run(func::FuncOp function, const Libraries &callable) override {
    for (Operation &op : function.getBody().front().without_terminator())
      if (!isa<ConstantOp, ReshardOp, SplitOpInterface>(op))
        return op.emitOpError("has no memory formats");
    FormatChooser(function, callable).run();
    return success();
  }
};

} // namespace

void FormatCarrier::collectWishes(Operation &op) {
  if (auto reshard = dyn_cast<ReshardOp>(op)) {
    if (FormatAttr wish = wishes.lookup(reshard.getResult()))
      wishes.try_emplace(reshard.getOperand(), wish);
    return;
  }
  auto partitionable = dyn_cast<SplitOpInterface>(op);
  if (!partitionable)
    return;
  int64_t rank = getRank(op.getResult(0));
  FormatAttr preferred = getPreferredFormat(partitionable, rank, libraries);
  if (!preferred)
    preferred = wishes.lookup(op.getResult(0));
  if (!preferred)
    return;
  for (auto [number, operand] : llvm::enumerate(op.getOperands()))
    if (getRank(operand) == rank && isAlignedWithResult(partitionable, number))
      wishes.try_emplace(operand, preferred);
}

void FormatCarrier::assign(Operation &op) {
  assignFirst(op);
  for (Value other : llvm::drop_begin(op.getResults())) {
    formats[other] = formats.lookup(op.getResult(0));
    if (decided.contains(op.getResult(0)))
      decided.insert(other);
  }
}

void FormatCarrier::assignFirst(Operation &op) {
  Value result = op.getResult(0);
  if (isa<ConstantOp>(op)) {
    formats[result] = getRowMajor(result);
    return;
  }
  if (auto reshard = dyn_cast<ReshardOp>(op)) {
    formats[result] = formats.lookup(reshard.getOperand());
    if (decided.contains(reshard.getOperand()))
      decided.insert(result);
    return;
  }
  auto partitionable = cast<SplitOpInterface>(op);
  int64_t rank = getRank(result);
  if (FormatAttr preferred = getPreferredFormat(partitionable, rank, libraries)) {
    formats[result] = preferred;
    decided.insert(result);
    return;
  }
  Value leading;
  for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
    if (operand.getDefiningOp<ConstantOp>() || getRank(operand) != rank || !isAlignedWithResult(partitionable, number))
      continue;
    bool isLarger = leading && cast<RankedTensorType>(operand.getType()).getNumElements() >
                                   cast<RankedTensorType>(leading.getType()).getNumElements();
    if (!leading || (isLarger && decided.contains(operand) >= decided.contains(leading)))
      leading = operand;
  }
  if (leading && (decided.contains(leading) || !wishes.contains(result))) {
    formats[result] = formats.lookup(leading);
    if (decided.contains(leading))
      decided.insert(result);
    return;
  }
  formats[result] = getWish(result);
}

DenseMap<Value, FormatAttr> FormatCarrier::run() {
  Block &block = function.getBody().front();
  for (Operation &op : llvm::reverse(block))
    collectWishes(op);
  for (BlockArgument argument : function.getArguments())
    formats[argument] = getWish(argument);
  for (Operation &op : block.without_terminator())
    assign(op);
  return std::move(formats);
}

FormatChooser::Options FormatChooser::getOptions(Value value, bool isFixed) {
  Options formats = {carried.lookup(value)};
  int64_t rank = getRank(value);
  // Formats of less than two dimensions that are longer than 1 are alike.
  auto isLong = [](int64_t extent) { return extent > 1; };
  if (isFixed || llvm::count_if(cast<RankedTensorType>(value.getType()).getShape(), isLong) < 2)
    return formats;
  MLIRContext *context = value.getContext();
  SmallVector<int64_t> columns = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(columns[rank - 2], columns[rank - 1]);
  for (FormatAttr format : {FormatAttr::getRowMajor(context, rank), FormatAttr::getChannelsLast(context, rank),
                            FormatAttr::get(context, columns)})
    if (!llvm::is_contained(formats, format))
      formats.push_back(format);
  return formats;
}

void FormatChooser::addChoice(ValueRange values, bool isFixed) {
  Options formats = getOptions(values.front(), isFixed);
  std::vector<double> costs;
  for (FormatAttr format : formats)
    costs.push_back((isa<BlockArgument>(values.front()) ? getPortCost(values.front(), format) : 0) +
                    // Of what costs the same, formats that are carried are chosen: half a byte decides that.
                    (format == formats.front() ? 0 : 0.5));
  unsigned node = graph.addNode(std::move(costs));
  options.push_back(std::move(formats));
  for (Value value : values)
    nodes[value] = node;
}

void FormatChooser::addReads(SplitOpInterface op) {
  unsigned node = nodes.lookup(op->getResult(0));
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    unsigned source = nodes.lookup(operand);
    std::vector<double> costs;
    for (FormatAttr format : options[source])
      for (FormatAttr result : options[node])
        costs.push_back(getReadCost(op, number, format, result, libraries));
    // What costs the same whatever is chosen decides nothing.
    if (!llvm::all_equal(costs))
      graph.addEdge(source, node, std::make_shared<const std::vector<double>>(std::move(costs)));
  }
}

void FormatChooser::addChoices(Operation &op) {
  if (auto reshard = dyn_cast<ReshardOp>(op)) {
    nodes[reshard.getResult()] = nodes.lookup(reshard.getOperand());
    return;
  }
  auto partitionable = dyn_cast<SplitOpInterface>(op);
  bool isFixed = !partitionable || getPreferredFormat(partitionable, getRank(op.getResult(0)), libraries);
  addChoice(op.getResults(), isFixed);
  if (partitionable)
    addReads(partitionable);
}

void FormatChooser::run() {
  Block &block = function.getBody().front();
  for (BlockArgument argument : function.getArguments())
    addChoice(ValueRange(argument), /*isFixed=*/false);
  for (Operation &op : block.without_terminator())
    addChoices(op);
  for (Value output : block.getTerminator()->getOperands()) {
    unsigned node = nodes.lookup(output);
    std::vector<double> costs = graph.getCosts(node);
    for (auto [cost, format] : llvm::zip_equal(costs, options[node]))
      cost += getPortCost(output, format);
    graph.setCosts(node, std::move(costs));
  }

  std::vector<unsigned> chosen = graph.solve().options;
  auto getFormat = [&](Value value) {
    unsigned node = nodes.lookup(value);
    return options[node][chosen[node]];
  };
  // All at once: each change makes a new list of all of them.
  SmallVector<DictionaryAttr> attributes;
  for (BlockArgument argument : function.getArguments()) {
    NamedAttrList list(function_interface_impl::getArgAttrs(function, argument.getArgNumber()));
    list.set(plan::kFormatAttrName, getFormat(argument));
    attributes.push_back(list.getDictionary(function.getContext()));
  }
  function.setAllArgAttrs(attributes);
  for (Operation &op : block.without_terminator())
    plan::setFormats(&op, llvm::map_to_vector(op.getResults(), getFormat));
}
