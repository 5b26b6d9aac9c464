//===- SplitReductions.cpp - Let several blocks share a reduction -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the pass plan-split-reductions.
//
//===----------------------------------------------------------------------===//

#include "Mapping/BlockMapping.h"

#include "dovetail/CodeGen/Passes.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

namespace dovetail {
#define GEN_PASS_DEF_SPLITREDUCTIONS
#include "dovetail/CodeGen/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {
/// How a kernel is to be split.
struct Split {
  SplitOpInterface reduction;     ///< Whose results are all that it yields.
  std::optional<ReduceKind> kind; ///< How parts combine; none: as the operation says.
  int64_t dim;                    ///< Of the result, that numbers parts.
  int64_t parts;

  /// Those of the results' parts.
  SmallVector<RankedTensorType> getTypes() const {
    return llvm::map_to_vector(reduction->getResultTypes(), [&](Type type) {
      return plan::PartsOp::getTypeOfParts(cast<RankedTensorType>(type), dim, parts);
    });
  }
};

struct SplitReductions : dovetail::impl::SplitReductionsBase<SplitReductions> {
  using SplitReductionsBase::SplitReductionsBase;

  void runOnOperation() override;
  std::optional<Split> choose(plan::KernelOp kernel);

  DeviceDescription device;
};
} // namespace

/// The dimension that may number parts: of extent 1 on every rank.
static std::optional<int64_t> findPartsDim(plan::KernelOp kernel) {
  for (auto [dim, extent] : llvm::enumerate(kernel.getShape()))
    if (extent == 1 && llvm::is_contained(kernel.getStaticLoops(), static_cast<int64_t>(dim)))
      return dim;
  return std::nullopt;
}

namespace {
/// For code that reads nothing.
struct NoElements : ElementSource {
  Value read(unsigned, ArrayRef<Value>) override { llvm_unreachable("nothing is read"); }
  std::pair<Value, Value> getLoopRange(unsigned) override { llvm_unreachable("no loop is gone through"); }
};
} // namespace

/// Whether the accumulators of `reduction` are the elements of its results, as the operation that combines parts takes
/// these. Floats may be rounded.
static bool hasPlainFinish(SplitOpInterface reduction) {
  if (!reduction.dividesTerms())
    return false;
  Block block;
  OpBuilder builder(reduction.getContext());
  builder.setInsertionPointToStart(&block);
  ElementBuilder elements(builder, reduction.getLoc());
  SmallVector<Value> accumulators;
  for (Value init : reduction.emitInit(elements))
    accumulators.push_back(block.addArgument(init.getType(), reduction.getLoc()));
  Definition definition = reduction.getDefinition();
  SmallVector<Value> index;
  for (unsigned dim = 0; dim < definition.resultRank; ++dim)
    index.push_back(block.addArgument(builder.getIndexType(), reduction.getLoc()));
  NoElements source;
  BodyBuilder body(elements, reduction, definition, index, source);
  SmallVector<Value> values = reduction.emitFinish(body, accumulators);
  return llvm::equal(values, accumulators, [](Value value, Value accumulator) {
    auto rounded = value.getDefiningOp<arith::TruncFOp>();
    return value == accumulator || (rounded && rounded.getIn() == accumulator);
  });
}

std::optional<Split> SplitReductions::choose(plan::KernelOp kernel) {
  auto reduction = dyn_cast_if_present<SplitOpInterface>(getOnlyResult(kernel));
  if (!reduction || !reduction.isReduction())
    return std::nullopt;
  OpRelation relation = reduction.getRelation();
  auto loops = ArrayRef(relation.loops).drop_front(kernel.getShape().size());
  bool isProduct = reduction.getDefinition().isProduct;
  int64_t terms = 1;
  for (const Loop &loop : loops) {
    // Terms of a group of channels that ranks do not divide are added like others.
    if (!isProduct && (loop.kind != LoopKind::Reduction || loop.reduction != loops.front().reduction))
      return std::nullopt;
    terms = llvm::SaturatingMultiply<uint64_t>(terms, loop.extent);
  }
  if (!isProduct && !loops.front().reduction && !hasPlainFinish(reduction))
    return std::nullopt;
  std::optional<int64_t> dim = findPartsDim(kernel);
  if (!dim || kernel.getLoopExtents().size() > KernelAnalysis::maxLoops)
    return std::nullopt;
  OpBuilder builder(kernel);
  KernelAnalysis analysis(kernel);
  int64_t parts = chooseMapping({kernel, builder, analysis, device})->countParts(terms);
  if (parts < 2)
    return std::nullopt;
  return Split{reduction, isProduct ? ReduceKind::Sum : loops.front().reduction, *dim, parts};
}

/// Replaces the kernel's body by the combination of its parts, and returns the kernel that computes those.
static plan::KernelOp splitKernel(plan::KernelOp kernel, Split &split, ArrayAttr layouts) {
  Location loc = kernel.getLoc();
  OpBuilder builder(kernel);
  auto combination = plan::KernelOp::create(builder, loc, kernel.getSymNameAttr(), layouts, kernel.getResultLayouts(),
                                            DenseI64ArrayAttr(), IntegerAttr(), plan::BlocksAttr(), IntegerAttr(),
                                            /*counts=*/nullptr);
  Block *body = builder.createBlock(&combination.getBody());
  SmallVector<Value> parts;
  for (Type type : split.getTypes())
    parts.push_back(body->addArgument(type, loc));
  SmallVector<Value> values;
  if (std::optional<ReduceKind> kind = split.kind)
    values = {ReduceOp::create(builder, loc, parts.front(), *kind, ArrayRef(split.dim))};
  else
    values = split.reduction.combineParts(builder, parts, split.dim);
  for (auto [value, result] : llvm::zip_equal(values, split.reduction->getResults()))
    if (Type type = getElementTypeOrSelf(result); getElementTypeOrSelf(value) != type)
      value = CastOp::create(builder, loc, value, type);
  plan::YieldOp::create(builder, loc, values);
  int64_t rank = kernel.getShape().size();
  SmallVector<int64_t> staticLoops;
  llvm::copy_if(kernel.getStaticLoops(), std::back_inserter(staticLoops), [&](int64_t loop) { return loop < rank; });
  staticLoops.push_back(rank);
  combination.setStaticLoops(staticLoops);

  plan::YieldOp yield = kernel.getYield();
  builder.setInsertionPoint(yield);
  for (auto [number, type] : llvm::enumerate(split.getTypes()))
    yield->setOperand(number, plan::PartsOp::create(builder, loc, type, split.reduction->getResult(number), split.dim));
  kernel.setResultLayoutsAttr(layouts);
  kernel.setSymName((kernel.getSymName() + "_parts").str());
  return kernel;
}

/// `type`, of parts of a result that `launch` writes, as the ranks hold it: those of the elements that they compute.
static RankedTensorType getBufferType(plan::LaunchOp launch, RankedTensorType type) {
  auto result = cast<plan::RefType>(launch.getWrites().front().getType()).getTensor();
  ShardingAttr sharding = getSharding(result);
  if (!sharding)
    return type;
  SmallVector<DimShardingAttr> dims;
  for (auto loop : launch.getLoops().getAsRange<plan::LoopAttr>())
    if (static_cast<int64_t>(dims.size()) < type.getRank())
      dims.push_back(loop.getDim());
  return withSharding(type, sharding.withDims(dims).withoutPartial());
}

/// Launches the kernel of parts, and then `launch`, which combines them.
static void splitLaunch(plan::LaunchOp launch, plan::KernelOp parts, const Split &split, plan::FormatAttr format) {
  Location loc = launch.getLoc();
  auto program = launch->getParentOfType<plan::ProgramOp>();
  OpBuilder builder(launch->getContext());
  // Buffers and views come before all steps.
  builder.setInsertionPoint(
      &*llvm::find_if_not(*program.getBlock(), [](Operation &op) { return isa<plan::BufferOp, plan::ViewOp>(op); }));
  SmallVector<Value> views;
  for (RankedTensorType parts : split.getTypes()) {
    RankedTensorType type = getBufferType(launch, parts);
    auto buffer = plan::BufferOp::create(builder, loc, plan::BufferKind::Arena, type, format);
    views.push_back(plan::ViewOp::create(builder, loc, plan::RefType::get(type), buffer.getBuffer(), StringAttr()));
  }

  builder.setInsertionPoint(launch);
  auto loops = llvm::to_vector(launch.getLoops());
  auto partsLoop = plan::LoopAttr::get(builder.getContext(), split.parts);
  SmallVector<Attribute> combined(loops.begin(), loops.begin() + split.getTypes().front().getRank());
  combined.push_back(partsLoop);
  loops[split.dim] = partsLoop;
  plan::LaunchOp::create(builder, loc, FlatSymbolRefAttr::get(parts), launch.getReads(), views,
                         builder.getArrayAttr(loops), launch.getStepNameAttr(), launch.getChecksAttr());
  launch.getReadsMutable().assign(views);
  launch.setLoopsAttr(builder.getArrayAttr(combined));
  launch.removeChecksAttr();
}

void SplitReductions::runOnOperation() {
  device = {warpThreads, blockThreads, accessBytes, sharedBytes, sharedBanks, busyBlocks};
  if (failed(verifyDevice(getOperation().getLoc(), device)))
    return signalPassFailure();
  DenseMap<StringAttr, SmallVector<plan::LaunchOp>> launches;
  getOperation().walk([&](plan::LaunchOp launch) { launches[launch.getKernelAttr().getAttr()].push_back(launch); });
  for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<plan::KernelOp>())) {
    std::optional<Split> split = choose(kernel);
    ArrayRef<plan::LaunchOp> users = launches[kernel.getSymNameAttr()];
    // Prologues run once, and their values have memory of their own for good.
    auto isInPrologue = [](plan::LaunchOp launch) { return isa<plan::PrologueOp>(launch->getParentOp()); };
    if (!split || users.empty() || llvm::any_of(users, isInPrologue))
      continue;
    // Parts of one number are neighbours as the elements are.
    SmallVector<int64_t> order(kernel.getResultLayout(0).getOrder());
    llvm::erase(order, split->dim);
    order.insert(order.begin(), split->dim);
    auto format = plan::FormatAttr::get(&getContext(), order);
    auto getLayouts = [&](plan::LaunchOp launch) {
      auto getLayout = [&](RankedTensorType type) -> Attribute {
        return plan::LayoutAttr::getFor(format, getBufferType(launch, type));
      };
      return ArrayAttr::get(&getContext(), llvm::map_to_vector(split->getTypes(), getLayout));
    };
    ArrayAttr layouts = getLayouts(users.front());
    if (!llvm::all_of(users, [&](plan::LaunchOp launch) { return getLayouts(launch) == layouts; }))
      continue;
    plan::KernelOp parts = splitKernel(kernel, *split, layouts);
    for (plan::LaunchOp launch : users)
      splitLaunch(launch, parts, *split, format);
  }
}
