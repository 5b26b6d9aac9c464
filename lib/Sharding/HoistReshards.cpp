//===- HoistReshards.cpp - Move what is smallest --------------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Moves a reshard from the result of an operation to its operands where fewer bytes are sent there.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Cost/ExchangeCosts.h"
#include "dovetail/Cost/OpCosts.h"
#include "dovetail/Cost/PassCluster.h"

#include "dovetail/Dialect/Dovetail/IR/MeshPass.h"
#include "dovetail/Sharding/Passes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace dovetail {
#define GEN_PASS_DEF_HOISTRESHARDS
#include "dovetail/Sharding/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

struct HoistReshards : MeshPass<dovetail::impl::HoistReshardsBase<HoistReshards>> {
  using MeshPass::MeshPass;
  HoistReshards(HoistReshardsOptions options, std::shared_ptr<const Cluster> found)
      : MeshPass(std::move(options)), found(std::move(found)) {}

  LogicalResult initialize(MLIRContext *context) override { return findCluster(found, cluster, context); }

  LogicalResult run(MeshOp) override {
    if (!found->isUniform() && objective != Objective::Bytes) {
      costs = std::make_shared<ExchangeCosts>(mesh, *found, engine);
      constants.clear();
      for (auto function : getGraphs(getOperation()))
        constants.insert_range(getConstantValues(function));
    }
    // Each step up leaves one reshard less at that place, so this ends.
    SmallVector<ReshardOp> worklist;
    getOperation().walk([&](ReshardOp reshard) { worklist.push_back(reshard); });
    while (!worklist.empty())
      hoist(worklist.pop_back_val(), worklist);
    return success();
  }

  /// A value that is brought from one sharding to another one.
  struct Move {
    Value value;
    ShardingAttr held, needed;
  };

  void hoist(ReshardOp reshard, SmallVectorImpl<ReshardOp> &worklist);
  /// Whether it takes the slowest rank longer to compute `loops` of `op` after `moves` than what it has to now.
  bool takesLonger(SplitOpInterface op, const OpRelation &relation, ArrayRef<DimShardingAttr> loops,
                   ArrayRef<Move> moves, ArrayRef<Move> formerMoves);

  std::shared_ptr<const Cluster> found;
  /// Where devices differ.
  std::shared_ptr<ExchangeCosts> costs;
  DenseSet<Value> constants;
};

} // namespace

std::unique_ptr<Pass> dovetail::createHoistReshards(HoistReshardsOptions options,
                                                    std::shared_ptr<const Cluster> cluster) {
  return std::make_unique<HoistReshards>(std::move(options), std::move(cluster));
}

/// The value that ranks would have to be sent: `operand`, or what a reshard made it from.
static Value getSource(Value operand) {
  auto reshard = operand.getDefiningOp<ReshardOp>();
  if (!reshard)
    return operand;
  return isPartial(reshard.getOperand()) ? operand : reshard.getOperand();
}

/// Whether `value`, or what it is a part of, is likely to be in memory anyway. It is where it is given, folded, or read
/// more than once.
static bool isStored(Value value) {
  auto producer = value.getDefiningOp<SplitOpInterface>();
  if (!producer || !value.hasOneUse())
    return true;
  if (producer->getNumOperands() == 1 && producer.isCheapElement() && producer.isLinearIn(0u)) {
    auto type = cast<RankedTensorType>(value.getType()),
         from = cast<RankedTensorType>(producer->getOperand(0).getType());
    if (type.getNumElements() <= from.getNumElements() && type.getElementType() == from.getElementType())
      return isStored(producer->getOperand(0));
  }
  Definition definition = producer.getDefinition();
  return definition.isFold || definition.writes || definition.scan || !definition.lines.empty();
}

bool HoistReshards::takesLonger(SplitOpInterface op, const OpRelation &relation, ArrayRef<DimShardingAttr> loops,
                                ArrayRef<Move> moves, ArrayRef<Move> formerMoves) {
  std::optional<LoopShardings> formerLoops = readLoopShardings(op);
  if (!formerLoops)
    return false;
  OpCosts work(op, relation, constants);
  auto getSeconds = [&](ArrayRef<DimShardingAttr> some, ArrayRef<Move> exchanges) {
    double seconds = work.getSeconds(*found, mesh, some);
    for (const auto &[value, held, needed] : exchanges)
      // All ranks have a value without a sharding.
      if (auto cost = held ? costs->get(cast<RankedTensorType>(value.getType()), held, needed) : std::nullopt)
        seconds += cost->seconds;
    return seconds;
  };
  return getSeconds(loops, moves) > getSeconds(*formerLoops, formerMoves);
}

void HoistReshards::hoist(ReshardOp reshard, SmallVectorImpl<ReshardOp> &worklist) {
  auto op = reshard.getOperand().getDefiningOp<SplitOpInterface>();
  if (!op || op->getNumResults() != 1 || !reshard.getOperand().hasOneUse())
    return;
  // To compute it on more than one rank must cost less than its transfer, and give what its operands say.
  if (!op.isCheapElement() || !isPure(op))
    return;
  auto type = cast<RankedTensorType>(reshard.getOperand().getType());
  ShardingAttr held = getSharding(type), wanted = getSharding(reshard.getResult());
  if (!held || !wanted || held.isPartial() || wanted.isPartial())
    return;
  OpRelation relation = op.getRelation();
  LoopShardings loops(wanted.getDims().begin(), wanted.getDims().end());
  for (const Loop &loop : llvm::drop_begin(relation.loops, wanted.getDims().size())) {
    if (!loop.isLookup())
      return; // It reduces.
    loops.push_back(DimShardingAttr::getUnsplit(&getContext()));
  }
  for (auto [loop, sharding] : llvm::zip_equal(relation.loops, loops))
    if ((loop.kind != LoopKind::Parallel && !loop.isLookup()) || !sharding.covers(loop.extent))
      return;

  int64_t bytes = 0, own = getExchangeBytes(type, held, wanted, mesh), ofOperands = 0;
  bool isExchanged = false, areStored = true;
  SmallVector<std::pair<Value, ShardingAttr>> operands;
  SmallVector<Move> moves, formerMoves = {{reshard.getOperand(), held, wanted}};
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    Value source = getSource(operand);
    auto operandType = cast<RankedTensorType>(source.getType());
    if (isPartial(source))
      return;
    ShardingAttr needed = getNeededSharding(relation, number, operandType, loops, meshName);
    operands.push_back({source, needed});
    int64_t moved = getExchangeBytes(operandType, getSharding(source), needed, mesh);
    bytes += moved;
    if (moved > 0)
      moves.push_back({source, getSharding(source), needed});
    areStored &= moved == 0 || isStored(source);
    // Its exchange for this operation alone falls away.
    if (source != operand && operand.hasOneUse()) {
      ofOperands += getExchangeBytes(operandType, getSharding(source), getSharding(operand), mesh);
      isExchanged = true;
      formerMoves.push_back({source, getSharding(source), getSharding(operand)});
    }
  }
  // Where what is stored is exchanged anyway, one exchange of as many bytes does for both, and nobody has to store what
  // is between them.
  if (isExchanged && areStored ? bytes > own + ofOperands : bytes >= own)
    return;
  // That computing costs less than the transfer holds for equal devices.
  if (costs && takesLonger(op, relation, loops, moves, formerMoves))
    return;

  OpBuilder builder(op);
  llvm::SmallSetVector<Operation *, 4> producers;
  for (auto [operand, replacement] : llvm::zip_equal(op->getOpOperands(), operands)) {
    auto [source, needed] = replacement;
    if (Operation *definition = operand.get().getDefiningOp())
      producers.insert(definition);
    if (covers(getSharding(source), needed, cast<RankedTensorType>(source.getType()), mesh)) {
      operand.set(source);
      continue;
    }
    auto moved = ReshardOp::create(builder, source.getLoc(),
                                   withSharding(cast<RankedTensorType>(source.getType()), needed), source);
    operand.set(moved);
    worklist.push_back(moved);
  }
  // Where windows overlap, several ranks compute the same elements.
  assignLoopShardings(op, relation, loops, meshName);
  reshard.getResult().replaceAllUsesWith(op->getResult(0));
  reshard.erase();
  for (Operation *definition : producers)
    if (auto unused = dyn_cast<ReshardOp>(definition); unused && unused->use_empty()) {
      llvm::erase(worklist, unused);
      unused.erase();
    }
}
