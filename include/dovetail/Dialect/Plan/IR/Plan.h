//===- Plan.h - The plan dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the dialect, its attributes, types and operations.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PLAN_H
#define DOVETAIL_DIALECT_PLAN_IR_PLAN_H

#include "dovetail/Calls/ConvolutionAlgorithms.h"
#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "dovetail/Layout/ExchangeKind.h"
#include "dovetail/Layout/MemoryFormat.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dovetail/Dialect/Plan/IR/PlanDialect.h.inc"
#include "dovetail/Dialect/Plan/IR/PlanEnums.h.inc"

namespace dovetail::plan {

using AccessAttr = dovetail::AccessAttr;
using AccessDims = dovetail::AccessDims;

} // namespace dovetail::plan

#define GET_ATTRDEF_CLASSES
#include "dovetail/Dialect/Plan/IR/PlanAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dovetail/Dialect/Plan/IR/PlanTypes.h.inc"

#include "dovetail/Dialect/Plan/IR/PlanInterfaces.h.inc"

namespace dovetail::plan {

class BufferOp;

/// The buffer that a value of type `!plan.ref` lies in.
BufferOp getBufferOp(mlir::Value ref);

/// The tensor that a value of type `!plan.ref` is a part of.
mlir::RankedTensorType getTensor(mlir::Value ref);

/// How ranks divide each of `loops`, of a step, and how far it goes.
llvm::SmallVector<DimShardingAttr> getDims(mlir::ArrayAttr loops);
llvm::SmallVector<int64_t> getExtents(mlir::ArrayAttr loops);

/// The name of `step` in traces, reports and messages: its `step_name`, or else its node's; empty if it has none.
llvm::StringRef getStepName(mlir::Operation *step);
/// The source names of the nodes of `step`, and which part of its node it is: `body.0.conv (net.py:8) (interior)`.
/// Empty if the model does not say them. At most `text::maxSourceName` bytes of clean text.
std::string getStepSource(mlir::Operation *step);

/// Whether `step` may be done in parts, each of which computes a box of what it writes.
bool isDivisible(StepOpInterface step);

/// The algorithm as runtime and compiler call it.
calls::ConvolutionAlgorithm toCalls(ConvolutionAlgorithm algorithm);
ConvolutionAlgorithm fromCalls(calls::ConvolutionAlgorithm algorithm);

/// The way to exchange by its name in the layout library, and back.
layout::ExchangeKind toLayout(ExchangeKind kind);
ExchangeKind fromLayout(layout::ExchangeKind kind);

/// Fails, after an error, if a library call cannot have `access`: it depends on loops alone, and has no border.
llvm::LogicalResult verifyAccess(llvm::function_ref<mlir::InFlightDiagnostic()> emitError, AccessAttr access);
bool isCallAccess(AccessAttr access);

/// What `lower` decides of a graph's operations and function arguments: see the dialect.
inline constexpr llvm::StringLiteral kFormatsAttrName = "plan.formats";
inline constexpr llvm::StringLiteral kFormatAttrName = "plan.format";
inline constexpr llvm::StringLiteral kPrologueAttrName = "plan.prologue";
inline constexpr llvm::StringLiteral kViewAttrName = "plan.view";

/// The most elements of a row that a kernel folds and then goes over again: it should stay in the cache between.
inline constexpr int64_t kMaxRow = 1 << 16;

/// The memory format that has been chosen for a value of a graph; null if none has.
FormatAttr getFormat(mlir::Value value);
/// Chooses the formats of the results of `op`, one for each.
void setFormats(mlir::Operation *op, llvm::ArrayRef<FormatAttr> formats);

/// What the epilogue of a library call does with its result for the operation that reads `use`; nothing if no epilogue
/// does that. `tensor` is what it reads besides, or null.
std::optional<PostOpAttr> getPostOp(mlir::OpOperand &use, mlir::Value &tensor);

/// An index that a kernel reads from data and reports where it is out of range.
struct IndexCheck {
  mlir::Operation *op; ///< Of the kernel's body.
  unsigned loop;       ///< The operation's lookup.
  int64_t extent;      ///< Of what is indexed, and which of its dimensions that is.
  unsigned dim;
  bool isUnsigned; ///< Whether the index is.
  /// The kernel's argument that has the indices; none if the kernel computes them.
  std::optional<unsigned> argument;
};

/// How the body of a kernel reads an argument, or what an operation of it computes, over which its result may be
/// written.
struct InPlaceReads {
  /// A read of an operation of the body, by its number.
  struct Read {
    mlir::Operation *op;
    unsigned number;
  };

  /// The loops of the result, ascending, along which it is read at other elements than the one written: their
  /// iterations are a *row*. None: each element of the result reads its own element of it alone.
  llvm::SmallVector<unsigned> row;
  /// What elements of a row have from all of it, such as its sum, in the order of the body: where operations that are
  /// computed at the result's own coordinates read values that are the same along the row. Code that writes the result
  /// reads these before it writes an element of the row, and else its own element alone.
  llvm::SmallVector<Read> values;
};

/// Whether `result`, which an operation of the body of a kernel or group computes, may lie in the memory of `source`,
/// an argument or what another operation computes, as accesses tell: at each element `source` is read there, or within
/// the row, for values that do not depend on the place in it. None if not.
std::optional<InPlaceReads> getInPlaceReads(mlir::Block &body, mlir::Value result, mlir::Value source);
/// The same for all that the body yields; none if there are several results.
std::optional<InPlaceReads> getInPlaceReads(mlir::Block &body, mlir::Value source);
/// The same, or that the last operation of the body writes some elements of `argument` anew (`Definition::writes`),
/// which has no other use.
bool mayWriteOver(mlir::Block &body, mlir::BlockArgument argument);

} // namespace dovetail::plan

#define GET_OP_CLASSES
#include "dovetail/Dialect/Plan/IR/PlanOps.h.inc"

#endif // DOVETAIL_DIALECT_PLAN_IR_PLAN_H
