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

#ifndef DOVETAIL_LIB_SHARDING_SHARDINGREQUESTS_H
#define DOVETAIL_LIB_SHARDING_SHARDINGREQUESTS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// One entry for each dimension; cuts may be open.
using ShardingRequest = llvm::SmallVector<DimShardingAttr>;

/// What `attribute` requests for `value`. Emits an error, in which the value is called `name`, if it does not fit the
/// value or the mesh.
mlir::FailureOr<ShardingRequest> readRequest(mlir::ArrayAttr attribute, mlir::Value value, MeshOp mesh,
                                             const llvm::Twine &name);

/// The request with cuts chosen where it leaves them open: those of `held` (which may be null), if that is split over
/// the same axes, or else balanced ones.
ShardingRequest closeCuts(llvm::ArrayRef<DimShardingAttr> request, ShardingAttr held, const layout::Mesh &mesh,
                          llvm::ArrayRef<int64_t> shape);

} // namespace dovetail

#endif // DOVETAIL_LIB_SHARDING_SHARDINGREQUESTS_H
