//===- DefinitionText.h - The text of accesses and definitions --*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how accesses and definitions are parsed, printed and verified, with names of loops or without.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_IR_DEFINITIONTEXT_H
#define DOVETAIL_DIALECT_DOVETAIL_IR_DEFINITIONTEXT_H

#include "dovetail/Dialect/Dovetail/Definition/Definition.h"
#include "mlir/IR/OpImplementation.h"

namespace dovetail {

/// The names of loops in texts; where there are none, loop 3 is `d3`.
using LoopNames = llvm::ArrayRef<std::string>;

/// Whether a loop can have this name in accesses: an identifier that means nothing else there.
bool isLoopName(llvm::StringRef name);
/// The name of loop number `loop`.
std::string getLoopName(LoopNames names, unsigned loop);

/// Indices as in the text of operations: `(n, y + ky - 1)`.
mlir::ParseResult parseAccessDims(mlir::AsmParser &parser, llvm::SmallVectorImpl<layout::AccessDim> &dims,
                                  LoopNames names = {});
void printAccessDims(llvm::raw_ostream &os, llvm::ArrayRef<layout::AccessDim> dims, LoopNames names = {});
/// Fails, after an error, if an access has numbers that cannot be written.
llvm::LogicalResult verifyAccessDims(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                     llvm::ArrayRef<layout::AccessDim> dims);

/// The text of a definition, but for the rank of results and what follows from other parts of an operation.
struct DefinitionText {
  Definition definition;
  llvm::SmallVector<std::string> names;
  /// Reductions of which the text does not say how exchanges combine them.
  llvm::SmallVector<unsigned> openReductions;
};

/// Loops have names if `hasNames`.
mlir::ParseResult parseDefinition(mlir::AsmParser &parser, DefinitionText &text, bool hasNames);
/// `separate` prints what is between clauses: a space unless it says otherwise.
void printDefinition(llvm::raw_ostream &os, const Definition &definition, LoopNames names,
                     llvm::function_ref<void()> separate = {});

/// Fails, after an error, if a definition contradicts itself.
llvm::LogicalResult verifyDefinition(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                     const Definition &definition, LoopNames names = {});

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_IR_DEFINITIONTEXT_H
