//===- SplitLaunches.cpp - Compute while ranks exchange -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits launches that read a halo: what needs the rank's own part alone need not wait for the exchange.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "dovetail/Sharding/ShardingUtils.h"
#include "llvm/ADT/MapVector.h"

namespace dovetail {
#define GEN_PASS_DEF_SPLITLAUNCHES
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// The windows of a dimension: of each piece, where the interior is. Before it and behind it are the boundaries.
struct SplitDim {
  unsigned dim;
  SmallVector<layout::Interval> low, interior, high;
};

/// A launch or library call that reads halos: for each read, what ranks own of it where an exchange brings the rest,
/// else null.
class StepSplitter {
public:
  StepSplitter(plan::StepOpInterface step, unsigned numDims, const layout::Mesh &mesh, FlatSymbolRefAttr meshName,
               SmallVector<Value> own);
  virtual ~StepSplitter() = default;

  /// Replaces the step by several, if there is something to compute without the exchange.
  void run();

protected:
  /// True if iterations of the results' dimensions `dims` read nothing but what ranks own.
  virtual bool readsOwn(ArrayRef<DimShardingAttr> dims) const = 0;
  /// What accumulates along dimension `dim` begins anew where ranks do, and nowhere else.
  virtual bool isScan(unsigned /*dim*/) const { return false; }
  ArrayAttr getLoops() const { return step->getAttrOfType<ArrayAttr>("loops"); }

  plan::StepOpInterface step;
  const layout::Mesh &mesh;
  FlatSymbolRefAttr meshName;
  SmallVector<Value> own;
  /// How the results' dimensions are split.
  SmallVector<DimShardingAttr> dims;

private:
  /// The interior of dimension `dim`, where no other dimension reads anything.
  SplitDim findInterior(unsigned dim) const;
  void emit(StringRef what, ArrayRef<DimShardingAttr> dims, bool readsOwn);
};

class LaunchSplitter : public StepSplitter {
public:
  LaunchSplitter(plan::LaunchOp launch, plan::KernelOp kernel, const layout::Mesh &mesh, FlatSymbolRefAttr meshName,
                 SmallVector<Value> own)
      : StepSplitter(launch, kernel.getShape().size(), mesh, meshName, std::move(own)), kernel(kernel) {}

protected:
  bool readsOwn(ArrayRef<DimShardingAttr> dims) const override;
  bool isScan(unsigned dim) const override {
    auto root = kernel.getYield().getValues().front().getDefiningOp<DefinitionOpInterface>();
    return root && root.getDefinition().loops[dim].kind == LoopKind::Scan;
  }

private:
  mutable plan::KernelOp kernel;
};

class CallSplitter : public StepSplitter {
public:
  CallSplitter(plan::StepOpInterface call, unsigned numDims, const layout::Mesh &mesh, FlatSymbolRefAttr meshName,
               SmallVector<Value> own)
      : StepSplitter(call, numDims, mesh, meshName, std::move(own)) {}

protected:
  bool readsOwn(ArrayRef<DimShardingAttr> dims) const override;

private:
  /// What iterations of `loops` need of a dimension of `extent`.
  DimShardingAttr getNeed(const layout::AccessDim &access, ArrayRef<DimShardingAttr> loops, int64_t extent) const;
};

struct SplitLaunches : dovetail::impl::SplitLaunchesBase<SplitLaunches> {
  using SplitLaunchesBase::SplitLaunchesBase;

  void runOnOperation() override;
};

} // namespace

StepSplitter::StepSplitter(plan::StepOpInterface step, unsigned numDims, const layout::Mesh &mesh,
                           FlatSymbolRefAttr meshName, SmallVector<Value> own)
    : step(step), mesh(mesh), meshName(meshName), own(std::move(own)) {
  for (Attribute loop : getLoops().getValue().take_front(numDims))
    dims.push_back(cast<plan::LoopAttr>(loop).getDim());
}

static bool isEmpty(DimShardingAttr dim) {
  return llvm::all_of(llvm::seq(dim.getNumPieces()), [&](unsigned i) { return dim.getPiece(i).empty(); });
}

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
  auto isInterior = [&](unsigned piece, layout::Interval interval) {
    SmallVector<layout::Interval> pieces(nothing);
    pieces[piece] = interval;
    windows[dim] = DimShardingAttr::getWindows(split.getAxes(), pieces);
    return readsOwn(windows);
  };
  // Halos are narrow: what is not found near an end of a piece is not worth a launch.
  constexpr int64_t mostHalo = 256;
  SplitDim result{dim, {}, {}, {}};
  for (unsigned piece = 0; piece < split.getNumPieces(); ++piece) {
    layout::Interval all = split.getPiece(piece), interior = all;
    auto isFar = [&] { return interior.lo - all.lo > mostHalo || all.hi - interior.hi > mostHalo; };
    if (!isInterior(piece, all)) {
      while (!interior.empty() && !isFar() && !isInterior(piece, {interior.lo, interior.lo + 1}))
        ++interior.lo;
      while (!interior.empty() && !isFar() && !isInterior(piece, {interior.hi - 1, interior.hi}))
        --interior.hi;
    }
    if (interior.empty() || isFar() || !isInterior(piece, interior))
      interior = {all.lo, all.lo};
    result.low.push_back({all.lo, interior.lo});
    result.interior.push_back(interior);
    result.high.push_back({interior.hi, all.hi});
  }
  return result;
}

void StepSplitter::emit(StringRef what, ArrayRef<DimShardingAttr> dims, bool readsOwn) {
  if (llvm::any_of(dims, [](DimShardingAttr dim) { return dim.isSplit() && isEmpty(dim); }))
    return;
  OpBuilder builder(step);
  SmallVector<Attribute> loops(getLoops().getValue());
  for (auto [loop, dim] : llvm::zip(loops, dims))
    loop = plan::LoopAttr::get(builder.getContext(), cast<plan::LoopAttr>(loop).getExtent(), dim);
  Operation *part = builder.clone(*step);
  part->setAttr("loops", builder.getArrayAttr(loops));
  if (auto name = step->getAttrOfType<StringAttr>("step_name"))
    part->setAttr("step_name", builder.getStringAttr(name.getValue() + " (" + what + ")"));
  if (readsOwn)
    for (auto [operand, source] : llvm::zip(part->getOpOperands(), own))
      if (source)
        operand.set(source);
}

void StepSplitter::run() {
  SmallVector<SplitDim> splits;
  SmallVector<DimShardingAttr> interior(dims);
  for (auto [dim, split] : llvm::enumerate(dims)) {
    if (!split.isSplit() || isScan(dim))
      continue;
    SplitDim found = findInterior(dim);
    interior[dim] = DimShardingAttr::getWindows(split.getAxes(), found.interior);
    if (isEmpty(interior[dim]))
      return;
    if (llvm::any_of(found.low, [](layout::Interval i) { return !i.empty(); }) ||
        llvm::any_of(found.high, [](layout::Interval i) { return !i.empty(); }))
      splits.push_back(std::move(found));
    else
      interior[dim] = split;
  }
  if (splits.empty() || !readsOwn(interior))
    return;

  emit("interior", interior, /*readsOwn=*/true);
  // The boundaries of a dimension, within the interior of those before it.
  SmallVector<DimShardingAttr> windows(dims);
  for (const SplitDim &split : splits) {
    for (ArrayRef<layout::Interval> side : {ArrayRef(split.low), ArrayRef(split.high)}) {
      windows[split.dim] = DimShardingAttr::getWindows(dims[split.dim].getAxes(), side);
      emit("boundary", windows, /*readsOwn=*/false);
    }
    windows[split.dim] = interior[split.dim];
  }
  step.erase();
}

void SplitLaunches::runOnOperation() {
  SymbolTableCollection symbols;
  for (auto program : getOperation().getOps<plan::ProgramOp>()) {
    layout::Mesh mesh = symbols.lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr()).getMesh();
    // Values of which an exchange brought what ranks lack to where their own parts lie, and these. Nobody has written
    // to them since.
    llvm::MapVector<Value, Value> halos;
    for (Operation &op : llvm::make_early_inc_range(*program.getBlock())) {
      auto step = dyn_cast<plan::StepOpInterface>(op);
      if (!step)
        continue;
      // There nothing is under way.
      if (plan::isBoundary(step))
        halos.clear();
      for (Value written : step.getStepWrites())
        halos.remove_if(
            [&](const auto &entry) { return plan::getBufferOp(entry.first) == plan::getBufferOp(written); });
      if (auto exchange = dyn_cast<plan::ExchangeOp>(op)) {
        for (auto [move, source, target] : llvm::enumerate(exchange.getSources(), exchange.getTargets()))
          if (exchange.keepsSource(move) && getSharding(cast<plan::RefType>(source.getType()).getTensor()))
            halos[target] = source;
        continue;
      }
      // What a call reads with accesses comes first; its epilogue reads each element where it writes.
      auto accesses = op.getAttrOfType<ArrayAttr>("reads");
      size_t numReads = accesses ? accesses.size() : step.getStepReads().size();
      SmallVector<Value> own = llvm::map_to_vector(ArrayRef(step.getStepReads()).take_front(numReads),
                                                   [&](Value read) { return halos.lookup(read); });
      auto isOver = [&](Value written) {
        return llvm::any_of(step.getStepReads(),
                            [&](Value read) { return plan::getBufferOp(read) == plan::getBufferOp(written); });
      };
      if (llvm::all_of(own, [](Value source) { return source == nullptr; }) ||
          llvm::any_of(step.getStepWrites(), isOver))
        continue;
      if (accesses) {
        auto result = cast<plan::RefType>(step.getStepWrites()[0].getType()).getTensor();
        CallSplitter(step, result.getRank(), mesh, program.getMeshAttr(), std::move(own)).run();
        continue;
      }
      auto launch = dyn_cast<plan::LaunchOp>(op);
      if (!launch || launch.getChecks())
        continue;
      auto kernel = symbols.lookupNearestSymbolFrom<plan::KernelOp>(program, launch.getKernelAttr());
      if (!kernel.getInPlace())
        LaunchSplitter(launch, kernel, mesh, program.getMeshAttr(), std::move(own)).run();
    }
  }
}
