//===- ShardingRequests.h - Shardings that users ask for -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how requests, in which cuts may be open, are read and completed.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_SHARDING_SHARDINGREQUESTS_H
#define DOVETAIL_SHARDING_SHARDINGREQUESTS_H

#include "dovetail/Dialect/Dovetail/IR/OpShardings.h"

namespace dovetail {

/// One entry for each dimension; cuts may be open.
using ShardingRequest = llvm::SmallVector<DimShardingAttr>;

/// What `attribute` requests for `value`. Emits an error, in which the value is called `name`, if it does not fit the
/// value or the mesh.
mlir::FailureOr<ShardingRequest> readRequest(mlir::ArrayAttr attribute, mlir::Value value, MeshOp mesh,
                                             const llvm::Twine &name);

/// The request with balanced cuts where it leaves them open.
ShardingRequest closeCuts(llvm::ArrayRef<DimShardingAttr> request, const layout::Mesh &mesh,
                          llvm::ArrayRef<int64_t> shape);

/// What is stated about a function.
struct FunctionRequests {
  llvm::DenseMap<mlir::Value, ShardingRequest> arguments;
  /// For the first results of operations.
  llvm::DenseMap<mlir::Value, ShardingRequest> results;
  /// How the loops of operations are to be split, whatever their operands.
  llvm::DenseMap<mlir::Operation *, LoopShardings> loops;
  /// For operands of the terminator.
  llvm::SmallVector<std::pair<mlir::OpOperand *, ShardingRequest>> outputs;
  /// Operands of the terminator that are what arguments are to be in the next run: they are cut as these are.
  llvm::SmallVector<std::pair<mlir::OpOperand *, mlir::BlockArgument>> feedback;
};

/// Reads what is stated: `dovetail.shard` of arguments, results and operations, `dovetail.loops`, `dovetail.feedback`,
/// and shardings in types. An error where that contradicts itself, the values, or the mesh.
mlir::FailureOr<FunctionRequests> readRequests(mlir::func::FuncOp function, MeshOp mesh);

} // namespace dovetail

#endif // DOVETAIL_SHARDING_SHARDINGREQUESTS_H
