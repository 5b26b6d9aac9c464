//===- ScratchCode.h - Code of an element that nobody runs ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares emitScratch, which emits the code of an operation for those who look at it.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_DEFINITION_SCRATCHCODE_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_DEFINITION_SCRATCHCODE_H

#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.h"
#include "llvm/ADT/DenseSet.h"

namespace dovetail {

/// Elements of operand `operand` that code reads.
struct ReadMarks {
  llvm::ArrayRef<unsigned> operands;
  llvm::DenseSet<mlir::Value> found;
};

/// Emits an element of the results of `op`, or a line, into `block`, of which the coordinates are arguments. Returns
/// the elements; none of a line. `ends`: iterations of each loop of `definition`, its own. Elements that are read are
/// values from nowhere. With `marks`, they are made of the indices where they are read, and those of its operand are
/// noted.
llvm::SmallVector<mlir::Value> emitScratch(mlir::Block &block, DefinitionOpInterface op, const Definition &definition,
                                           llvm::ArrayRef<int64_t> ends, ReadMarks *marks = nullptr);

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_DEFINITION_SCRATCHCODE_H
