//===- ChooseFormats.cpp - Choose memory formats -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Chooses how each value lies in memory.
//
//===----------------------------------------------------------------------===//

#include "LibraryPass.h"
#include "dovetail/Conversion/Passes.h"

namespace dovetail {
#define GEN_PASS_DEF_CHOOSEFORMATS
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;
using plan::FormatAttr;

static int64_t getRank(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

/// True if each dimension of the operand goes with the result's dimension of the same number, with a reduction or with
/// none.
static bool isAligned(const OpRelation &relation, unsigned number, int64_t resultRank) {
  ArrayRef<DimRelation> dims = relation.operands[number];
  if (static_cast<int64_t>(dims.size()) != resultRank)
    return false;
  for (auto [dim, entry] : llvm::enumerate(dims))
    if (entry.loop >= 0 && entry.loop < resultRank && entry.loop != static_cast<int>(dim))
      return false;
  return true;
}

namespace {

class FormatChooser {
public:
  FormatChooser(func::FuncOp function, const Libraries &libraries)
      : function(function), context(function.getContext()), libraries(libraries) {}

  /// Writes the choices into the function.
  void run();

private:
  FormatAttr getRowMajor(Value value) { return FormatAttr::getRowMajor(context, getRank(value)); }
  FormatAttr getWish(Value value) {
    FormatAttr wish = wishes.lookup(value);
    return wish ? wish : getRowMajor(value);
  }
  /// The format that `op` or the library that does it prefers for a tensor of `rank`; null for none.
  FormatAttr getPreferred(DefinitionOpInterface op, int64_t rank) {
    const Library *library = libraries.findCall(op);
    if (int64_t block = library ? library->getChannelBlock(op) : 0; block > 0 && rank >= 3)
      return FormatAttr::getChannelBlocks(context, rank, block);
    FormatPreference preference = library ? library->getFormatPreference(op) : op.getFormatPreference();
    if (preference == FormatPreference::ChannelsLast && rank >= 3)
      return FormatAttr::getChannelsLast(context, rank);
    if (preference == FormatPreference::RowMajor)
      return FormatAttr::getRowMajor(context, rank);
    return {};
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

struct ChooseFormats : LibraryPass<dovetail::impl::ChooseFormatsBase<ChooseFormats>> {
  using LibraryPass::LibraryPass;

  LogicalResult run(func::FuncOp function, const Libraries &callable) override {
    for (Operation &op : function.getBody().front().without_terminator())
      if (!isa<ConstantOp, ReshardOp, DefinitionOpInterface>(op))
        return op.emitOpError("is none of those that have memory formats");
    FormatChooser(function, callable).run();
    return success();
  }
};

} // namespace

void FormatChooser::collectWishes(Operation &op) {
  if (auto reshard = dyn_cast<ReshardOp>(op)) {
    if (FormatAttr wish = wishes.lookup(reshard.getResult()))
      wishes.try_emplace(reshard.getOperand(), wish);
    return;
  }
  auto partitionable = dyn_cast<DefinitionOpInterface>(op);
  if (!partitionable)
    return;
  int64_t rank = getRank(op.getResult(0));
  FormatAttr preferred = getPreferred(partitionable, rank);
  if (!preferred)
    preferred = wishes.lookup(op.getResult(0));
  if (!preferred)
    return;
  OpRelation relation = partitionable.getRelation();
  for (auto [number, operand] : llvm::enumerate(op.getOperands()))
    if (getRank(operand) == rank && isAligned(relation, number, rank))
      wishes.try_emplace(operand, preferred);
}

void FormatChooser::assign(Operation &op) {
  assignFirst(op);
  for (Value other : llvm::drop_begin(op.getResults())) {
    formats[other] = formats.lookup(op.getResult(0));
    if (decided.contains(op.getResult(0)))
      decided.insert(other);
  }
}

void FormatChooser::assignFirst(Operation &op) {
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
  auto partitionable = cast<DefinitionOpInterface>(op);
  int64_t rank = getRank(result);
  if (FormatAttr preferred = getPreferred(partitionable, rank)) {
    formats[result] = preferred;
    decided.insert(result);
    return;
  }
  OpRelation relation = partitionable.getRelation();
  Value leading;
  for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
    if (operand.getDefiningOp<ConstantOp>() || getRank(operand) != rank || !isAligned(relation, number, rank))
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

void FormatChooser::run() {
  Block &block = function.getBody().front();
  for (Operation &op : llvm::reverse(block))
    collectWishes(op);
  for (BlockArgument argument : function.getArguments()) {
    // What the user gives has no blocks.
    formats[argument] = getWish(argument).isBlocked() ? getRowMajor(argument) : getWish(argument);
    function.setArgAttr(argument.getArgNumber(), plan::kFormatAttrName, formats[argument]);
  }
  for (Operation &op : block.without_terminator()) {
    assign(op);
    plan::setFormats(&op, llvm::map_to_vector(op.getResults(), [&](Value value) { return formats.lookup(value); }));
  }
}
