//===- Dovetail.h - The dovetail dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the dialect, its attributes, interfaces, the operations that many parts name, and what operators share.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAIL_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAIL_H

#include "dovetail/Dialect/Dovetail/Definition/DefinitionInterface.h"
#include "dovetail/Dialect/Dovetail/Definition/ElementTypes.h"
#include "dovetail/Dialect/Dovetail/Definition/Enums.h"
#include "dovetail/Dialect/Dovetail/Definition/Linearity.h"
#include "dovetail/Dialect/Dovetail/IR/Accesses.h"
#include "dovetail/Dialect/Dovetail/IR/FormatPreference.h"
#include "dovetail/Dialect/Dovetail/IR/PostOp.h"
#include "dovetail/Layout/Sharding.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dovetail/Dialect/Dovetail/IR/DovetailDialect.h.inc"

namespace dovetail::detail {
struct DimShardingAttrStorage;
} // namespace dovetail::detail

#define GET_ATTRDEF_CLASSES
#include "dovetail/Dialect/Dovetail/IR/DovetailAttributes.h.inc"

namespace dovetail {
/// An access as in the text of operations, `(d0, d2 + d4 - 1)`; null after an error.
AccessAttr parseAccess(mlir::AsmParser &parser);
void printAccess(mlir::AsmPrinter &printer, AccessAttr access);

/// The attribute of a partitionable operation that says how its loops are split.
inline constexpr llvm::StringLiteral kLoopsAttrName = "dovetail.loops";
/// The attribute of an operation that reports indices of its lookups that are out of range when it runs.
inline constexpr llvm::StringLiteral kCheckIndicesAttrName = "dovetail.check_indices";

/// Checks that extents of `type`, that of `what`, which `op` uses, are all known: otherwise an error at `op`. Bounded
/// dimensions are refused here, and nowhere else: by all operations with definitions, and wherever values get memory.
llvm::LogicalResult verifyExtents(mlir::Operation *op, const llvm::Twine &what, mlir::Type type);

/// Checks `verifyExtents`, that the mesh that a sharding of an operand or result names is there, has the axes, and has
/// as many coordinates as there are pieces, and that loop shardings, if there are any, fit the loops and the result's
/// type; otherwise an error at `op`.
llvm::LogicalResult verifyShardings(mlir::Operation *op);
} // namespace dovetail

#include "dovetail/Dialect/Dovetail/IR/DovetailInterfaces.h.inc"

namespace dovetail {

/// Marks operations whose ONNX name is defined in TableGen.
template <typename ConcreteType> class OnnxNamed : public mlir::OpTrait::TraitBase<ConcreteType, OnnxNamed> {};

/// Marks operations on elements at the same coordinates of operands that broadcast.
template <typename ConcreteType> class Elementwise : public mlir::OpTrait::TraitBase<ConcreteType, Elementwise> {};

/// True if the types are tensors that agree in shape and element type, whatever their encodings.
bool equalUpToSharding(mlir::TypeRange a, mlir::TypeRange b);

/// The sharding of a value or tensor type, whether dimensions are bounded or not; null if it has none.
ShardingAttr getSharding(mlir::Type type);
ShardingAttr getSharding(mlir::Value value);
/// True if the ranks hold contributions to a value or tensor, which are still to be combined.
bool isPartial(mlir::Type type);
bool isPartial(mlir::Value value);
/// The elements of a value that each rank has, whole or as a contribution: its sharding, not partial; null if it has
/// none.
ShardingAttr getBoxSharding(mlir::Value value);
/// The same tensor type with another sharding (null for none). Bounds of dimensions stay.
mlir::RankedTensorType withSharding(mlir::RankedTensorType type, ShardingAttr sharding);

/// The bounded dimensions of a tensor type; null if there are none.
BoundedAttr getBounds(mlir::Type type);

/// As `verifyShardings`, for one `type`, which `op` uses.
llvm::LogicalResult verifySharding(mlir::Operation *op, mlir::Type type);

// Shared by elementwise operations.

/// The broadcast shape of the operands with `elementType`; an error at `location`, if given, that names `opName` when
/// they do not broadcast.
mlir::FailureOr<mlir::RankedTensorType> inferElementwiseType(std::optional<mlir::Location> location,
                                                             llvm::StringRef opName, mlir::ValueRange operands,
                                                             mlir::Type elementType);
/// Loops are the result's dimensions; operands are read there, or at 0 where they have extent 1 and the result does
/// not.
Definition getElementwiseDefinition(mlir::Operation *op);
/// The elements at all reads, in their order.
llvm::SmallVector<mlir::Value> readAll(BodyBuilder &body);

} // namespace dovetail

#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/IR/CoreOps.h.inc"

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_DOVETAIL_H
