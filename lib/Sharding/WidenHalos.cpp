//===- WidenHalos.cpp - Compute halos in place of exchanging them ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lets ranks compute more than their parts where that makes exchanges unnecessary.
//
//===----------------------------------------------------------------------===//

#include "HaloWidths.h"
#include "dovetail/Cost/PassCluster.h"

#include "dovetail/Dialect/Dovetail/IR/MeshPass.h"
#include "dovetail/Sharding/Passes.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace dovetail {
#define GEN_PASS_DEF_WIDENHALOS
#include "dovetail/Sharding/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

namespace {

struct WidenHalos : MeshPass<dovetail::impl::WidenHalosBase<WidenHalos>> {
  using MeshPass::MeshPass;
  WidenHalos(WidenHalosOptions options, std::shared_ptr<const Cluster> found)
      : MeshPass(std::move(options)), found(std::move(found)) {}

  LogicalResult run(MeshOp) override;

  LogicalResult initialize(MLIRContext *context) override { return findCluster(found, cluster, context); }

  std::shared_ptr<const Cluster> found;
};

/// Gives a function the halos that were found.
class Commit {
public:
  Commit(func::FuncOp function, const layout::Mesh &mesh, FlatSymbolRefAttr meshName, const HaloWidths &widths)
      : function(function), mesh(mesh), meshName(meshName), widths(widths) {}

  void run();

private:
  /// What an operand needs, as the loops of its operation are split now.
  ShardingAttr getNeed(OpOperand &operand) const;
  void bring(const HaloWidths::Change &change);
  void bringConstants(SplitOpInterface op);

  func::FuncOp function;
  const layout::Mesh &mesh;
  FlatSymbolRefAttr meshName;
  const HaloWidths &widths;
};

} // namespace

std::unique_ptr<Pass> dovetail::createWidenHalos(WidenHalosOptions options, std::shared_ptr<const Cluster> cluster) {
  return std::make_unique<WidenHalos>(std::move(options), std::move(cluster));
}

static std::string formatSeconds(double seconds) {
  return seconds < 1e-6 ? llvm::formatv("{0:f0} ns", 1e9 * seconds).str()
                        : llvm::formatv("{0:f1} us", 1e6 * seconds).str();
}

/// Says what is computed more than once, and what comes of that.
static void emitRemarks(func::FuncOp function, const HaloWidths &widths) {
  if (widths.operations.empty())
    return;
  const HaloWidths::Expense &before = widths.before, &after = widths.after;
  auto formatBytes = [](double bytes) { return llvm::formatv("{0:f0} bytes", bytes).str(); };
  function.emitRemark("several ranks compute the halos of ")
      << widths.operations.size() << " operations, which is expected to take "
      << formatSeconds(after.workSeconds - before.workSeconds) << " more; ranks exchange halos " << after.exchanges
      << " times in place of " << before.exchanges << ", " << formatBytes(after.bytes) << " in place of "
      << formatBytes(before.bytes) << ", " << formatSeconds(after.exchangeSeconds) << " in place of "
      << formatSeconds(before.exchangeSeconds);
  for (const auto &[op, widened] : widths.operations)
    op->emitRemark("is computed by several ranks where their parts meet, which is expected to take ")
        << formatSeconds(widened.moreSeconds) << " more";
}

LogicalResult WidenHalos::run(MeshOp) {
  // What several ranks compute takes memory on all of them.
  if (objective == Objective::Memory && !always && !seed)
    return success();
  for (auto function : getGraphs(getOperation())) {
    FailureOr<HaloWidths> widths = findHaloWidths(function, mesh, meshName, {objective, *found, engine, always, seed});
    if (failed(widths))
      return failure();
    emitRemarks(function, *widths);
    Commit(function, mesh, meshName, *widths).run();
  }
  return success();
}

ShardingAttr Commit::getNeed(OpOperand &operand) const {
  auto op = cast<SplitOpInterface>(operand.getOwner());
  // It is known of all that read.
  LoopShardings loops = *readLoopShardings(op);
  return getNeededSharding(op.getRelation(), operand.getOperandNumber(),
                           cast<RankedTensorType>(operand.get().getType()), loops, meshName);
}

void Commit::bring(const HaloWidths::Change &change) {
  auto type = cast<RankedTensorType>(change.value.getType());
  auto suffices = [&](Value held, ShardingAttr needed) { return covers(getSharding(held), needed, type, mesh); };
  Value form = change.value;
  if (change.form && !suffices(form, change.form))
    form = reshardBefore(change.readers.front()->getOwner(), form, change.form);
  DenseMap<ShardingAttr, Value> brought;
  for (OpOperand *operand : change.readers) {
    ShardingAttr needed = getNeed(*operand);
    if (suffices(form, needed)) {
      operand->set(form);
      continue;
    }
    Value &halo = brought[needed];
    if (!halo)
      halo = reshardBefore(operand->getOwner(), form, needed);
    operand->set(halo);
  }
}

void Commit::bringConstants(SplitOpInterface op) {
  for (OpOperand &operand : op->getOpOperands()) {
    ConstantOp constant = getReadConstant(operand.get());
    if (!constant)
      continue;
    // Ranks keep their part of a constant only.
    ShardingAttr needed = getNeed(operand);
    operand.set(needed.isSplit() ? reshardBefore(op, constant, needed) : Value(constant));
  }
}

void Commit::run() {
  DenseMap<Value, ShardingAttr> former;
  for (const auto &[op, widened] : widths.operations) {
    for (Value result : op->getResults())
      former[result] = getSharding(result);
    auto defined = cast<SplitOpInterface>(op);
    assignLoopShardings(defined, defined.getRelation(), widened.loops, meshName);
  }
  for (const HaloWidths::Change &change : widths.values)
    bring(change);
  for (const auto &[op, widened] : widths.operations)
    bringConstants(cast<SplitOpInterface>(op));
  // A function returns what its type says.
  Block &block = function.getBody().front();
  for (OpOperand &operand : block.getTerminator()->getOpOperands())
    if (ShardingAttr sharding = former.lookup(operand.get()))
      operand.set(reshardBefore(block.getTerminator(), operand.get(), sharding));
  // Readers come after what they read.
  if (!widths.operations.empty())
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isa<ReshardOp>(op) && op.use_empty())
        op.erase();
}
