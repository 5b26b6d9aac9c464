//===- Coordinates.h - Coordinates of row-major positions -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines getCoordinate.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_COORDINATES_H
#define DOVETAIL_LIB_IMPORT_BUILD_COORDINATES_H

#include "GraphBuilder.h"
#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

namespace dovetail::importer {

/// Coordinate along a dimension of `extent`, of which one takes `stride` positions, of row-major positions.
inline mlir::Value getCoordinate(GraphBuilder &builder, mlir::Value positions, int64_t stride, int64_t extent) {
  mlir::Value row = builder.create<DivOp>(positions, builder.scalarLike(positions, stride));
  return builder.create<ModOp>(row, builder.scalarLike(positions, extent), /*fmod=*/int64_t(0));
}

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_COORDINATES_H
