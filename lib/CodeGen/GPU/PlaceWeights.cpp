//===- PlaceWeights.cpp - Formats of constants that products read ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the pass plan-place-weights.
//
//===----------------------------------------------------------------------===//

#include "dovetail/CodeGen/Passes.h"
#include "dovetail/Dialect/Plan/IR/Plan.h"

#include "llvm/ADT/MapVector.h"

namespace dovetail {
#define GEN_PASS_DEF_PLACEWEIGHTS
#include "dovetail/CodeGen/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct PlaceWeights : dovetail::impl::PlaceWeightsBase<PlaceWeights> {
  void runOnOperation() override;

private:
  /// The number of an argument of a kernel.
  using Argument = std::pair<plan::KernelOp, unsigned>;

  plan::KernelOp getKernel(plan::LaunchOp launch) {
    return SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(launch, launch.getKernelAttr());
  }
  void collectWishes(plan::KernelOp kernel);
  /// Whether all that read and write a buffer agree that it gets its format in `targets`.
  bool agreesOn(plan::BufferOp buffer);
  /// Takes back what is not agreed on. Returns whether something was.
  bool takeBack();
  void apply();

  DenseMap<plan::KernelOp, SmallVector<plan::LaunchOp>> launches;
  llvm::MapVector<Argument, plan::FormatAttr> wishes;
  llvm::MapVector<plan::BufferOp, plan::FormatAttr> targets;
};
} // namespace

static plan::BufferOp getBuffer(Value ref) {
  auto view = ref.getDefiningOp<plan::ViewOp>();
  return view ? view.getBufferOp() : plan::BufferOp();
}

/// The order of dimensions in which a product reads operand number `number`: taps outermost, then terms, and then those
/// of the result. So neighbours belong to one tap. None if a dimension is of several kinds, or if there is one tap.
static std::optional<SmallVector<int64_t>> getOrder(const Definition &definition, unsigned number) {
  SmallVector<int64_t> taps, terms, others;
  int64_t numTaps = 1;
  for (auto [dim, access] : llvm::enumerate(definition.reads[number].dims)) {
    bool isTap = false, isTerm = false, isResult = false;
    for (auto [position, loop] : llvm::enumerate(definition.loops)) {
      if (!access.index.dependsOn(position))
        continue;
      isTap |= loop.kind == LoopKind::Tap;
      isTerm |= loop.kind != LoopKind::Tap && position >= definition.resultRank;
      isResult |= position < definition.resultRank;
      if (loop.kind == LoopKind::Tap)
        numTaps *= loop.extent;
    }
    if (isTap && (isTerm || isResult))
      return std::nullopt;
    (isTap ? taps : isTerm ? terms : others).push_back(dim);
  }
  if (numTaps == 1)
    return std::nullopt;
  llvm::append_range(taps, terms);
  llvm::append_range(taps, others);
  return taps;
}

void PlaceWeights::collectWishes(plan::KernelOp kernel) {
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    auto product = dyn_cast<DefinitionOpInterface>(op);
    if (!product || !product.getDefinition().isProduct)
      continue;
    Definition definition = product.getDefinition();
    for (unsigned number : {0, 1}) {
      auto argument = dyn_cast<BlockArgument>(op.getOperand(definition.reads[number].operand));
      std::optional<SmallVector<int64_t>> order = getOrder(definition, number);
      if (argument && argument.hasOneUse() && order)
        wishes[{kernel, argument.getArgNumber()}] = plan::FormatAttr::get(&getContext(), *order);
    }
  }
}

bool PlaceWeights::agreesOn(plan::BufferOp buffer) {
  plan::FormatAttr target = targets.lookup(buffer);
  auto agrees = [&](OpOperand &use) {
    auto launch = dyn_cast<plan::LaunchOp>(use.getOwner());
    if (!launch)
      return false;
    plan::KernelOp kernel = getKernel(launch);
    if (use.getOperandNumber() < launch.getReads().size())
      return wishes.lookup({kernel, use.getOperandNumber()}) == target;
    // Constants that the prologue computes. It may compute several by one kernel.
    return isa<plan::PrologueOp>(launch->getParentOp()) && launch.getWrites().size() == 1 &&
           llvm::all_of(launches[kernel], [&](plan::LaunchOp other) {
             return targets.lookup(getBuffer(other.getWrites().front())) == target;
           });
  };
  return llvm::all_of(buffer->getUsers(), [&](Operation *user) {
    return isa<plan::ViewOp>(user) && llvm::all_of(user->getUses(), agrees);
  });
}

bool PlaceWeights::takeBack() {
  bool changes = false;
  for (auto &[buffer, target] : targets)
    if (target && !agreesOn(buffer)) {
      target = {};
      changes = true;
    }
  // A kernel is generated for one format.
  for (auto &[argument, wish] : wishes)
    if (wish && !llvm::all_of(launches[argument.first], [&, number = argument.second](plan::LaunchOp launch) {
          return targets.lookup(getBuffer(launch.getReads()[number])) == wish;
        })) {
      wish = {};
      changes = true;
    }
  return changes;
}

void PlaceWeights::apply() {
  auto replace = [&](ArrayAttr layouts, unsigned number, plan::FormatAttr format) {
    SmallVector<Attribute> all(layouts.begin(), layouts.end());
    all[number] = plan::LayoutAttr::get(&getContext(), format, cast<plan::LayoutAttr>(all[number]).getExtents());
    return ArrayAttr::get(&getContext(), all);
  };
  for (auto [argument, wish] : wishes)
    if (auto [kernel, number] = argument; wish && !launches[kernel].empty())
      kernel.setLayoutsAttr(replace(kernel.getLayouts(), number, wish));
  for (auto [buffer, target] : targets) {
    if (!target)
      continue;
    buffer.setFormatAttr(target);
    for (Operation *view : buffer->getUsers())
      for (OpOperand &use : view->getUses())
        if (auto launch = cast<plan::LaunchOp>(use.getOwner()); use.getOperandNumber() >= launch.getReads().size())
          getKernel(launch).setResultLayoutsAttr(replace(getKernel(launch).getResultLayouts(), 0, target));
  }
}

void PlaceWeights::runOnOperation() {
  getOperation().walk([&](plan::LaunchOp launch) { launches[getKernel(launch)].push_back(launch); });
  for (auto kernel : getOperation().getOps<plan::KernelOp>())
    collectWishes(kernel);
  for (auto [argument, wish] : wishes)
    for (plan::LaunchOp launch : launches[argument.first])
      if (plan::BufferOp buffer = getBuffer(launch.getReads()[argument.second]);
          buffer && buffer.getKind() != plan::BufferKind::Arena &&
          buffer.getFormat() == plan::FormatAttr::getRowMajor(buffer.getContext(), buffer.getTensorType().getRank()))
        targets[buffer] = wish;
  while (takeBack())
    ;
  apply();
}
