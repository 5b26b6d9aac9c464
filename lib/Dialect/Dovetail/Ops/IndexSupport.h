//===- IndexSupport.h - Positions that constants name ------------------- -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what operations share whose accesses are exact where their indices are constant.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_INDEXSUPPORT_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_INDEXSUPPORT_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// The positions along a dimension of `extent`, not 0, that constant `indices` name, clamped: number `component` of
/// each `depth` of them. None if they are not constant.
std::optional<std::vector<int64_t>> getPositions(mlir::Value indices, int64_t extent, int64_t component = 0,
                                                 int64_t depth = 1);

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_INDEXSUPPORT_H
