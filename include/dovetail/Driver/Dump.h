//===- Dump.h - Looking at the result of each phase -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the IR after a phase is printed and dumped.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_DUMP_H
#define DOVETAIL_DRIVER_DUMP_H

#include "dovetail/Driver/Diagnostics.h"
#include "dovetail/Driver/Pipeline.h"
#include "mlir/IR/BuiltinOps.h"

namespace dovetail {

/// Prints `module`; large constants are left out unless `constants` is set.
void printModule(mlir::ModuleOp module, bool constants, llvm::raw_ostream &os);

/// Writes the result of each phase to a folder, in files that are numbered in the order of the phases: `1-import.mlir`,
/// `2-simplify.mlir` and so on.
class PhaseDumper {
public:
  /// Makes the folder if there is none. A file error if that is not possible.
  static llvm::FailureOr<PhaseDumper> create(llvm::StringRef folder, bool constants, Diagnostics &diagnostics);

  /// Whether `file`, which may be there or not, is one of those that may be written.
  bool mayWrite(llvm::StringRef file) const;
  /// Writes the IR after `phase`. A file error if that is not possible.
  llvm::LogicalResult dump(Phase phase, mlir::ModuleOp module);
  /// A file of the folder, such as `6-codegen.s`; null after an error.
  std::unique_ptr<llvm::raw_fd_ostream> open(Phase phase, llvm::StringRef extension);
  /// Closes such a file. A file error if something of it could not be written.
  llvm::LogicalResult close(llvm::raw_fd_ostream &file);

private:
  PhaseDumper(llvm::StringRef folder, bool constants, Diagnostics &diagnostics)
      : folder(folder), constants(constants), diagnostics(&diagnostics) {}

  std::string getPath(Phase phase, llvm::StringRef extension) const;

  std::string folder;
  bool constants;
  Diagnostics *diagnostics;
};

} // namespace dovetail

#endif // DOVETAIL_DRIVER_DUMP_H
