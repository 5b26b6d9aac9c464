//===- OpShardings.h - Shardings of operations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how passes read and write the shardings of loops, operands and results.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_OPSHARDINGS_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_OPSHARDINGS_H

#include "dovetail/Dialect/Dovetail/IR/ShardingLayout.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLExtras.h"

namespace dovetail {

/// The argument and result attribute with which a user asks for a sharding: an array of `DimShardingAttr`, one for each
/// dimension, without pieces where the compiler may choose.
inline constexpr llvm::StringLiteral kShardAttrName = "dovetail.shard";

/// How the loops of an operation are split: one `DimShardingAttr` for each.
using LoopShardings = llvm::SmallVector<DimShardingAttr>;

/// The values of a function's body that depend on constants alone: they are computed once, before the first run.
llvm::DenseSet<mlir::Value> getConstantValues(mlir::func::FuncOp function);

/// The one mesh of a module; null if it has none, with an error if it has several.
mlir::FailureOr<MeshOp> getModuleMesh(mlir::ModuleOp module);
/// The same where there must be one: an error if there is none.
mlir::FailureOr<MeshOp> requireModuleMesh(mlir::ModuleOp module);

/// The graphs of a module: its functions that have a body.
inline auto getGraphs(mlir::ModuleOp module) {
  return llvm::make_filter_range(module.getOps<mlir::func::FuncOp>(),
                                 [](mlir::func::FuncOp function) { return !function.isDeclaration(); });
}

/// How many ranks differ along mesh axes, which must be in the mesh.
int64_t getNumParts(const layout::Mesh &mesh, llvm::ArrayRef<mlir::StringAttr> axes);

/// Whether ranks cannot compute their pieces of a loop of `op` by themselves: `decompose` has to replace it.
bool mustDecompose(SplitOpInterface op, const Loop &loop, DimShardingAttr sharding);

/// The positions of a dimension in cuts, of `extent`; unsplit: {0, extent}. Of windows, the owners' cuts
/// (`layout::DimSharding::ownerCuts`); nothing if they have none.
std::optional<llvm::SmallVector<int64_t>> getCutPositions(DimShardingAttr dim, int64_t extent);

/// What contains both pieces of every rank: unsplit where the axes differ, or for two tensors where one is not split.
DimShardingAttr getHull(DimShardingAttr a, DimShardingAttr b);
/// The same for tensors; neither is partial in the result. Null, for replicated, if one of them is.
ShardingAttr getHull(ShardingAttr a, ShardingAttr b);

/// The operands of `op` that are partial over the same axes, and by the same kind, as `held`.
llvm::SmallVector<unsigned> getPartialOperands(mlir::Operation *op, ShardingAttr held);

/// What the ranks need of an operand dimension of `extent`, given how the loops are split. Clipped to the tensor.
DimShardingAttr getNeededDim(const DimRelation &relation, llvm::ArrayRef<DimShardingAttr> loops, int64_t extent);
/// What the ranks need of operand `number`: windows, or cuts where they tile.
ShardingAttr getNeededSharding(const OpRelation &relation, unsigned number, mlir::RankedTensorType operandType,
                               llvm::ArrayRef<DimShardingAttr> loops, mlir::FlatSymbolRefAttr mesh);

/// True if on every rank the pieces of `held` contain those of `needed`. Both are taken over `mesh`; a partial value
/// holds nothing but itself, and nothing else takes its place.
bool covers(ShardingAttr held, ShardingAttr needed, mlir::RankedTensorType type, const layout::Mesh &mesh);

/// Whether `op` brings together what ranks store of a constant: a reshard of a reshard that says which pieces they
/// store. It runs anew before each use; all else that depends on constants alone runs once.
bool isGather(ReshardOp op);

/// The sharding of the result when the loops are split so, partial over the axes of split reductions.
ShardingAttr getResultSharding(const OpRelation &relation, unsigned resultRank, llvm::ArrayRef<DimShardingAttr> loops,
                               mlir::FlatSymbolRefAttr mesh);

/// How the loops of an operation are split: as `dovetail.loops` says, or not at all where no operand or result is
/// sharded. An error if that has not been decided.
mlir::FailureOr<LoopShardings> readLoopShardings(SplitOpInterface op);

/// Stores how the loops of an operation are split, and gives the result's type the sharding that follows.
void assignLoopShardings(SplitOpInterface op, const OpRelation &relation, llvm::ArrayRef<DimShardingAttr> loops,
                         mlir::FlatSymbolRefAttr mesh);

/// A reshard of `value` to `sharding`, made right after it or right before `reader`, which is to read it. The latter
/// has the location of its reader, or of the value if that is a terminator, which stands for no node of the model.
mlir::Value reshardAfter(mlir::Value value, ShardingAttr sharding);
mlir::Value reshardBefore(mlir::Operation *reader, mlir::Value value, ShardingAttr sharding);

/// Bytes that the ranks receive, all together, to hold what they need of a tensor in place of what they hold.
/// Null shardings: replicated.
int64_t getExchangeBytes(mlir::RankedTensorType type, ShardingAttr held, ShardingAttr needed, const layout::Mesh &mesh);

/// Bytes of a whole tensor, and of one of its elements.
int64_t getByteSize(mlir::RankedTensorType type);
int64_t getElementByteSize(mlir::Type elementType);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_OPSHARDINGS_H
