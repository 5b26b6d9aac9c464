//===- ReductionSupport.h - What operations that reduce share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares accumulator types and the fold that defines an element of a reduction.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_REDUCTIONSUPPORT_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_REDUCTIONSUPPORT_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// The scalar type in which elements of `elementType` accumulate: f32 for narrower floats, so that long sums keep their
/// digits; otherwise the signless element type.
mlir::Type getAccumulatorType(mlir::Type elementType);

/// Extends a float scalar to `type`, if it is narrower.
mlir::Value widen(ElementBuilder &builder, mlir::Value scalar, mlir::Type type);

/// Rounds a float accumulator to the elements of `elementType`, if they are narrower.
mlir::Value narrow(ElementBuilder &builder, mlir::Value accumulator, mlir::Type elementType);

/// A float of `type` from a count of type `index`.
mlir::Value countToFloat(ElementBuilder &builder, mlir::Value count, mlir::Type type);

/// The element at `index` of an operation whose reduction loops follow those of its result: the fold of all terms in
/// the ranges that this rank executes. Each loop has its own accumulator, so that errors of sums grow with the extents
/// of the loops and not with their product.
mlir::Value foldTerms(ReductionOpInterface op, ElementBuilder &builder, llvm::ArrayRef<mlir::Value> index,
                      ElementSource &elements, unsigned numReductionLoops);

/// A range of one dimension of an operand.
struct DimRange {
  int64_t dim;
  mlir::Value lo, hi;
};

/// Sum of `term` over the elements of operand 0 at `coordinates`, with all indices in `ranges`. Elements are widened to
/// `type`. Each range has its own accumulator, as in `foldTerms`.
mlir::Value sumElements(ElementBuilder &builder, ElementSource &elements, llvm::ArrayRef<mlir::Value> coordinates,
                        llvm::ArrayRef<DimRange> ranges, mlir::Type type,
                        llvm::function_ref<mlir::Value(mlir::Value element)> term);

/// Checks that `axes` are dimensions of a tensor of `rank`, in ascending order.
llvm::LogicalResult verifyAxes(std::optional<mlir::Location> location, llvm::StringRef opName,
                               llvm::ArrayRef<int64_t> axes, int64_t rank);

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_REDUCTIONSUPPORT_H
