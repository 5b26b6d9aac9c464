//===- CallShape.h - Calls as libraries see them ----------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines CallShape, all that libraries are asked about a call: what it computes, and on which tensors.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIBRARY_CALLSHAPE_H
#define DOVETAIL_LIBRARY_CALLSHAPE_H

#include "dovetail/Dialect/Plan/IR/Plan.h"

namespace dovetail {

/// A call for an operation of the graph, or one of a plan.
struct CallShape {
  CallForm form;
  /// The extents of the loops. The first ones are the dimensions of the result.
  llvm::SmallVector<int64_t> loops;
  /// How dimensions of the result and terms are split among ranks. Empty if that has not been decided.
  llvm::SmallVector<DimShardingAttr> splits;
  /// Where the call reads its operands, in order, and their types.
  llvm::SmallVector<plan::AccessDims> reads;
  llvm::SmallVector<mlir::RankedTensorType> operands;
  mlir::RankedTensorType result;

  /// The shape of calls for `op`; none if no call has its form.
  static std::optional<CallShape> find(mlir::Operation *op);
  /// That of `call`, which has a form.
  static CallShape get(plan::CallOpInterface call);

  /// The form, if it is of this kind.
  template <typename FormT> const FormT *as() const { return std::get_if<FormT>(&form); }
  /// Iterations for each element of the result.
  int64_t countTerms() const;
  /// Of `window`, of spatial dimension `dim`: the positions behind the operand that the last one reads. Negative if it
  /// ends before the operand does.
  int64_t getPadBehind(size_t dim, const layout::Window &window) const;
};

} // namespace dovetail

#endif // DOVETAIL_LIBRARY_CALLSHAPE_H
