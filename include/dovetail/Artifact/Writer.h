//===- Writer.h - Writes compiled programs -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how a plan, its kernels' code and its constants become an artifact.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_ARTIFACT_WRITER_H
#define DOVETAIL_ARTIFACT_WRITER_H

#include "dovetail/Artifact/ProgramCode.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstddef>
#include <string>
#include <vector>

namespace dovetail {

/// Checks the only `plan.program` of `module` as the runtime will: that its plan is well formed, and, with the steps of
/// all ranks simulated, that every box sent is received in an order that cannot deadlock. Emits an error otherwise.
llvm::LogicalResult checkProgram(mlir::ModuleOp module, const ProgramCode &code);

/// Writes the only `plan.program` of `module` to a file, through a temporary one beside it. Constants are streamed from
/// where they are, equal ones once. Emits an error that names what is at fault: a program that an artifact cannot
/// express, or the file.
llvm::LogicalResult writeProgram(mlir::ModuleOp module, const ProgramCode &code, const std::string &path);

/// Returns the bytes that `writeProgram` would write.
llvm::FailureOr<std::vector<std::byte>> serializeProgram(mlir::ModuleOp module, const ProgramCode &code);

/// The plan of the only `plan.program` of `module` as the runtime has it, without code: a program that has been lowered
/// will do. Constants are not looked at, and their data may be missing. Emits an error if the plan is not well formed.
llvm::FailureOr<runtime::Plan> describeProgram(mlir::ModuleOp module);

} // namespace dovetail

#endif // DOVETAIL_ARTIFACT_WRITER_H
