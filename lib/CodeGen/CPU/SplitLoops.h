//===- SplitLoops.h - Loops whose iterations differ -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares splitLoops, unswitchLoops, joinResidues.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_CPU_SPLITLOOPS_H
#define DOVETAIL_LIB_CODEGEN_CPU_SPLITLOOPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Operation.h"

#include <utility>

namespace dovetail {

/// What is known of values of type index: the smallest and the largest number that they may be.
using IndexBounds = llvm::DenseMap<mlir::Value, std::pair<int64_t, int64_t>>;

/// Splits innermost loops in `function` where conditions and coordinates that depend on nothing but their iteration
/// change: at the borders of what a pad reads, or where one operand of a concatenation ends. Each of the loops that
/// follow each other then has straight code in which coordinates go up or down by a constant, so that it vectorises.
/// The order of iterations stays. `bounds` are those of the function's arguments, where they are known.
/// Returns whether it has split any.
bool splitLoops(mlir::Operation *function, const IndexBounds &bounds);

/// Copies innermost loops in `function` for both sides of branches whose condition is the same in all iterations. One
/// is which operand of a concatenation along an outer dimension has the row. Each copy has straight code, where LLVM
/// would choose between addresses, and gather. Returns whether it has copied any.
bool unswitchLoops(mlir::Operation *function);

/// Goes through several iterations of innermost loops of constant ends at once, as many as it takes until what is left
/// of divisions that comparisons depend on is the same again: of windows with a stride those taps then are known that
/// have an element. Returns whether it has changed any.
bool joinResidues(mlir::Operation *function);

/// The loops in `function` that have but branches inside.
llvm::SmallVector<mlir::scf::ForOp> getInnermostLoops(mlir::Operation *function);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_SPLITLOOPS_H
