//===- SplitLaunches.cpp - Compute while ranks exchange -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Splits launches that read a halo: what needs the rank's own part alone need not wait for the exchange. What that
// saves is estimated with the same works of steps and traffic of exchanges as predictions are.
//
//===----------------------------------------------------------------------===//

#include "PassCluster.h"

#include "dovetail/Dialect/Plan/IR/PlanControl.h"
#include "dovetail/Planner/Passes.h"
#include "dovetail/Planner/PlanWork.h"
#include "dovetail/Planner/Simulation.h"
#include "dovetail/Sharding/ShardingUtils.h"
#include "llvm/ADT/MapVector.h"

namespace dovetail {
#define GEN_PASS_DEF_SPLITLAUNCHES
#include "dovetail/Planner/Passes.h.inc"
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

  /// Adds the parts of the step in front of it, the interior first, if there is something to compute without the
  /// exchange; else none. Either they or the step are to go.
  SmallVector<plan::StepOpInterface> split();

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

  SmallVector<plan::StepOpInterface> parts;
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

/// Goes through a program and splits what is worth it.
class ProgramSplitter {
public:
  /// `cluster`: null if all is split that can be.
  ProgramSplitter(plan::ProgramOp program, layout::Mesh mesh, const Cluster *cluster, TransportKind transport)
      : program(program), mesh(std::move(mesh)), cluster(cluster), transport(transport) {
    if (cluster)
      works.emplace(program, this->mesh, *cluster, transport);
  }

  LogicalResult run();

private:
  /// A value of which an exchange brings what ranks lack to where their own parts lie.
  struct Halo {
    Value own;
    plan::ExchangeOp exchange;
  };

  /// Reads, if any, what an exchange brings; null for other reads.
  std::unique_ptr<StepSplitter> createSplitter(plan::StepOpInterface step);
  /// Seconds that exchanges of what `step` reads are still under way, of each rank; empty if none is.
  std::vector<double> getRemaining(plan::StepOpInterface step) const;
  /// False where nothing can be gained, whatever the parts are.
  FailureOr<bool> mayGain(plan::StepOpInterface step, ArrayRef<double> remaining);
  /// Whether the slowest rank is done earlier with `parts`, by more than a step's beginning, where exchanges take so
  /// long still.
  FailureOr<bool> isFaster(plan::StepOpInterface step, ArrayRef<plan::StepOpInterface> parts,
                           ArrayRef<double> remaining);
  LogicalResult begin(plan::ExchangeOp exchange);
  /// Exchanges that are under way have gone on meanwhile, or are over where `step` reads what they bring.
  LogicalResult pass(plan::StepOpInterface step);
  double getSeconds(const PlanStep &step, int rank) const {
    return cluster->getDevice(rank).getSeconds(step.getWork(rank));
  }

  plan::ProgramOp program;
  layout::Mesh mesh;
  const Cluster *cluster;
  TransportKind transport;
  /// None without a cluster.
  std::optional<StepWorks> works;
  SymbolTableCollection symbols;
  llvm::MapVector<Value, Halo> halos;
  /// Of exchanges that nobody has waited for, if there is a cluster: how long they go on, on each rank.
  llvm::MapVector<plan::ExchangeOp, std::vector<double>> underWay;
};

struct SplitLaunches : dovetail::impl::SplitLaunchesBase<SplitLaunches> {
  using SplitLaunchesBase::SplitLaunchesBase;
  SplitLaunches(SplitLaunchesOptions options, std::shared_ptr<const Cluster> found)
      : SplitLaunchesBase(std::move(options)), found(std::move(found)) {}

  void runOnOperation() override;

  LogicalResult initialize(MLIRContext *context) override { return findCluster(found, cluster, context); }

  std::shared_ptr<const Cluster> found;
};

} // namespace

std::unique_ptr<Pass> dovetail::createSplitLaunches(SplitLaunchesOptions options,
                                                    std::shared_ptr<const Cluster> cluster) {
  return std::make_unique<SplitLaunches>(std::move(options), std::move(cluster));
}

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
  parts.push_back(cast<plan::StepOpInterface>(part));
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
  return std::move(parts);
}

std::unique_ptr<StepSplitter> ProgramSplitter::createSplitter(plan::StepOpInterface step) {
  // What a call reads with accesses comes first; its epilogue reads each element where it writes.
  auto accesses = step->getAttrOfType<ArrayAttr>("reads");
  size_t numReads = accesses ? accesses.size() : step.getStepReads().size();
  SmallVector<Value> own = llvm::map_to_vector(ArrayRef(step.getStepReads()).take_front(numReads),
                                               [&](Value read) { return halos.lookup(read).own; });
  auto isOver = [&](Value written) {
    return llvm::any_of(step.getStepReads(),
                        [&](Value read) { return plan::getBufferOp(read) == plan::getBufferOp(written); });
  };
  if (llvm::all_of(own, [](Value source) { return source == nullptr; }) || llvm::any_of(step.getStepWrites(), isOver))
    return nullptr;
  if (accesses) {
    auto result = cast<plan::RefType>(step.getStepWrites()[0].getType()).getTensor();
    return std::make_unique<CallSplitter>(step, result.getRank(), mesh, program.getMeshAttr(), std::move(own));
  }
  auto launch = dyn_cast<plan::LaunchOp>(*step);
  if (!launch || launch.getChecks())
    return nullptr;
  auto kernel = symbols.lookupNearestSymbolFrom<plan::KernelOp>(program, launch.getKernelAttr());
  if (kernel.getInPlace())
    return nullptr;
  return std::make_unique<LaunchSplitter>(launch, kernel, mesh, program.getMeshAttr(), std::move(own));
}

std::vector<double> ProgramSplitter::getRemaining(plan::StepOpInterface step) const {
  std::vector<double> remaining;
  for (Value read : step.getStepReads())
    if (auto found = underWay.find(halos.lookup(read).exchange); found != underWay.end()) {
      remaining.resize(mesh.numRanks());
      for (auto [most, seconds] : llvm::zip_equal(remaining, found->second))
        most = std::max(most, seconds);
    }
  return remaining;
}

FailureOr<bool> ProgramSplitter::mayGain(plan::StepOpInterface step, ArrayRef<double> remaining) {
  if (remaining.empty())
    return false;
  FailureOr<PlanStep> whole = works->get(step);
  if (failed(whole))
    return failure();
  // At best all of the shorter one is hidden, but for the beginning of a boundary.
  double most = 0;
  for (int rank = 0; rank < mesh.numRanks(); ++rank)
    most = std::max(most, std::min(remaining[rank], getSeconds(*whole, rank)));
  return most > 2 * cluster->getDevice(0).stepSeconds;
}

FailureOr<bool> ProgramSplitter::isFaster(plan::StepOpInterface step, ArrayRef<plan::StepOpInterface> parts,
                                          ArrayRef<double> remaining) {
  FailureOr<PlanStep> whole = works->get(step);
  if (failed(whole))
    return failure();
  std::vector<double> before, after;
  for (int rank = 0; rank < mesh.numRanks(); ++rank)
    before.push_back(remaining[rank] + getSeconds(*whole, rank));
  for (auto [number, part] : llvm::enumerate(parts)) {
    FailureOr<PlanStep> work = works->get(part);
    if (failed(work))
      return failure();
    for (int rank = 0; rank < mesh.numRanks(); ++rank) {
      double seconds = getSeconds(*work, rank);
      if (number == 0)
        after.push_back(std::max(remaining[rank], seconds));
      else
        after[rank] += seconds;
    }
  }
  // Predictions do not tell less than what it takes to begin a step.
  return *llvm::max_element(after) + cluster->getDevice(0).stepSeconds < *llvm::max_element(before);
}

LogicalResult ProgramSplitter::begin(plan::ExchangeOp exchange) {
  bool bringsHalos = false;
  for (auto [move, source, target] : llvm::enumerate(exchange.getSources(), exchange.getTargets()))
    if (exchange.keepsSource(move) && getSharding(cast<plan::RefType>(source.getType()).getTensor())) {
      halos[target] = {source, exchange};
      bringsHalos = true;
    }
  if (!works || !bringsHalos)
    return success();
  FailureOr<PlanStep> step = works->get(exchange);
  if (failed(step))
    return failure();
  std::vector<double> seconds;
  for (int rank = 0; rank < mesh.numRanks(); ++rank)
    seconds.push_back(getAsideSeconds(*step->traffic, *cluster, transport, rank));
  underWay[exchange] = std::move(seconds);
  return success();
}

LogicalResult ProgramSplitter::pass(plan::StepOpInterface step) {
  for (Value read : step.getStepReads())
    underWay.erase(halos.lookup(read).exchange);
  underWay.remove_if([](const auto &entry) { return *llvm::max_element(entry.second) == 0; });
  if (underWay.empty())
    return success();
  FailureOr<PlanStep> work = works->get(step);
  if (failed(work))
    return failure();
  if (work->kind == PlanStep::Kind::Compute)
    for (auto &[exchange, seconds] : underWay)
      for (int rank = 0; rank < mesh.numRanks(); ++rank)
        seconds[rank] = std::max(seconds[rank] - getSeconds(*work, rank), 0.0);
  return success();
}

LogicalResult ProgramSplitter::run() {
  for (Operation &op : llvm::make_early_inc_range(*program.getBlock())) {
    auto step = dyn_cast<plan::StepOpInterface>(op);
    if (!step)
      continue;
    // There nothing is under way.
    if (plan::isBoundary(step)) {
      halos.clear();
      underWay.clear();
    }
    // What is in `halos` nobody has written to since the exchange.
    for (Value written : step.getStepWrites())
      halos.remove_if([&](const auto &entry) { return plan::getBufferOp(entry.first) == plan::getBufferOp(written); });
    if (auto exchange = dyn_cast<plan::ExchangeOp>(op)) {
      if (failed(begin(exchange)))
        return failure();
      continue;
    }
    std::vector<double> remaining = getRemaining(step);
    FailureOr<bool> mayPay = works ? mayGain(step, remaining) : FailureOr<bool>(true);
    if (failed(mayPay))
      return failure();
    SmallVector<plan::StepOpInterface> parts;
    if (std::unique_ptr<StepSplitter> splitter = *mayPay ? createSplitter(step) : nullptr)
      parts = splitter->split();
    FailureOr<bool> isWorthIt = works && !parts.empty() ? isFaster(step, parts, remaining) : FailureOr<bool>(true);
    if (failed(isWorthIt) || failed(pass(step)))
      return failure();
    if (parts.empty())
      continue;
    if (*isWorthIt)
      step->erase();
    else
      llvm::for_each(parts, [](plan::StepOpInterface part) { part->erase(); });
  }
  return success();
}

void SplitLaunches::runOnOperation() {
  for (auto program : getOperation().getOps<plan::ProgramOp>()) {
    auto mesh = SymbolTable::lookupNearestSymbolFrom<MeshOp>(program, program.getMeshAttr());
    if (!mesh) {
      program.emitOpError("is over ") << program.getMeshAttr() << ", which is not a dovetail.mesh";
      return signalPassFailure();
    }
    if (failed(ProgramSplitter(program, mesh.getMesh(), always ? nullptr : found.get(), transport).run()))
      return signalPassFailure();
  }
}
