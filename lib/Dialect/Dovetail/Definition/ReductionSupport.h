//===- ReductionSupport.h - What operations that reduce share -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what reductions share: accumulators, reads along axes, and parts.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_DEFINITION_REDUCTIONSUPPORT_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_DEFINITION_REDUCTIONSUPPORT_H

#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.h"
#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"

namespace dovetail {

/// The type of the elements of a product of two such: i32 for integers of 8 bits, signed or not, else that of both.
/// Null if there is no product of these.
mlir::Type getProductType(mlir::Type lhs, mlir::Type rhs);

/// The lowest number that is finite. As the largest of terms all of which are minus infinity, such as a mask makes, it
/// leaves exponentials of differences zero, which add nothing to others.
mlir::Value emitLowestFinite(ElementBuilder &builder, mlir::FloatType type);

/// Extends a float scalar to `type`, if it is narrower.
mlir::Value widen(ElementBuilder &builder, mlir::Value scalar, mlir::Type type);

/// Rounds a float accumulator to the elements of `elementType`, if they are narrower.
mlir::Value narrow(ElementBuilder &builder, mlir::Value accumulator, mlir::Type elementType);

/// A float of `type` from a count of type `index`.
mlir::Value countToFloat(ElementBuilder &builder, mlir::Value count, mlir::Type type);

/// What values of `elementType` that are reduced by `kind` start from: an accumulator.
mlir::Value emitReductionInit(ElementBuilder &builder, ReduceKind kind, mlir::Type elementType);
/// The element of `elementType` as a term: accumulators of sums and products of floats are wider.
mlir::Value emitReductionTerm(ElementBuilder &builder, ReduceKind kind, mlir::Type elementType, mlir::Value element);
/// Two accumulators as one. `isUnsigned`: integers have no sign.
mlir::Value emitReductionCombine(ElementBuilder &builder, ReduceKind kind, bool isUnsigned, mlir::Value a,
                                 mlir::Value b);

/// Lets `definition` read operand 0, of type `operand`, at the result's dimensions or, at `axes`, which the result
/// keeps with extent 1, at reductions of `kind`.
void addReducedRead(Definition &definition, mlir::RankedTensorType operand, llvm::ArrayRef<int64_t> axes,
                    ReduceKind kind);

/// Where parts of [0, extent) begin, and the end of the last one. `restarts`: where a part ends and the next begins.
llvm::SmallVector<int64_t> getPartEnds(llvm::ArrayRef<int64_t> restarts, int64_t extent);
/// Fails, after an error, unless `restarts` are ascending positions inside of a dimension of `extent`.
llvm::LogicalResult verifyRestarts(std::optional<mlir::Location> location, llvm::StringRef opName,
                                   llvm::ArrayRef<int64_t> restarts, int64_t extent);

/// Checks that `axes` are dimensions of a tensor of `rank`, in ascending order.
llvm::LogicalResult verifyAxes(std::optional<mlir::Location> location, llvm::StringRef opName,
                               llvm::ArrayRef<int64_t> axes, int64_t rank);

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_DEFINITION_REDUCTIONSUPPORT_H
