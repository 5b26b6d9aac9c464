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
  /// Whether a constant may have the format `wish`: nobody but kernels that wish so reads it.
  bool mayHave(plan::BufferOp buffer, plan::FormatAttr wish);

  llvm::MapVector<Argument, plan::FormatAttr> wishes;
};
} // namespace

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

bool PlaceWeights::mayHave(plan::BufferOp buffer, plan::FormatAttr wish) {
  return buffer && buffer.getKind() == plan::BufferKind::Constant &&
         buffer.getFormat() == plan::FormatAttr::getRowMajor(buffer.getContext(), buffer.getTensorType().getRank()) &&
         llvm::all_of(buffer->getUsers(), [&](Operation *user) {
           return isa<plan::ViewOp>(user) && llvm::all_of(user->getUses(), [&](OpOperand &use) {
                    auto launch = dyn_cast<plan::LaunchOp>(use.getOwner());
                    return launch && use.getOperandNumber() < launch.getReads().size() &&
                           wishes.lookup({getKernel(launch), use.getOperandNumber()}) == wish;
                  });
         });
}

void PlaceWeights::runOnOperation() {
  for (auto kernel : getOperation().getOps<plan::KernelOp>())
    collectWishes(kernel);
  // The buffers of each argument. A kernel is generated for one format.
  llvm::MapVector<Argument, SetVector<plan::BufferOp>> buffers;
  getOperation().walk([&](plan::LaunchOp launch) {
    plan::KernelOp kernel = getKernel(launch);
    for (auto [number, read] : llvm::enumerate(launch.getReads())) {
      auto view = read.getDefiningOp<plan::ViewOp>();
      if (wishes.contains({kernel, number}))
        buffers[{kernel, number}].insert(view ? view.getBufferOp() : plan::BufferOp());
    }
  });
  for (bool changes = true; changes;) {
    changes = false;
    for (auto &[argument, each] : buffers)
      if (plan::FormatAttr wish = wishes.lookup(argument);
          wish && !llvm::all_of(each, [&](plan::BufferOp buffer) { return mayHave(buffer, wish); })) {
        wishes[argument] = {};
        changes = true;
      }
  }
  for (auto &[argument, each] : buffers) {
    plan::FormatAttr wish = wishes.lookup(argument);
    if (!wish)
      continue;
    auto [kernel, number] = argument;
    SmallVector<Attribute> layouts(kernel.getLayouts().begin(), kernel.getLayouts().end());
    layouts[number] = plan::LayoutAttr::get(&getContext(), wish, kernel.getLayout(number).getExtents());
    kernel.setLayoutsAttr(ArrayAttr::get(&getContext(), layouts));
    for (plan::BufferOp buffer : each)
      buffer.setFormatAttr(wish);
  }
}
