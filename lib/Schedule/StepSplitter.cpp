//===- StepSplitter.cpp - Parts of launches and library calls -------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements StepSplitter for kernels and for library calls.
//
//===----------------------------------------------------------------------===//

#include "StepSplitter.h"

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"

using namespace mlir;
using namespace dovetail;

namespace {

class LaunchSplitter : public StepSplitter {
public:
  LaunchSplitter(plan::LaunchOp launch, plan::KernelOp kernel, const layout::Mesh &mesh, FlatSymbolRefAttr meshName,
                 SmallVector<Value> own)
      : StepSplitter(launch, kernel.getShape().size(), mesh, meshName, std::move(own)), kernel(kernel) {}

protected:
  bool readsOwn(ArrayRef<DimShardingAttr> dims) const override;
  bool isScan(unsigned dim) const override { return dovetail::isScan(kernel, dim); }

private:
  mutable plan::KernelOp kernel;
};

class CallSplitter : public StepSplitter {
public:
  using StepSplitter::StepSplitter;

protected:
  bool readsOwn(ArrayRef<DimShardingAttr> dims) const override;

private:
  /// What iterations of `loops` need of a dimension of `extent`.
  DimShardingAttr getNeed(const layout::AccessDim &access, ArrayRef<DimShardingAttr> loops, int64_t extent) const;
};

} // namespace

std::unique_ptr<StepSplitter> dovetail::createLaunchSplitter(plan::LaunchOp launch, plan::KernelOp kernel,
                                                             const layout::Mesh &mesh, FlatSymbolRefAttr meshName,
                                                             SmallVector<Value> own) {
  return std::make_unique<LaunchSplitter>(launch, kernel, mesh, meshName, std::move(own));
}

std::unique_ptr<StepSplitter> dovetail::createCallSplitter(plan::StepOpInterface call, unsigned numDims,
                                                           const layout::Mesh &mesh, FlatSymbolRefAttr meshName,
                                                           SmallVector<Value> own) {
  return std::make_unique<CallSplitter>(call, numDims, mesh, meshName, std::move(own));
}

SmallVector<DimShardingAttr> dovetail::getResultLoops(plan::StepOpInterface step, unsigned numDims) {
  SmallVector<DimShardingAttr> dims = plan::getDims(step->getAttrOfType<ArrayAttr>("loops"));
  dims.truncate(numDims);
  return dims;
}

bool dovetail::isEmpty(DimShardingAttr dim) {
  return llvm::all_of(llvm::seq(dim.getNumPieces()), [&](unsigned i) { return dim.getPiece(i).empty(); });
}

bool dovetail::isScan(plan::KernelOp kernel, unsigned dim) {
  auto root = kernel.getYield().getValues().front().getDefiningOp<DefinitionOpInterface>();
  return root && root.getDefinition().loops[dim].kind == LoopKind::Scan;
}

void dovetail::addPart(plan::StepOpInterface step, StringRef what, ArrayRef<DimShardingAttr> dims,
                       SmallVectorImpl<plan::StepOpInterface> &parts) {
  if (llvm::any_of(dims, [](DimShardingAttr dim) { return dim.isSplit() && isEmpty(dim); }))
    return;
  OpBuilder builder(step);
  SmallVector<Attribute> loops(step->getAttrOfType<ArrayAttr>("loops").getValue());
  for (auto [loop, dim] : llvm::zip(loops, dims))
    loop = cast<plan::LoopAttr>(loop).withDim(dim);
  Operation *part = builder.clone(*step);
  part->setAttr("loops", builder.getArrayAttr(loops));
  if (auto name = step->getAttrOfType<StringAttr>("step_name"))
    part->setAttr("step_name", builder.getStringAttr(name.getValue() + " (" + what + ")"));
  parts.push_back(cast<plan::StepOpInterface>(part));
}

void dovetail::addBoundaries(plan::StepOpInterface step, StringRef what, ArrayRef<SplitDim> splits,
                             ArrayRef<DimShardingAttr> dims, ArrayRef<DimShardingAttr> interior,
                             SmallVectorImpl<plan::StepOpInterface> &parts) {
  SmallVector<DimShardingAttr> windows(dims);
  for (const SplitDim &split : splits) {
    for (ArrayRef<layout::Interval> side : {ArrayRef(split.low), ArrayRef(split.high)}) {
      windows[split.dim] = DimShardingAttr::getWindows(dims[split.dim].getAxes(), side);
      addPart(step, what, windows, parts);
    }
    windows[split.dim] = interior[split.dim];
  }
}

StepSplitter::StepSplitter(plan::StepOpInterface step, unsigned numDims, const layout::Mesh &mesh,
                           FlatSymbolRefAttr meshName, SmallVector<Value> own)
    : step(step), mesh(mesh), meshName(meshName), own(std::move(own)), dims(getResultLoops(step, numDims)) {}

bool LaunchSplitter::readsOwn(ArrayRef<DimShardingAttr> dims) const {
  MLIRContext *context = meshName.getContext();
  // What is needed of each value of the kernel, from its results backward: at least that.
  DenseMap<Value, ShardingAttr> needs;
  auto need = [&](Value value, ShardingAttr sharding) {
    ShardingAttr &known = needs[value];
    known = known ? getHull(known, sharding) : sharding;
    if (!known)
      known = ShardingAttr::getReplicated(meshName, cast<RankedTensorType>(value.getType()).getRank());
  };
  for (Value result : kernel.getYield().getValues())
    need(result, ShardingAttr::get(context, meshName, dims, {}, ReduceKind::Sum));
  for (Operation &op : llvm::reverse(kernel.getBlock()->without_terminator())) {
    auto definition = dyn_cast<DefinitionOpInterface>(op);
    if (!definition)
      continue;
    ShardingAttr needed;
    for (Value result : op.getResults())
      if (ShardingAttr ofResult = needs.lookup(result))
        needed = needed ? getHull(needed, ofResult) : ofResult;
    if (!needed)
      continue;
    OpRelation relation = definition.getRelation();
    // Reductions go over all of their terms.
    SmallVector<DimShardingAttr> loops(needed.getDims());
    loops.resize(relation.loops.size(), DimShardingAttr::getUnsplit(context));
    for (auto [number, operand] : llvm::enumerate(op.getOperands()))
      need(operand, getNeededSharding(relation, number, cast<RankedTensorType>(operand.getType()), loops, meshName));
  }
  for (auto [argument, source] : llvm::zip_equal(kernel.getArguments(), own)) {
    ShardingAttr needed = needs.lookup(argument);
    auto type = cast<RankedTensorType>(argument.getType());
    if (source && needed && !covers(getSharding(cast<plan::RefType>(source.getType()).getTensor()), needed, type, mesh))
      return false;
  }
  return true;
}

DimShardingAttr CallSplitter::getNeed(const layout::AccessDim &access, ArrayRef<DimShardingAttr> loops,
                                      int64_t extent) const {
  auto unsplit = DimShardingAttr::getUnsplit(meshName.getContext());
  std::vector<layout::Interval> ranges;
  std::optional<unsigned> split;
  for (auto [number, loop] : llvm::enumerate(getLoops().getAsRange<plan::LoopAttr>())) {
    ranges.push_back({0, loop.getExtent()});
    if (!loops[number].isSplit() || !access.index.dependsOn(static_cast<int>(number)))
      continue;
    if (split)
      return unsplit;
    split = number;
  }
  if (!split)
    return unsplit;
  SmallVector<layout::Interval> windows;
  for (layout::Interval piece : loops[*split].getIntervals()) {
    ranges[*split] = piece;
    layout::Interval need = piece.empty() ? piece : access.need(ranges).intersect({0, extent});
    windows.push_back(need.empty() ? layout::Interval{0, 0} : need);
  }
  return DimShardingAttr::getWindows(loops[*split].getAxes(), windows);
}

bool CallSplitter::readsOwn(ArrayRef<DimShardingAttr> dims) const {
  // Sums and taps go on as far as they do.
  SmallVector<DimShardingAttr> loops(dims);
  for (Attribute loop : getLoops().getValue().drop_front(dims.size()))
    loops.push_back(cast<plan::LoopAttr>(loop).getDim());
  auto reads = step->getAttrOfType<ArrayAttr>("reads");
  for (auto [number, source] : llvm::enumerate(own)) {
    if (!source)
      continue;
    const plan::AccessDims &access = cast<plan::AccessAttr>(reads[number]).getDims();
    RankedTensorType type = cast<plan::RefType>(source.getType()).getTensor();
    SmallVector<DimShardingAttr> needs;
    for (auto [dim, extent] : llvm::zip_equal(access.get(), type.getShape()))
      needs.push_back(getNeed(dim, loops, extent));
    auto needed = ShardingAttr::get(meshName.getContext(), meshName, needs, {}, ReduceKind::Sum);
    if (!covers(getSharding(type), needed, type, mesh))
      return false;
  }
  return true;
}

SplitDim StepSplitter::findInterior(unsigned dim) const {
  DimShardingAttr split = dims[dim];
  SmallVector<layout::Interval> nothing(split.getNumPieces());
  // Without iterations the other dimensions need nothing.
  SmallVector<DimShardingAttr> windows;
  for (DimShardingAttr other : dims) {
    SmallVector<layout::Interval> empty(other.getNumPieces());
    windows.push_back(other.isSplit() ? DimShardingAttr::getWindows(other.getAxes(), empty) : other);
  }
  auto areInterior = [&](ArrayRef<layout::Interval> pieces) {
    windows[dim] = DimShardingAttr::getWindows(split.getAxes(), pieces);
    return readsOwn(windows);
  };
  auto isInterior = [&](unsigned piece, layout::Interval interval) {
    SmallVector<layout::Interval> pieces(nothing);
    pieces[piece] = interval;
    return areInterior(pieces);
  };
  // Halos are narrow: what is not found near an end of a piece is not worth a launch.
  constexpr int64_t mostHalo = 256;
  auto find = [&](unsigned piece) -> layout::Interval {
    layout::Interval all = split.getPiece(piece), interior = all;
    auto isFar = [&] { return interior.lo - all.lo > mostHalo || all.hi - interior.hi > mostHalo; };
    if (!isInterior(piece, all)) {
      while (!interior.empty() && !isFar() && !isInterior(piece, {interior.lo, interior.lo + 1}))
        ++interior.lo;
      while (!interior.empty() && !isFar() && !isInterior(piece, {interior.hi - 1, interior.hi}))
        --interior.hi;
    }
    return interior.empty() || isFar() || !isInterior(piece, interior) ? layout::Interval{all.lo, all.lo} : interior;
  };
  unsigned count = split.getNumPieces();
  SmallVector<layout::Interval> interior;
  // Of many pieces most have the halos that their neighbours have; else each is looked at.
  constexpr unsigned fewPieces = 16;
  if (count > fewPieces) {
    layout::Interval all = split.getPiece(count / 2), middle = find(count / 2);
    interior.push_back(find(0));
    for (unsigned piece = 1; piece + 1 < count; ++piece) {
      layout::Interval own = split.getPiece(piece);
      layout::Interval inner = {own.lo + middle.lo - all.lo, own.hi + middle.hi - all.hi};
      interior.push_back(inner.empty() ? layout::Interval{own.lo, own.lo} : inner);
    }
    interior.push_back(find(count - 1));
    if (middle.empty() || !areInterior(interior))
      interior.clear();
  }
  for (unsigned piece = interior.size(); piece < count; ++piece)
    interior.push_back(find(piece));
  SplitDim result{dim, {}, std::move(interior), {}};
  for (auto [piece, inner] : llvm::enumerate(result.interior)) {
    result.low.push_back({split.getPiece(piece).lo, inner.lo});
    result.high.push_back({inner.hi, split.getPiece(piece).hi});
  }
  return result;
}

SmallVector<plan::StepOpInterface> StepSplitter::split() {
  SmallVector<SplitDim> splits;
  SmallVector<DimShardingAttr> interior(dims);
  for (auto [dim, split] : llvm::enumerate(dims)) {
    if (!split.isSplit() || isScan(dim))
      continue;
    SplitDim found = findInterior(dim);
    interior[dim] = DimShardingAttr::getWindows(split.getAxes(), found.interior);
    if (isEmpty(interior[dim]))
      return {};
    if (llvm::any_of(found.low, [](layout::Interval i) { return !i.empty(); }) ||
        llvm::any_of(found.high, [](layout::Interval i) { return !i.empty(); }))
      splits.push_back(std::move(found));
    else
      interior[dim] = split;
  }
  if (splits.empty() || !readsOwn(interior))
    return {};

  SmallVector<plan::StepOpInterface> parts;
  addPart(step, "interior", interior, parts);
  if (parts.empty())
    return {};
  for (auto [operand, source] : llvm::zip(parts.front()->getOpOperands(), own))
    if (source)
      operand.set(source);
  addBoundaries(step, "boundary", splits, dims, interior, parts);
  return parts;
}
