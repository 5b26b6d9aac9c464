//===- KeepPacked.cpp - Weights that stay as they are stored --------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Decides which factors of products that are computed of constants are computed in each run, as that takes less memory.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Conversion/Passes.h"
#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"
#include "dovetail/Dialect/Plan/IR/PackedWeights.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace dovetail {
#define GEN_PASS_DEF_KEEPPACKED
#include "dovetail/Conversion/Passes.h.inc"
} // namespace dovetail

using namespace mlir;
using namespace dovetail;

/// A factor takes so many times the memory of what it is computed of, at least. 16 bits take half of 32, for which no
/// product is to take longer.
static constexpr double kLeastGrowth = 2.5;
/// Of what is stored in fewer bits for each element of the factor, memory counts more than time.
static constexpr double kFewBits = 8;
/// What saves fewer bytes is not worth to be computed in each run.
static constexpr int64_t kLeastBytes = int64_t(1) << 15;
/// With so many rows a product takes ten times as long as to widen its weights.
static constexpr double kManyRows = 512;
/// With so few, kernels take no longer than to read weights as f32, whether columns are neighbours or not.
static constexpr double kFewRows = 8;

namespace {
/// What a factor is computed of.
struct Cone {
  /// Operations, each behind those that it reads.
  llvm::SetVector<Operation *> ops;
  llvm::SetVector<Operation *> constants;

  /// Collects what `value` depends on; false if that is not constants alone, or far away.
  bool collect(Value value, int depth = 0);
  int64_t getConstantBytes() const;
};

struct KeepPacked : dovetail::impl::KeepPackedBase<KeepPacked> {
  using KeepPackedBase::KeepPackedBase;

  void runOnOperation() override;
  /// Has `factor` of the product `op` computed in each run, if that is better.
  LogicalResult keep(SplitOpInterface op, OpOperand &factor);
  /// Copies `cone` to the place of the user of `factor`, so that each product has its own and memory for what is
  /// widened is needed there alone. Returns what is computed in each run.
  SmallVector<Operation *> computeInRun(const Cone &cone, OpOperand &factor);
  /// Has each rank compute, and keep of constants, what it needs for its part of `user`: what is in the prologue, all
  /// ranks compute whole.
  LogicalResult divide(ArrayRef<Operation *> copies, SplitOpInterface user, OpOperand &factor);

  FlatSymbolRefAttr mesh; ///< Null if there is none.
};
} // namespace

static int64_t getBytes(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * getElementByteSize(type.getElementType());
}

bool Cone::collect(Value value, int depth) {
  // What is computed of constants alone is short; other chains may be as long as the graph.
  constexpr int maxDepth = 64;
  Operation *op = value.getDefiningOp();
  if (!op || depth > maxDepth)
    return false;
  if (isa<ConstantOp>(op)) {
    constants.insert(op);
    return true;
  }
  if (ops.contains(op))
    return true;
  auto defined = dyn_cast<SplitOpInterface>(op);
  // What costs more than to move and convert elements is computed once.
  if (!defined || op->getNumResults() != 1 || !isPure(op) || !defined.isCheapElement() || op->getNumOperands() == 0)
    return false;
  if (!llvm::all_of(op->getOperands(), [&](Value operand) { return collect(operand, depth + 1); }))
    return false;
  ops.insert(op);
  return true;
}

int64_t Cone::getConstantBytes() const {
  int64_t bytes = 0;
  for (Operation *constant : constants) {
    auto elements = dyn_cast<DenseElementsAttr>(cast<ConstantOp>(constant).getValue());
    // What is the same everywhere becomes part of code.
    if (!elements || !elements.isSplat())
      bytes += getBytes(constant->getResult(0));
  }
  return bytes;
}

/// How many results each element of `factor`, an operand of the product `op`, has a part in.
static double countRows(const Definition &definition, const OpOperand &factor) {
  double iterations = 1;
  for (const Loop &loop : definition.loops)
    iterations *= double(loop.extent);
  return iterations / double(std::max<int64_t>(cast<RankedTensorType>(factor.get().getType()).getNumElements(), 1));
}

/// Whether columns of the product that `definition` is of are neighbours in `factor`, as it is computed by `cone`.
static bool hasColumns(const Definition &definition, OpOperand &factor, const Cone &cone) {
  auto access =
      llvm::find_if(definition.reads, [&](const Access &read) { return read.operand == factor.getOperandNumber(); });
  return access->dims.back().index.asLoop() == static_cast<int>(definition.resultRank) - 1 &&
         llvm::none_of(cone.ops, llvm::IsaPred<TransposeOp>);
}

SmallVector<Operation *> KeepPacked::computeInRun(const Cone &cone, OpOperand &factor) {
  OpBuilder builder(factor.getOwner());
  IRMapping mapping;
  SmallVector<Operation *> copies;
  int64_t whole = getBytes(factor.get());
  for (Operation *op : cone.ops) {
    // What takes no more memory than before, or little, such as scales in another shape, is computed once.
    Cone own;
    own.collect(op->getResult(0));
    if (getBytes(op->getResult(0)) <= std::max(own.getConstantBytes(), whole / 32))
      continue;
    copies.push_back(builder.clone(*op, mapping));
    copies.back()->setAttr(plan::kEachRunAttrName, builder.getUnitAttr());
  }
  factor.set(mapping.lookupOrDefault(factor.get()));
  return copies;
}

LogicalResult KeepPacked::divide(ArrayRef<Operation *> copies, SplitOpInterface user, OpOperand &factor) {
  FailureOr<LoopShardings> userLoops = readLoopShardings(user);
  if (failed(userLoops))
    return failure();
  DenseMap<Value, ShardingAttr> needs;
  auto getNeed = [&](SplitOpInterface op, OpOperand &operand, ArrayRef<DimShardingAttr> loops) {
    return getNeededSharding(op.getRelation(), operand.getOperandNumber(),
                             cast<RankedTensorType>(operand.get().getType()), loops, mesh);
  };
  needs[factor.get()] = getNeed(user, factor, *userLoops);
  for (Operation *copy : llvm::reverse(copies)) {
    auto op = cast<SplitOpInterface>(copy);
    OpRelation relation = op.getRelation();
    ShardingAttr need = needs.lookup(copy->getResult(0));
    LoopShardings loops;
    if (need)
      loops.assign(need.getDims().begin(), need.getDims().end());
    // Whatever else it goes through, it does so as a whole, and so it computes what nobody needs.
    bool isDivided = need && loops.size() == relation.loops.size();
    for (auto [loop, sharding] : llvm::zip(relation.loops, loops))
      isDivided &= loop.kind == LoopKind::Parallel && sharding.covers(loop.extent);
    if (isDivided) {
      assignLoopShardings(op, relation, loops, mesh);
    } else {
      FailureOr<LoopShardings> own = readLoopShardings(op);
      if (failed(own))
        return failure();
      loops = *own;
    }
    for (OpOperand &operand : copy->getOpOperands()) {
      ShardingAttr own = getNeed(op, operand, loops);
      Operation *producer = operand.get().getDefiningOp();
      if (llvm::is_contained(copies, producer)) {
        auto [entry, isNew] = needs.try_emplace(operand.get(), own);
        if (!isNew)
          entry->second = getHull(entry->second, own);
      } else if (isa<ConstantOp>(producer) && own && own.isSplit()) {
        Value part = reshardBefore(copy, operand.get(), own);
        part.getDefiningOp()->setAttr(plan::kFormatsAttrName, producer->getAttr(plan::kFormatsAttrName));
        operand.set(part);
      }
    }
  }
  return success();
}

LogicalResult KeepPacked::keep(SplitOpInterface op, OpOperand &factor) {
  Cone cone;
  if (!cone.collect(factor.get()) || cone.ops.empty())
    return success();
  auto type = cast<RankedTensorType>(factor.get().getType());
  int64_t bytes = getBytes(factor.get()), stored = cone.getConstantBytes();
  if (double(bytes) < kLeastGrowth * double(stored) || bytes - stored < kLeastBytes)
    return success();
  Definition definition = op.getDefinition();
  double rows = countRows(definition, factor);
  bool hasTaps = definition.getNumTaps() > 0, isFew = rows <= std::min(kFewRows, double(kernelRows));
  bool hasFewBits = 8 * double(stored) < kFewBits * double(type.getNumElements());
  if (!hasFewBits && (hasTaps || (!isFew && rows < kManyRows)))
    return success();
  // Shorter types than that of sums are converted in each row.
  bool hasPanels = rows <= double(kernelRows) && type.getElementType().isF32() && hasColumns(definition, factor, cone);
  bool isKernel = !hasTaps && (isFew || hasPanels);
  if (isKernel)
    op->setAttr(plan::kGeneratedAttrName, UnitAttr::get(&getContext()));
  SmallVector<Operation *> copies = computeInRun(cone, factor);
  return mesh ? divide(copies, op, factor) : success();
}

void KeepPacked::runOnOperation() {
  if (getOperation().isDeclaration())
    return;
  FailureOr<MeshOp> found = getModuleMesh(getOperation()->getParentOfType<ModuleOp>());
  if (failed(found))
    return signalPassFailure();
  mesh = *found ? FlatSymbolRefAttr::get(*found) : FlatSymbolRefAttr();
  Block &block = getOperation().getBody().front();
  for (auto op : llvm::to_vector(block.getOps<SplitOpInterface>())) {
    auto isConstant = [](Value value) { return Cone().collect(value); };
    // A product of constants alone is part of the prologue.
    if (op->getNumResults() == 1 && op.getDefinition().isProduct && !llvm::all_of(op->getOperands(), isConstant))
      for (OpOperand &operand : op->getOpOperands())
        if (failed(keep(op, operand)))
          return signalPassFailure();
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}
