//===- ShardingLayout.h - Sharding attributes as layouts --------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what sharding attributes are in the Layout library, which knows no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_SHARDINGLAYOUT_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_SHARDINGLAYOUT_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// Converts a sharding attribute (null: replicated) of a tensor of `rank` dimensions. The axes must be in the mesh.
layout::Sharding toLayout(ShardingAttr sharding, const layout::Mesh &mesh, unsigned rank);
layout::DimSharding toLayout(DimShardingAttr dim, const layout::Mesh &mesh);
/// The same for loops, which are then those of a tensor of their extents.
layout::Sharding toLayout(llvm::ArrayRef<DimShardingAttr> loops, const layout::Mesh &mesh);
layout::ReductionKind toLayout(ReduceKind kind);

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_SHARDINGLAYOUT_H
