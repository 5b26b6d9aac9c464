//===- FuseEpilogues.cpp - What is done to each element of a product ------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the pass plan-fuse-epilogues.
//
//===----------------------------------------------------------------------===//

#include "Mapping/BlockMapping.h"

#include "dovetail/CodeGen/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace dovetail {
#define GEN_PASS_DEF_FUSEEPILOGUES
#include "dovetail/CodeGen/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
struct FuseEpilogues : dovetail::impl::FuseEpiloguesBase<FuseEpilogues> {
  using FuseEpiloguesBase::FuseEpiloguesBase;

  void runOnOperation() override;

private:
  plan::KernelOp getKernel(plan::LaunchOp launch) {
    return SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(launch, launch.getKernelAttr());
  }
  /// Whether `launch` computes sums of products in tiles, or adds parts of such sums.
  bool computesProduct(plan::LaunchOp launch);
  /// The number of the value of `first` that `second`, the next step, reads, if it may join it.
  std::optional<unsigned> findLink(plan::LaunchOp first, plan::LaunchOp second);
  /// The kernel of `first`, and then `second`, the argument `link` of which is the result of the first one.
  plan::KernelOp getFused(plan::KernelOp first, plan::KernelOp second, unsigned link);
  plan::LaunchOp fuse(plan::LaunchOp first, plan::LaunchOp second, unsigned link);

  DeviceDescription device;
  DenseMap<Operation *, bool> products;
  std::map<std::tuple<Operation *, Operation *, unsigned>, plan::KernelOp> fused;
};
} // namespace

static plan::BufferOp getBuffer(Value ref) {
  auto view = ref.getDefiningOp<plan::ViewOp>();
  return view ? view.getBufferOp() : plan::BufferOp();
}

bool FuseEpilogues::computesProduct(plan::LaunchOp launch) {
  plan::KernelOp kernel = getKernel(launch);
  auto [known, isNew] = products.try_emplace(kernel, false);
  if (isNew) {
    OpBuilder builder(kernel);
    KernelAnalysis analysis(kernel);
    known->second = chooseMapping({kernel, builder, analysis, device})->takesEpilogues();
  }
  if (known->second)
    return true;
  // Parts of products come from one kernel before.
  auto before = dyn_cast_if_present<plan::LaunchOp>(launch->getPrevNode());
  if (!before || launch.getReads().size() != 1 || launch.getReads().front() != before.getWrites().front())
    return false;
  auto parts = getKernel(before).getYield().getValues().front().getDefiningOp<plan::PartsOp>();
  return parts && parts.getReduction().getDefiningOp<DefinitionOpInterface>().getDefinition().isProduct;
}

/// Whether a kernel's elements are each made of the element of `argument` at the same place, and of cheap others.
static bool isElementwiseIn(plan::KernelOp kernel, BlockArgument argument) {
  DenseSet<Value> dependent = {argument};
  for (Operation &op : kernel.getBlock()->without_terminator()) {
    if (llvm::none_of(op.getOperands(), [&](Value operand) { return dependent.contains(operand); }))
      continue;
    auto element = cast<DefinitionOpInterface>(op);
    Definition definition = element.getDefinition();
    if (definition.loops.size() != definition.resultRank ||
        cast<RankedTensorType>(op.getResult(0).getType()).getShape() != kernel.getShape())
      return false;
    for (const Access &access : definition.reads) {
      if (!dependent.contains(op.getOperand(access.operand)))
        continue;
      for (auto [number, dim] : llvm::enumerate(access.dims)) {
        bool isSame = dim.index.asLoop() == static_cast<int>(number) ||
                      (kernel.getShape()[number] == 1 && dim.index.asConstant() == 0);
        if (!isSame || dim.divisor != 1 || dim.border != layout::Border::None)
          return false;
      }
    }
    dependent.insert(op.result_begin(), op.result_end());
  }
  return llvm::all_of(kernel.getYield().getValues(),
                      [&](Value value) { return value != argument && dependent.contains(value); });
}

std::optional<unsigned> FuseEpilogues::findLink(plan::LaunchOp first, plan::LaunchOp second) {
  // A kernel has few arguments, so that they find room in the parameters and registers.
  constexpr size_t mostArguments = 16;
  if (first.getWrites().size() != 1 || second.getWrites().size() != 1 || second.getChecks() ||
      first.getReads().size() + second.getReads().size() > mostArguments)
    return std::nullopt;
  Value value = first.getWrites().front();
  auto link = llvm::find(second.getReads(), value);
  plan::BufferOp buffer = getBuffer(value), target = getBuffer(second.getWrites().front());
  // Nobody else reads the value, or has the memory of what is read.
  if (link == second.getReads().end() || !buffer || !target || buffer == target || !buffer->hasOneUse() ||
      buffer.getKind() != plan::BufferKind::Arena || std::distance(value.use_begin(), value.use_end()) != 2 ||
      llvm::any_of(first.getReads(), [&](Value read) { return getBuffer(read) == target; }))
    return std::nullopt;
  unsigned number = link - second.getReads().begin();
  auto type = cast<plan::RefType>(value.getType()).getTensor();
  // Operands of the product stay until the target is written. A wider target would need more memory than was said.
  if (target.getTensorType().getElementTypeBitWidth() > type.getElementTypeBitWidth())
    return std::nullopt;
  ArrayRef<Attribute> loops = first.getLoops().getValue(), others = second.getLoops().getValue();
  plan::KernelOp kernel = getKernel(first), other = getKernel(second);
  if (isPartial(type) || loops.take_front(type.getRank()) != others || kernel.getInPlace() || other.getInPlace() ||
      kernel.getCounts() || other.getCounts() || !isCheap(other) || !other.getIndexChecks().empty() ||
      kernel.getResultLayout(0).getFormat() != other.getResultLayout(0).getFormat() ||
      !isElementwiseIn(other, other.getBlock()->getArgument(number)))
    return std::nullopt;
  return computesProduct(first) ? std::optional(number) : std::nullopt;
}

plan::KernelOp FuseEpilogues::getFused(plan::KernelOp first, plan::KernelOp second, unsigned link) {
  plan::KernelOp &kernel = fused[{first, second, link}];
  if (kernel)
    return kernel;
  OpBuilder builder(second);
  SmallVector<Attribute> layouts(first.getLayouts().begin(), first.getLayouts().end());
  for (auto [number, layout] : llvm::enumerate(second.getLayouts()))
    if (number != link)
      layouts.push_back(layout);
  SmallVector<int64_t> staticLoops(first.getStaticLoops());
  for (int64_t loop : second.getStaticLoops())
    if (!llvm::is_contained(staticLoops, loop))
      staticLoops.push_back(loop);
  llvm::sort(staticLoops);
  std::string name = (first.getSymName() + "_" + second.getSymName()).str();
  while (getOperation().lookupSymbol(name))
    name += "_";
  kernel = plan::KernelOp::create(builder, first.getLoc(), builder.getStringAttr(name), builder.getArrayAttr(layouts),
                                  second.getResultLayouts(), DenseI64ArrayAttr(), IntegerAttr(), plan::BlocksAttr(),
                                  IntegerAttr(), /*counts=*/nullptr);
  kernel.setStaticLoops(staticLoops);
  Block *body = builder.createBlock(&kernel.getBody());
  IRMapping mapping;
  auto addArguments = [&](plan::KernelOp from) {
    for (BlockArgument argument : from.getArguments())
      if (!mapping.contains(argument))
        mapping.map(argument, body->addArgument(argument.getType(), argument.getLoc()));
  };
  addArguments(first);
  for (Operation &op : first.getBlock()->without_terminator())
    builder.clone(op, mapping);
  mapping.map(second.getBlock()->getArgument(link), mapping.lookup(first.getYield().getValues().front()));
  addArguments(second);
  for (Operation &op : second.getBlock()->getOperations())
    builder.clone(op, mapping);
  return kernel;
}

plan::LaunchOp FuseEpilogues::fuse(plan::LaunchOp first, plan::LaunchOp second, unsigned link) {
  OpBuilder builder(second);
  plan::KernelOp kernel = getFused(getKernel(first), getKernel(second), link);
  SmallVector<Value> reads(first.getReads());
  for (auto [number, read] : llvm::enumerate(second.getReads()))
    if (number != link)
      reads.push_back(read);
  auto launch =
      plan::LaunchOp::create(builder, first.getLoc(), FlatSymbolRefAttr::get(kernel), reads, second.getWrites(),
                             first.getLoops(), first.getStepNameAttr(), first.getChecksAttr());
  Operation *view = first.getWrites().front().getDefiningOp(), *buffer = getBuffer(first.getWrites().front());
  for (Operation *op : {second.getOperation(), first.getOperation(), view, buffer})
    op->erase();
  return launch;
}

void FuseEpilogues::runOnOperation() {
  device = {warpThreads, blockThreads, accessBytes, sharedBytes, sharedBanks, busyBlocks};
  if (failed(verifyDevice(getOperation().getLoc(), device)))
    return signalPassFailure();
  SmallVector<plan::LaunchOp> launches;
  getOperation().walk([&](plan::LaunchOp launch) { launches.push_back(launch); });
  // A step that was fused is no longer there.
  DenseSet<Operation *> done;
  for (plan::LaunchOp first : launches) {
    if (done.contains(first))
      continue;
    auto second = dyn_cast_if_present<plan::LaunchOp>(first->getNextNode());
    if (!second)
      continue;
    if (std::optional<unsigned> link = findLink(first, second)) {
      done.insert(second);
      fuse(first, second, *link);
    }
  }
  DenseSet<StringAttr> used;
  getOperation().walk([&](plan::LaunchOp launch) { used.insert(launch.getKernelAttr().getAttr()); });
  for (auto &[key, kernel] : fused)
    for (Operation *op : {std::get<0>(key), std::get<1>(key)})
      products.try_emplace(op, false);
  for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<plan::KernelOp>()))
    if (products.contains(kernel) && !used.contains(kernel.getSymNameAttr()))
      kernel.erase();
}
