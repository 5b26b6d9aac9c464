//===- OpShardings.cpp - Shardings of operations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how passes read and write shardings.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"
#include "dovetail/Layout/Exchange.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dovetail;

FailureOr<MeshOp> dovetail::getModuleMesh(ModuleOp module) {
  MeshOp mesh;
  for (auto op : module.getOps<MeshOp>()) {
    if (mesh) {
      op.emitError("a module has one mesh, but this is the second");
      return failure();
    }
    mesh = op;
  }
  return mesh;
}

FailureOr<MeshOp> dovetail::requireModuleMesh(ModuleOp module) {
  FailureOr<MeshOp> mesh = getModuleMesh(module);
  if (succeeded(mesh) && !*mesh)
    return module.emitError("has no mesh; a program needs a mesh of one rank or more");
  return mesh;
}

DenseSet<Value> dovetail::getConstantValues(func::FuncOp function) {
  DenseSet<Value> constants;
  for (Operation &op : function.getBody().front())
    if (isa<ConstantOp, SplitOpInterface>(op) && isPure(&op) &&
        llvm::all_of(op.getOperands(), [&](Value operand) { return constants.contains(operand); }))
      constants.insert(op.result_begin(), op.result_end());
  return constants;
}

int64_t dovetail::getNumParts(const layout::Mesh &mesh, ArrayRef<StringAttr> axes) {
  int64_t parts = 1;
  for (StringAttr axis : axes)
    parts *= mesh.axisSize(mesh.axisIndex({axis.data(), axis.size()}).value_or(0));
  return parts;
}

bool dovetail::mustDecompose(SplitOpInterface op, const Loop &loop, DimShardingAttr sharding) {
  if (!sharding.isSplit())
    return false;
  if (loop.kind == LoopKind::Reduction && !loop.reduction)
    return true;
  return loop.kind == LoopKind::Scan && llvm::any_of(llvm::seq(sharding.getNumPieces()), [&](unsigned i) {
           return !isBetweenRestarts(*op.getDefinition().scan, sharding.getPiece(i));
         });
}

std::optional<SmallVector<int64_t>> dovetail::getCutPositions(DimShardingAttr dim, int64_t extent) {
  layout::DimSharding pieces;
  pieces.axes.assign(dim.getAxes().size(), 0);
  pieces.pieces.assign(dim.getIntervals().begin(), dim.getIntervals().end());
  std::optional<std::vector<int64_t>> cuts = pieces.ownerCuts(extent);
  if (!cuts)
    return std::nullopt;
  return SmallVector<int64_t>(cuts->begin(), cuts->end());
}

DimShardingAttr dovetail::getHull(DimShardingAttr a, DimShardingAttr b) {
  if (a == b)
    return a;
  if (a.getAxes() != b.getAxes())
    return DimShardingAttr::getUnsplit(a.getContext());
  SmallVector<layout::Interval> pieces;
  for (unsigned i = 0; i < a.getNumPieces(); ++i) {
    layout::Interval hull = a.getPiece(i).hull(b.getPiece(i));
    pieces.push_back(hull.empty() ? a.getPiece(i) : hull);
  }
  return DimShardingAttr::getWindows(a.getAxes(), pieces);
}

ShardingAttr dovetail::getHull(ShardingAttr a, ShardingAttr b) {
  if (!a || !b)
    return {};
  SmallVector<DimShardingAttr> dims;
  for (auto [x, y] : llvm::zip_equal(a.getDims(), b.getDims()))
    dims.push_back(getHull(x, y));
  return a.withoutPartial().withDims(dims);
}

SmallVector<unsigned> dovetail::getPartialOperands(Operation *op, ShardingAttr held) {
  SmallVector<unsigned> operands;
  for (OpOperand &operand : op->getOpOperands())
    if (ShardingAttr own = getSharding(operand.get());
        own && own.getPartialAxes() == held.getPartialAxes() && own.getPartialKind() == held.getPartialKind())
      operands.push_back(operand.getOperandNumber());
  return operands;
}

DimShardingAttr dovetail::getNeededDim(const DimRelation &relation, ArrayRef<DimShardingAttr> loops, int64_t extent) {
  if (relation.loop < 0 || !loops[relation.loop].isSplit())
    return loops.empty() ? DimShardingAttr() : DimShardingAttr::getUnsplit(loops[0].getContext());
  DimShardingAttr loop = loops[relation.loop];
  // The coordinates may be the same and the extents not, as in a pad or a concatenation.
  if (relation.map.isIdentity() && loop.isInside(extent))
    return loop;
  SmallVector<layout::Interval> windows;
  bool isWhole = true;
  int64_t last = 0;
  windows.reserve(loop.getNumPieces());
  for (layout::Interval piece : loop.getIntervals()) {
    layout::Interval need = relation.map.needClipped(piece, extent);
    // An empty piece stands where the piece before it ends, so that cuts with
    // empty shards are still cuts.
    if (need.empty())
      need = {last, last};
    last = need.hi;
    isWhole &= need == layout::Interval{0, extent};
    windows.push_back(need);
  }
  if (isWhole)
    return DimShardingAttr::getUnsplit(loop.getContext());
  return DimShardingAttr::getWindows(loop.getAxes(), windows);
}

ShardingAttr dovetail::getNeededSharding(const OpRelation &relation, unsigned number, RankedTensorType operandType,
                                         ArrayRef<DimShardingAttr> loops, FlatSymbolRefAttr mesh) {
  MLIRContext *context = mesh.getContext();
  SmallVector<DimShardingAttr> dims;
  SmallVector<StringAttr> used;
  for (auto [dim, extent] : llvm::enumerate(operandType.getShape())) {
    DimShardingAttr need = getNeededDim(relation.operands[number][dim], loops, extent);
    // Two dimensions that follow one loop (a diagonal) cannot both be split by its axes: the second is held whole.
    if (!need || llvm::any_of(need.getAxes(), [&](StringAttr axis) { return llvm::is_contained(used, axis); }))
      need = DimShardingAttr::getUnsplit(context);
    used.append(need.getAxes().begin(), need.getAxes().end());
    dims.push_back(need);
  }
  return ShardingAttr::get(context, mesh, dims, {}, ReduceKind::Sum);
}

bool dovetail::covers(ShardingAttr held, ShardingAttr needed, RankedTensorType type, const layout::Mesh &mesh) {
  if (held == needed)
    return true;
  // A sum is not what its terms are, and has to be added once.
  if ((held && held.isPartial()) || (needed && needed.isPartial()))
    return false;
  // Whole dimensions contain everything.
  if (!held)
    return true;
  auto unsplit = DimShardingAttr::getUnsplit(held.getContext());
  auto getNeeded = [&](size_t dim) { return needed ? needed.getDims()[dim] : unsplit; };
  for (auto [number, dim] : llvm::enumerate(held.getDims()))
    // Split over other axes: exact only rank by rank.
    if (dim.isSplit() && dim.getAxes() != getNeeded(number).getAxes())
      return toLayout(held, mesh, type.getRank())
          .contains(mesh, type.getShape(), toLayout(needed, mesh, type.getRank()));
  for (auto [number, dim] : llvm::enumerate(held.getDims())) {
    DimShardingAttr need = getNeeded(number);
    if (dim == need || !dim.isSplit())
      continue;
    for (auto [piece, other] : llvm::zip_equal(dim.getIntervals(), need.getIntervals()))
      if (!piece.contains(other))
        return false;
  }
  return true;
}

bool dovetail::isGather(ReshardOp op) {
  auto pieces = op.getOperand().getDefiningOp<ReshardOp>();
  return pieces && pieces.getOperand().getDefiningOp<ConstantOp>();
}

ShardingAttr dovetail::getResultSharding(const OpRelation &relation, unsigned resultRank,
                                         ArrayRef<DimShardingAttr> loops, FlatSymbolRefAttr mesh) {
  SmallVector<StringAttr> partialAxes;
  ReduceKind kind = ReduceKind::Sum;
  for (unsigned loop = resultRank; loop < loops.size(); ++loop) {
    if (!loops[loop].isSplit())
      continue;
    partialAxes.append(loops[loop].getAxes().begin(), loops[loop].getAxes().end());
    // Loops that exchanges cannot combine are not split.
    kind = *relation.loops[loop].reduction;
  }
  return ShardingAttr::get(mesh.getContext(), mesh, loops.take_front(resultRank), partialAxes, kind);
}

FailureOr<LoopShardings> dovetail::readLoopShardings(SplitOpInterface op) {
  auto isSharded = [](Value value) { return getSharding(value) != nullptr; };
  LoopShardingsAttr loops = op.getLoopShardings();
  if (loops && isSharded(op->getResult(0)))
    return LoopShardings(loops.getLoops());
  if (loops || llvm::any_of(op->getOperands(), isSharded) || llvm::any_of(op->getResults(), isSharded))
    return op.emitOpError("has no loop shardings; run --dovetail-choose-shardings first");
  return LoopShardings(op.getRelation().loops.size(), DimShardingAttr::getUnsplit(op.getContext()));
}

void dovetail::assignLoopShardings(SplitOpInterface op, const OpRelation &relation, ArrayRef<DimShardingAttr> loops,
                                   FlatSymbolRefAttr mesh) {
  op.setLoopShardings(LoopShardingsAttr::get(op.getContext(), mesh, loops));
  for (Value result : op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    result.setType(withSharding(type, getResultSharding(relation, type.getRank(), loops, mesh)));
  }
}

static Value createReshard(OpBuilder &builder, Location location, Value value, ShardingAttr sharding) {
  return ReshardOp::create(builder, location, withSharding(cast<RankedTensorType>(value.getType()), sharding), value);
}

Value dovetail::reshardAfter(Value value, ShardingAttr sharding) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  return createReshard(builder, value.getLoc(), value, sharding);
}

Value dovetail::reshardBefore(Operation *reader, Value value, ShardingAttr sharding) {
  OpBuilder builder(reader);
  Location location = reader->hasTrait<OpTrait::IsTerminator>() ? value.getLoc() : reader->getLoc();
  return createReshard(builder, location, value, sharding);
}

int64_t dovetail::getExchangeBytes(RankedTensorType type, ShardingAttr held, ShardingAttr needed,
                                   const layout::Mesh &mesh) {
  layout::ExchangeVolume volume = layout::getExchangeVolume(mesh, type.getShape(), toLayout(held, mesh, type.getRank()),
                                                            toLayout(needed, mesh, type.getRank()));
  return volume.total * getElementByteSize(type.getElementType());
}

int64_t dovetail::getElementByteSize(Type elementType) {
  return llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8);
}

int64_t dovetail::getByteSize(RankedTensorType type) {
  return type.getNumElements() * getElementByteSize(type.getElementType());
}
