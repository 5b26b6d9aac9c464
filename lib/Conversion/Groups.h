//===- Groups.h - Make groups of operations -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what the passes that form groups share.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CONVERSION_GROUPS_H
#define DOVETAIL_LIB_CONVERSION_GROUPS_H

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "llvm/ADT/DenseMap.h"

namespace dovetail {

/// What a group is to read.
struct GroupInputs {
  llvm::SmallVector<mlir::Value> values;
  /// The operands of members that read `values`, by number.
  llvm::DenseMap<mlir::OpOperand *, unsigned> numbers;

  /// Adds an input for `operand` alone.
  void add(mlir::OpOperand &operand);
};

/// Moves `ops`, operations of one block in their order, into a group at the place of the last one, whose results
/// become the group's. Operands that neither are in `inputs` nor come from other members are of constants, which are
/// copied into the group. `library` is null for a kernel.
plan::GroupOp formGroup(llvm::ArrayRef<mlir::Operation *> ops, const GroupInputs &inputs, mlir::StringAttr library);

/// For each operation of a block the `plan.begin_loop` of the innermost loop that it is in; nothing for those in none.
llvm::DenseMap<mlir::Operation *, mlir::Operation *> findLoops(mlir::Block &block);
/// The same with choices: `plan.begin_loop` or `plan.begin_choice`. What is made in one need not be there outside of
/// it.
llvm::DenseMap<mlir::Operation *, mlir::Operation *> findRegions(mlir::Block &block);

} // namespace dovetail

#endif // DOVETAIL_LIB_CONVERSION_GROUPS_H
