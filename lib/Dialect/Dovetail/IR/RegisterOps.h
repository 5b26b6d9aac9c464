//===- RegisterOps.h - Registers operations in several files -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the dialect registers its operations: in several files, as the code that MLIR needs for each takes long
// to compile.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_IR_REGISTEROPS_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_IR_REGISTEROPS_H

#include "mlir/IR/Dialect.h"

namespace dovetail::detail {

/// Registers every operation whose place in the list of its family leaves `Shard` when divided by DOVETAIL_OP_SHARDS.
/// Each shard is instantiated in a generated file of its own.
template <size_t Shard> void registerOps(mlir::Dialect &dialect);

} // namespace dovetail::detail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_IR_REGISTEROPS_H
