//===- PropagateShardings.cpp - Carry shardings through the graph -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gives every value a sharding that follows from the requested ones.
//
//===----------------------------------------------------------------------===//

#include "ShardingRequests.h"

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Layout/Cuts.h"
#include "dovetail/Layout/ExchangeKind.h"
#include "dovetail/Sharding/Passes.h"
#include "dovetail/Sharding/ShardingUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

namespace dovetail {
#define GEN_PASS_DEF_PROPAGATESHARDINGS
#include "dovetail/Sharding/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

/// A way to split one loop.
struct Candidate {
  unsigned loop;
  DimShardingAttr sharding;

  bool operator==(const Candidate &other) const { return loop == other.loop && sharding == other.sharding; }
};

/// Propagation through one function.
class Propagator {
public:
  Propagator(func::FuncOp function, MeshOp meshOp)
      : function(function), meshOp(meshOp), mesh(meshOp.getMesh()), meshName(FlatSymbolRefAttr::get(meshOp)),
        unsplit(DimShardingAttr::getUnsplit(function.getContext())) {}

  LogicalResult run();

private:
  LogicalResult readRequests();
  /// What is asked for `value`: `request`, which may be null, or the sharding in its type.
  FailureOr<ArrayAttr> getStated(Value value, ArrayAttr request, const Twine &name);
  /// Changes the loops of `op` so that its result is split as requested, as far as the operation allows.
  void applyRequest(DefinitionOpInterface op, const OpRelation &relation, LoopShardings &loops);
  /// Makes sure that the function's results have the shardings that were requested for them.
  void meetOutputRequests();
  /// Gives each result the sharding that follows from its operation's operands.
  LogicalResult forward();
  /// Shardings that users wish for values that depend on arguments without a request only.
  void backward();
  FailureOr<Operation *> assign(DefinitionOpInterface op);

  SmallVector<Candidate> getCandidates(DefinitionOpInterface op, const OpRelation &relation,
                                       ArrayRef<StringAttr> passedAxes);
  LoopShardings chooseLoops(DefinitionOpInterface op, const OpRelation &relation, ArrayRef<Candidate> candidates);
  int64_t getCost(DefinitionOpInterface op, const OpRelation &relation, ArrayRef<DimShardingAttr> loops);
  /// Bytes that operands take to where these loops need them.
  int64_t getOperandBytes(DefinitionOpInterface op, const OpRelation &relation, ArrayRef<DimShardingAttr> loops);
  /// Whether the result of `op`, which has as many partial values as `parts`, can be scattered over dimension `dim` for
  /// those who use it.
  bool canScatter(DefinitionOpInterface op, unsigned dim, int64_t parts);
  /// How `op` looks up where ranks have what is indexed, if to send its result to where it is requested, as for
  /// `requested` loops, moves less than to bring what is indexed there.
  std::optional<LoopShardings> lookUpAtOwners(DefinitionOpInterface op, const OpRelation &relation,
                                              ArrayRef<Candidate> candidates, ArrayRef<DimShardingAttr> requested);
  /// Axes over which a partial operand may stay partial through `op`.
  SmallVector<StringAttr> getPassedAxes(DefinitionOpInterface op);
  int64_t getNumParts(ArrayRef<StringAttr> axes);
  void setSharding(Value value, ShardingAttr sharding) {
    value.setType(withSharding(cast<RankedTensorType>(value.getType()), sharding));
  }
  ShardingAttr replicated(Value value) {
    return ShardingAttr::getReplicated(meshName, cast<RankedTensorType>(value.getType()).getRank());
  }

  func::FuncOp function;
  MeshOp meshOp;
  layout::Mesh mesh;
  FlatSymbolRefAttr meshName;
  DimShardingAttr unsplit;
  /// For arguments.
  DenseMap<Value, ShardingAttr> requests;
  /// For results of operations; cuts may be open.
  DenseMap<Value, SmallVector<DimShardingAttr>> resultRequests;
  /// How the loops of operations are to be split, whatever their operands.
  DenseMap<Operation *, LoopShardings> statedLoops;
  /// What sends results to where they are requested.
  DenseMap<Operation *, ReshardOp> sentResults;
  /// For operands of the terminator.
  SmallVector<std::pair<OpOperand *, SmallVector<DimShardingAttr>>> outputRequests;
};

struct PropagateShardings : dovetail::impl::PropagateShardingsBase<PropagateShardings> {
  void runOnOperation() override {
    FailureOr<MeshOp> mesh = getModuleMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    if (!*mesh)
      return;
    for (auto function : getDefinitions(getOperation()))
      if (failed(Propagator(function, *mesh).run()))
        return signalPassFailure();
  }
};

/// Assignments tried for one operation, at most 2 to this power.
constexpr size_t kMaxCandidates = 8;

} // namespace

LogicalResult Propagator::run() {
  if (failed(readRequests()) || failed(forward()))
    return failure();
  size_t before = requests.size();
  backward();
  if (requests.size() != before && failed(forward()))
    return failure();
  meetOutputRequests();
  Operation *terminator = function.getBody().front().getTerminator();
  function.setType(FunctionType::get(function.getContext(), function.getBody().front().getArgumentTypes(),
                                     terminator->getOperandTypes()));
  return success();
}

FailureOr<ArrayAttr> Propagator::getStated(Value value, ArrayAttr request, const Twine &name) {
  ShardingAttr sharding = getSharding(value);
  if (!sharding)
    return request;
  Operation *owner = value.getParentBlock()->getParentOp();
  auto error = [&] { return owner->emitError() << name << " has a sharding in its type, "; };
  if (request)
    return error() << "and another is requested: state one of them";
  if (sharding.getMesh() != meshName)
    return error() << "over " << sharding.getMesh() << ", but the mesh is " << meshName;
  if (sharding.isPartial())
    return error() << "which is partial: only how it is cut can be stated";
  return ArrayAttr::get(function.getContext(), llvm::to_vector_of<Attribute>(sharding.getDims()));
}

LogicalResult Propagator::readRequests() {
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    FailureOr<ArrayAttr> stated =
        getStated(argument, function.getArgAttrOfType<ArrayAttr>(index, kShardAttrName), "argument " + Twine(index));
    if (failed(stated))
      return failure();
    ArrayAttr attribute = *stated;
    if (!attribute)
      continue;
    auto dims = readRequest(attribute, argument, meshOp, "argument " + Twine(index));
    if (failed(dims))
      return failure();
    requests[argument] = ShardingAttr::get(
        function.getContext(), meshName,
        closeCuts(*dims, nullptr, mesh, cast<RankedTensorType>(argument.getType()).getShape()), {}, ReduceKind::Sum);
  }
  Block &block = function.getBody().front();
  for (Operation &op : block) {
    auto partitionable = dyn_cast<DefinitionOpInterface>(op);
    if (!partitionable)
      continue;
    std::string name = ("the result of '" + op.getName().getStringRef() + "'").str();
    FailureOr<ArrayAttr> stated = getStated(op.getResult(0), op.getAttrOfType<ArrayAttr>(kShardAttrName), name);
    if (failed(stated))
      return failure();
    ArrayAttr attribute = *stated;
    // Results are split alike.
    for (Value other : llvm::drop_begin(op.getResults()))
      if (getSharding(other) != getSharding(op.getResult(0)))
        return op.emitError() << name << " has a sharding in its type, and another result has another: state one";
    if (LoopShardingsAttr loops = partitionable.getLoopShardings()) {
      if (op.hasAttr(kShardAttrName))
        return op.emitError() << name << " has loop shardings, and a sharding is requested: state one of them";
      if (loops.getMesh() != meshName)
        return op.emitError() << "loops are split over " << loops.getMesh() << ", but the mesh is " << meshName;
      statedLoops[&op] = LoopShardings(loops.getLoops());
      continue;
    }
    if (!attribute)
      continue;
    auto dims = readRequest(attribute, op.getResult(0), meshOp, name);
    if (failed(dims))
      return failure();
    op.removeAttr(kShardAttrName);
    resultRequests[op.getResult(0)] = *dims;
  }
  for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
    unsigned index = operand.getOperandNumber();
    auto attribute = function.getResultAttrOfType<ArrayAttr>(index, kShardAttrName);
    if (!attribute)
      continue;
    auto dims = readRequest(attribute, operand.get(), meshOp, "result " + Twine(index));
    if (failed(dims))
      return failure();
    outputRequests.push_back({&operand, *dims});
    // The operation that computes it takes care of that, unless it must do otherwise. Results are split alike.
    if (auto op = operand.get().getDefiningOp<DefinitionOpInterface>(); op && !statedLoops.contains(op))
      resultRequests.try_emplace(op->getResult(0), *dims);
  }
  return success();
}

void Propagator::meetOutputRequests() {
  for (auto &[operand, dims] : outputRequests) {
    auto type = cast<RankedTensorType>(operand->get().getType());
    ShardingAttr held = getSharding(type);
    auto wanted = ShardingAttr::get(function.getContext(), meshName, closeCuts(dims, held, mesh, type.getShape()), {},
                                    ReduceKind::Sum);
    if (wanted == held || (!held && wanted.isReplicated()))
      continue;
    OpBuilder builder(operand->getOwner());
    operand->set(ReshardOp::create(builder, operand->get().getLoc(), withSharding(type, wanted), operand->get()));
  }
}

LogicalResult Propagator::forward() {
  for (BlockArgument argument : function.getArguments()) {
    auto request = requests.find(argument);
    setSharding(argument, request == requests.end() ? replicated(argument) : request->second);
  }
  Operation *op = &function.getBody().front().front();
  while (op) {
    auto partitionable = dyn_cast<DefinitionOpInterface>(op);
    if (!partitionable) {
      op = op->getNextNode();
      continue;
    }
    FailureOr<Operation *> next = assign(partitionable);
    if (failed(next))
      return failure();
    op = *next;
  }
  return success();
}

int64_t Propagator::getNumParts(ArrayRef<StringAttr> axes) {
  int64_t parts = 1;
  for (StringAttr axis : axes)
    parts *= mesh.axisSize(*mesh.axisIndex({axis.data(), axis.size()}));
  return parts;
}

SmallVector<StringAttr> Propagator::getPassedAxes(DefinitionOpInterface op) {
  SmallVector<StringAttr> axes;
  if (op.isReduction() && op->getNumOperands() > 1)
    return axes;
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  bool isPartial = false;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    ShardingAttr sharding = getSharding(operand);
    if (!sharding || !sharding.isPartial())
      continue;
    // Linear in one operand means with the others fixed: two partial ones would multiply.
    if (isPartial || sharding.getPartialKind() != ReduceKind::Sum || !op.isLinearIn(number) ||
        getByteSize(result) > getByteSize(cast<RankedTensorType>(operand.getType())))
      return {};
    isPartial = true;
    llvm::append_range(axes, sharding.getPartialAxes());
  }
  return axes;
}

/// The cuts of a loop for which ranks need only what they hold of an operand dimension in windows, as far as there are
/// such: they are in the middle of where neighbours hold enough for the same indices. Else those that follow the
/// owners.
static std::optional<std::vector<int64_t>> followWindows(const layout::DimMap &map, DimShardingAttr held,
                                                         int64_t operandExtent, int64_t loopExtent) {
  SmallVector<layout::Interval> within;
  for (unsigned i = 0; i < held.getNumPieces(); ++i) {
    layout::Interval served{0, 0};
    for (int64_t index = 0; index < loopExtent; ++index) {
      // An index that needs nothing, such as padding, says nothing about who should have it.
      layout::Interval need = map.needClipped({index, index + 1}, operandExtent);
      if (!need.empty() && held.getPiece(i).contains(need))
        served = served.hull({index, index + 1});
    }
    within.push_back(served);
  }
  if (auto cuts = getCutPositions(DimShardingAttr::getWindows(held.getAxes(), within), loopExtent))
    return std::vector<int64_t>(cuts->begin(), cuts->end());
  auto owners = getCutPositions(held, operandExtent);
  return owners ? map.follow(*owners, loopExtent) : std::nullopt;
}

SmallVector<Candidate> Propagator::getCandidates(DefinitionOpInterface op, const OpRelation &relation,
                                                 ArrayRef<StringAttr> passedAxes) {
  SmallVector<Candidate> candidates;
  auto add = [&](unsigned loop, DimShardingAttr sharding) {
    Candidate candidate{loop, sharding};
    if (llvm::any_of(sharding.getAxes(), [&](StringAttr axis) { return llvm::is_contained(passedAxes, axis); }))
      return;
    if (!llvm::is_contained(candidates, candidate))
      candidates.push_back(candidate);
  };
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    ShardingAttr sharding = getSharding(operand);
    if (!sharding)
      continue;
    auto type = cast<RankedTensorType>(operand.getType());
    for (auto [dim, entry] : llvm::enumerate(relation.operands[number])) {
      DimShardingAttr held = sharding.getDims()[dim];
      if (!held.isSplit() || entry.loop < 0)
        continue;
      const Loop &loop = relation.loops[entry.loop];
      // What all ranks need whole, as it is indexed or combined, may come to them, who then divide what they make of
      // it.
      auto addScattered = [&] {
        int64_t parts = getNumParts(held.getAxes());
        for (unsigned to = 0, rank = cast<RankedTensorType>(op->getResult(0).getType()).getRank(); to < rank; ++to)
          if (relation.loops[to].kind == LoopKind::Parallel && canScatter(op, to, parts))
            return add(
                to, DimShardingAttr::getCuts(held.getAxes(), layout::balancedCuts(relation.loops[to].extent, parts)));
      };
      if (loop.kind == LoopKind::Whole && entry.loop >= cast<RankedTensorType>(op->getResult(0).getType()).getRank())
        addScattered();
      // To split a reduction over one element would leave all ranks but one without work, and without the operand.
      if (loop.kind == LoopKind::Whole || (loop.kind != LoopKind::Parallel && loop.extent <= 1))
        continue;
      // What the parts of a scan come to is scanned once more: no more of them than there are elements.
      if (loop.kind == LoopKind::Scan && loop.extent <= held.getNumPieces())
        continue;
      int64_t extent = type.getDimSize(dim);
      auto cuts = held.coversOnce(extent) ? entry.map.follow(*getCutPositions(held, extent), loop.extent)
                                          : followWindows(entry.map, held, extent, loop.extent);
      if (cuts)
        add(entry.loop, DimShardingAttr::getCuts(held.getAxes(), *cuts));
      if (loop.isLookup())
        addScattered();
    }
    // A large partial operand that must be reduced here may be scattered over a dimension; a small one is reduced
    // whole.
    if (sharding.isPartial() && passedAxes.empty() && getByteSize(type) >= layout::minScatterBytes) {
      int64_t parts = getNumParts(sharding.getPartialAxes());
      for (auto [dim, entry] : llvm::enumerate(relation.operands[number])) {
        if (entry.loop < 0 || !entry.map.isIdentity() || sharding.getDims()[dim].isSplit())
          continue;
        const Loop &loop = relation.loops[entry.loop];
        if (loop.kind == LoopKind::Parallel && loop.extent >= parts)
          add(entry.loop,
              DimShardingAttr::getCuts(sharding.getPartialAxes(), layout::balancedCuts(loop.extent, parts)));
      }
    }
  }
  if (candidates.size() > kMaxCandidates)
    candidates.resize(kMaxCandidates);
  return candidates;
}

int64_t Propagator::getOperandBytes(DefinitionOpInterface op, const OpRelation &relation,
                                    ArrayRef<DimShardingAttr> loops) {
  int64_t bytes = 0;
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    if (ShardingAttr held = getSharding(operand)) {
      auto type = cast<RankedTensorType>(operand.getType());
      bytes += getExchangeBytes(type, held, getNeededSharding(relation, number, type, loops, meshName), mesh);
    }
  return bytes;
}

/// Of all results.
static int64_t getResultBytes(Operation *op) {
  int64_t bytes = 0;
  for (Type type : op->getResultTypes())
    bytes += getByteSize(cast<RankedTensorType>(type));
  return bytes;
}

bool Propagator::canScatter(DefinitionOpInterface op, unsigned dim, int64_t parts) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  return getResultBytes(op) >= layout::minScatterBytes && type.getDimSize(dim) >= parts &&
         llvm::any_of(op->getUsers(), llvm::IsaPred<DefinitionOpInterface>);
}

int64_t Propagator::getCost(DefinitionOpInterface op, const OpRelation &relation, ArrayRef<DimShardingAttr> loops) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t cost = getOperandBytes(op, relation, loops);
  llvm::SmallSetVector<StringAttr, 4> operandAxes;
  for (auto [number, operand] : llvm::enumerate(op->getOperands()))
    if (ShardingAttr held = getSharding(operand))
      for (auto [dim, entry] : llvm::zip_equal(held.getDims(), relation.operands[number]))
        // To look up costs no more than to move what was found.
        if (entry.loop < 0 || !relation.loops[entry.loop].isLookup())
          operandAxes.insert(dim.getAxes().begin(), dim.getAxes().end());
  int64_t unused = 1;
  for (StringAttr axis : operandAxes)
    if (llvm::none_of(loops, [&](DimShardingAttr loop) { return llvm::is_contained(loop.getAxes(), axis); }))
      unused *= getNumParts(axis);
  // What is not split is computed, and held, by every rank.
  cost += (unused - 1) * getResultBytes(op);
  for (auto [loop, sharding] : llvm::zip_equal(relation.loops, loops)) {
    if (!sharding.isSplit())
      continue;
    int64_t parts = getNumParts(sharding.getAxes());
    if (loop.isLookup()) {
      // Whole for all ranks, or scattered.
      bool isScattered = llvm::any_of(llvm::seq<unsigned>(0, result.getRank()), [&](unsigned dim) {
        return !loops[dim].isSplit() && canScatter(op, dim, parts);
      });
      cost += (isScattered ? 1 : 2) * (parts - 1) * getResultBytes(op);
    } else if (loop.kind == LoopKind::Reduction)
      cost += 2 * (parts - 1) * getResultBytes(op);
    else if (loop.kind == LoopKind::Scan)
      cost += 2 * (parts - 1) * getResultBytes(op) / std::max<int64_t>(loop.extent, 1);
  }
  return cost;
}

LoopShardings Propagator::chooseLoops(DefinitionOpInterface op, const OpRelation &relation,
                                      ArrayRef<Candidate> candidates) {
  LoopShardings none(relation.loops.size(), unsplit);
  if (candidates.empty())
    return none;
  LoopShardings best;
  int64_t bestCost = 0;
  for (unsigned chosen = (1u << candidates.size()); chosen-- > 0;) {
    LoopShardings loops = none;
    llvm::SmallSetVector<StringAttr, 4> used;
    bool isValid = true;
    for (auto [index, candidate] : llvm::enumerate(candidates)) {
      if (!(chosen >> index & 1))
        continue;
      isValid &= !loops[candidate.loop].isSplit();
      for (StringAttr axis : candidate.sharding.getAxes())
        isValid &= used.insert(axis);
      loops[candidate.loop] = candidate.sharding;
    }
    // Partial values combine in one way only.
    std::optional<ReduceKind> kind;
    for (auto [loop, sharding] : llvm::zip_equal(relation.loops, loops)) {
      if (loop.kind != LoopKind::Reduction || !sharding.isSplit())
        continue;
      isValid &= !kind || *kind == loop.reduction;
      kind = loop.reduction;
    }
    if (!isValid)
      continue;
    if (candidates.size() == 1 && relation.loops[candidates[0].loop].kind == LoopKind::Parallel)
      return loops;
    int64_t cost = getCost(op, relation, loops);
    if (best.empty() || cost < bestCost) {
      best = loops;
      bestCost = cost;
    }
  }
  return best;
}

void Propagator::applyRequest(DefinitionOpInterface op, const OpRelation &relation, LoopShardings &loops) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  ShardingAttr chosen = getResultSharding(relation, type.getRank(), loops, meshName);
  auto dims = closeCuts(resultRequests.lookup(op->getResult(0)), chosen, mesh, type.getShape());
  llvm::SmallSetVector<StringAttr, 4> axes;
  for (auto [index, dim] : llvm::enumerate(dims)) {
    if (dim.isSplit() && relation.loops[index].kind == LoopKind::Whole) {
      op.emitRemark("computes dimension ") << index << " whole, which is to be split: it is cut afterwards";
      dim = unsplit;
    }
    axes.insert(dim.getAxes().begin(), dim.getAxes().end());
    loops[index] = dim;
  }
  // An axis splits one loop.
  for (DimShardingAttr &loop : MutableArrayRef(loops).drop_front(dims.size()))
    if (llvm::any_of(loop.getAxes(), [&](StringAttr axis) { return axes.contains(axis); }))
      loop = unsplit;
}

/// True if ranks cannot compute their pieces of a loop by themselves.
static bool mustDecompose(DefinitionOpInterface op, const Loop &loop, DimShardingAttr sharding) {
  if (!sharding.isSplit())
    return false;
  if (loop.kind == LoopKind::Reduction && !loop.reduction)
    return true;
  return loop.kind == LoopKind::Scan && llvm::any_of(llvm::seq(sharding.getNumPieces()), [&](unsigned i) {
           return !isBetweenRestarts(*op.getDefinition().scan, sharding.getPiece(i));
         });
}

std::optional<LoopShardings> Propagator::lookUpAtOwners(DefinitionOpInterface op, const OpRelation &relation,
                                                        ArrayRef<Candidate> candidates,
                                                        ArrayRef<DimShardingAttr> requested) {
  LoopShardings loops(requested);
  llvm::SmallSetVector<StringAttr, 4> axes;
  for (const Candidate &candidate : candidates) {
    bool isFree = llvm::none_of(candidate.sharding.getAxes(), [&](StringAttr axis) { return axes.contains(axis); });
    if (!relation.loops[candidate.loop].isLookup() || !isFree)
      continue;
    loops[candidate.loop] = candidate.sharding;
    axes.insert(candidate.sharding.getAxes().begin(), candidate.sharding.getAxes().end());
  }
  if (axes.empty())
    return std::nullopt;
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  for (DimShardingAttr &dim : MutableArrayRef(loops).take_front(type.getRank()))
    if (llvm::any_of(dim.getAxes(), [&](StringAttr axis) { return axes.contains(axis); }))
      dim = unsplit;
  int64_t bytes = getOperandBytes(op, relation, loops) +
                  getExchangeBytes(type, getResultSharding(relation, type.getRank(), loops, meshName),
                                   getResultSharding(relation, type.getRank(), requested, meshName), mesh);
  return bytes < getOperandBytes(op, relation, requested) ? std::optional(loops) : std::nullopt;
}

FailureOr<Operation *> Propagator::assign(DefinitionOpInterface op) {
  if (auto sent = sentResults.find(op); sent != sentResults.end()) {
    sent->second.getResult().replaceAllUsesWith(op->getResult(0));
    sent->second.erase();
    sentResults.erase(sent);
  }
  OpRelation relation = op.getRelation();
  if (auto stated = statedLoops.find(op); stated != statedLoops.end()) {
    assignLoopShardings(op, relation, stated->second, meshName);
    return op->getNextNode();
  }
  bool isRequested = resultRequests.contains(op->getResult(0));
  SmallVector<StringAttr> passedAxes;
  if (!isRequested)
    passedAxes = getPassedAxes(op);
  SmallVector<Candidate> candidates = getCandidates(op, relation, passedAxes);
  LoopShardings loops = chooseLoops(op, relation, candidates);
  if (isRequested) {
    applyRequest(op, relation, loops);
    if (std::optional<LoopShardings> atOwners = lookUpAtOwners(op, relation, candidates, loops)) {
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      ShardingAttr wanted = getResultSharding(relation, type.getRank(), loops, meshName).withoutPartial();
      assignLoopShardings(op, relation, *atOwners, meshName);
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      auto sent = ReshardOp::create(builder, op.getLoc(), withSharding(type, wanted), op->getResult(0));
      op->getResult(0).replaceAllUsesExcept(sent, sent);
      sentResults[op] = sent;
      return sent->getNextNode();
    }
  }

  // An operation that is split where only it can combine terms, or a scan where it does not begin anew, gives way to
  // simpler ones, which are looked at next.
  for (auto [index, loop] : llvm::enumerate(relation.loops)) {
    if (!mustDecompose(op, loop, loops[index]))
      continue;
    OpBuilder builder(op);
    Operation *before = op->getPrevNode();
    FailureOr<SmallVector<Value>> replacement = op.decompose(builder, loops);
    if (failed(replacement)) {
      loops[index] = unsplit;
      op.emitRemark("is computed whole: ranks cannot divide dimension ")
          << index << ", along which it reduces or accumulates";
      continue;
    }
    if (isRequested) {
      if (replacement->front().getDefiningOp<DefinitionOpInterface>())
        resultRequests.try_emplace(replacement->front(), resultRequests.lookup(op->getResult(0)));
      resultRequests.erase(op->getResult(0));
    }
    op->replaceAllUsesWith(*replacement);
    Operation *first = before ? before->getNextNode() : &op->getBlock()->front();
    op->erase();
    return first;
  }

  assignLoopShardings(op, relation, loops, meshName);
  // What is linear in a sum adds up, too: its own sum over some axes joins the one that passes through.
  if (!passedAxes.empty()) {
    ShardingAttr sharding = getSharding(op->getResult(0));
    llvm::append_range(passedAxes, sharding.getPartialAxes());
    setSharding(op->getResult(0),
                ShardingAttr::get(op.getContext(), meshName, sharding.getDims(), passedAxes, ReduceKind::Sum));
  }
  return op->getNextNode();
}

void Propagator::backward() {
  // Values that depend on nothing that the user decided.
  DenseSet<Value> undecided;
  for (BlockArgument argument : function.getArguments())
    if (!requests.contains(argument))
      undecided.insert(argument);
  if (undecided.empty())
    return;
  Block &block = function.getBody().front();
  for (Operation &op : block)
    if (isa<DefinitionOpInterface>(op) &&
        llvm::any_of(op.getOperands(), [&](Value v) { return undecided.contains(v); }) &&
        llvm::all_of(op.getOperands(), [&](Value v) { return undecided.contains(v) || v.getDefiningOp<ConstantOp>(); }))
      undecided.insert(op.result_begin(), op.result_end());

  DenseMap<Value, ShardingAttr> wishes;
  for (Operation &op : llvm::reverse(block)) {
    auto partitionable = dyn_cast<DefinitionOpInterface>(op);
    if (!partitionable)
      continue;
    ShardingAttr sharding = getSharding(op.getResult(0));
    if (undecided.contains(op.getResult(0)) && !resultRequests.contains(op.getResult(0)) && !statedLoops.contains(&op))
      sharding = wishes.lookup(op.getResult(0));
    if (!sharding)
      continue;
    OpRelation relation = partitionable.getRelation();
    LoopShardings loops(relation.loops.size(), unsplit);
    llvm::copy(sharding.getDims(), loops.begin());
    SmallVector<StringAttr> used;
    for (DimShardingAttr dim : sharding.getDims())
      used.append(dim.getAxes().begin(), dim.getAxes().end());
    // A reduction was split before users wished for this result: what they wish may take its axes.
    if (LoopShardingsAttr decided = partitionable.getLoopShardings())
      for (auto [index, loop] : llvm::enumerate(decided.getLoops()))
        if (index >= sharding.getDims().size() &&
            llvm::none_of(loop.getAxes(), [&](StringAttr axis) { return llvm::is_contained(used, axis); }))
          loops[index] = loop;
    for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
      if (!undecided.contains(operand) || wishes.contains(operand))
        continue;
      ArrayRef<int64_t> shape = cast<RankedTensorType>(operand.getType()).getShape();
      SmallVector<DimShardingAttr> dims(shape.size(), unsplit);
      SmallVector<int> taken;
      for (auto [dim, entry] : llvm::enumerate(relation.operands[number])) {
        if (entry.loop < 0 || !loops[entry.loop].isSplit())
          continue;
        auto positions = getCutPositions(loops[entry.loop], relation.loops[entry.loop].extent);
        auto cuts = positions ? entry.map.followBack(*positions, shape[dim]) : std::nullopt;
        // Two dimensions may follow one loop.
        if (!cuts || llvm::is_contained(taken, entry.loop))
          continue;
        dims[dim] = DimShardingAttr::getCuts(loops[entry.loop].getAxes(), *cuts);
        taken.push_back(entry.loop);
      }
      auto wish = ShardingAttr::get(op.getContext(), meshName, dims, {}, ReduceKind::Sum);
      if (wish.isSplit())
        wishes[operand] = wish;
    }
  }
  for (BlockArgument argument : function.getArguments())
    if (ShardingAttr wish = wishes.lookup(argument); wish && !requests.contains(argument))
      requests[argument] = wish;
}
