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
#include <memory>
#include <string>
#include <vector>

namespace dovetail {

/// The artifact of a program, before it is written.
class Artifact {
public:
  Artifact(Artifact &&);
  ~Artifact();

  /// Makes that of the only `plan.program` of `module`. Constants stay where they are, equal ones once, so module and
  /// code must outlive it. `hasSourceNames`: steps have what users call them. Emits an error that names what an
  /// artifact cannot express.
  static llvm::FailureOr<Artifact> create(mlir::ModuleOp module, const ProgramCode &code, bool hasSourceNames = true);

  /// Checks it as the runtime will: that its plan is well formed, and that in each exchange every box that some rank
  /// sends is received. Emits an error otherwise.
  llvm::LogicalResult check() const;
  /// Adds weights as library calls want them, which `runtime::ProgramRunner::packedImage` gives.
  void setPacked(std::vector<std::byte> image);
  /// Writes it to a file, through a temporary one beside it. Emits an error that names the file.
  llvm::LogicalResult write(const std::string &path) const;
  /// Returns the bytes that `write` would write.
  llvm::FailureOr<std::vector<std::byte>> serialize() const;

private:
  struct Contents;
  explicit Artifact(std::unique_ptr<Contents> contents);

  std::unique_ptr<Contents> contents;
};

/// The plan of the only `plan.program` of `module` as the runtime has it, without code: a program that has been lowered
/// will do. Constants are not looked at, and their data may be missing. Emits an error if the plan is not well formed.
llvm::FailureOr<runtime::Plan> describeProgram(mlir::ModuleOp module, bool hasSourceNames = true);

} // namespace dovetail

#endif // DOVETAIL_ARTIFACT_WRITER_H
