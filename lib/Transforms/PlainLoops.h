//===- PlainLoops.h - Dimensions that an operation leaves alone -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what tells, from definitions, along which dimensions an operation does the same everywhere, and copies
// operations for fewer or other iterations of these.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_TRANSFORMS_PLAINLOOPS_H
#define DOVETAIL_LIB_TRANSFORMS_PLAINLOOPS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

#include <optional>

namespace dovetail {

/// For each operand of `op` the dimension that it reads at dimension `loop` of its result, and nowhere else; -1 for
/// operands that it reads alike at all iterations. None where the operation, of which `definition` is, reads something
/// else or looks at coordinates: along others its iterations are all alike, and know nothing of each other.
std::optional<llvm::SmallVector<int64_t>> findPlainDims(DefinitionOpInterface op, const Definition &definition,
                                                        unsigned loop);

/// `op` on other `operands`, with the attributes that it has, in front of it. Null, with nothing created, unless that
/// has a result of `shape`.
mlir::Operation *cloneOn(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange operands,
                         llvm::ArrayRef<int64_t> shape);

} // namespace dovetail

#endif // DOVETAIL_LIB_TRANSFORMS_PLAINLOOPS_H
