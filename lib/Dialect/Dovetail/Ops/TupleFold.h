//===- TupleFold.h - Folds that only the operation can combine -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what operations share that reduce elements to several values, which no exchange can combine: they reduce
// elements, or combine such values of parts.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_TUPLEFOLD_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_TUPLEFOLD_H

#include "../Definition/ReductionSupport.h"

namespace dovetail {

/// The shape of the results: that of `inputs` with extent 1 along `axes` or, where `restarts` (null, or an array for
/// each of the axes) divide them, an element for each part. Fails, after an error, if there are neither one input nor
/// `numResults`, which are `results` of parts, of one shape, or if they cannot be divided so.
mlir::FailureOr<llvm::SmallVector<int64_t>> inferTupleShape(std::optional<mlir::Location> location,
                                                            llvm::StringRef name, mlir::ValueRange inputs,
                                                            unsigned numResults, llvm::StringRef results,
                                                            llvm::ArrayRef<int64_t> axes, mlir::ArrayAttr restarts);

/// The types of the results of a fold of floats: `inferTupleShape`, and elements as floats of `inputs` accumulate.
/// Fails, after an error, for other elements, too.
llvm::LogicalResult inferFloatTuple(std::optional<mlir::Location> location, llvm::StringRef name,
                                    mlir::ValueRange inputs, unsigned numResults, llvm::StringRef results,
                                    llvm::ArrayRef<int64_t> axes, mlir::ArrayAttr restarts,
                                    llvm::SmallVectorImpl<mlir::Type> &types);

/// The definition of such a fold, whose elements are gone through in `passes` and whose parts are terms.
Definition getTupleDefinition(mlir::ValueRange inputs, mlir::RankedTensorType result, llvm::ArrayRef<int64_t> axes,
                              mlir::ArrayAttr restarts, llvm::ArrayRef<FoldPass> passes);

/// The element of a pass: that of the operand, at the terms that `body` is at.
mlir::Value readTerm(BodyBuilder &body);

/// Makes a fold of parts, which are those of ranks that split it as `loops` say, and one that combines them, with
/// `create`. Fails for what is divided already, and where ranks do not divide it.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
decomposeTuple(mlir::OpBuilder &builder, mlir::ValueRange inputs, llvm::ArrayRef<int64_t> axes,
               mlir::ArrayAttr restarts, llvm::ArrayRef<DimShardingAttr> loops,
               llvm::function_ref<mlir::ValueRange(mlir::ValueRange inputs, llvm::ArrayRef<int64_t> axes,
                                                   mlir::ArrayAttr restarts)>
                   create);

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_TUPLEFOLD_H
