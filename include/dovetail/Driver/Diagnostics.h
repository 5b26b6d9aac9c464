//===- Diagnostics.h - Messages of the compiler -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares Diagnostics, through which everything that the compiler says reaches the user.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DRIVER_DIAGNOSTICS_H
#define DOVETAIL_DRIVER_DIAGNOSTICS_H

#include "dovetail/Driver/ExitCode.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/SaveAndRestore.h"
#include "llvm/Support/raw_ostream.h"

#include <vector>

namespace dovetail {

/// Prints messages as lines such as `dovetail: error: node 'conv1': ...` and remembers the exit code that the first
/// error stands for. Not thread-safe; MLIR serialises the diagnostics of its threads itself.
class Diagnostics {
public:
  /// Remarks, which say what the compiler decided, are printed if `remarks` is set.
  explicit Diagnostics(llvm::raw_ostream &os, bool remarks = false) : os(os), remarks(remarks) {}

  /// Reports an error. Always failure, to be returned.
  llvm::LogicalResult error(ExitCode code, const llvm::Twine &message);
  void warning(const llvm::Twine &message);
  void remark(const llvm::Twine &message);

  /// Ok if there was no error.
  ExitCode getExitCode() const { return exitCode; }
  /// For errors whose meaning is known only after they were reported.
  void reclassify(ExitCode code) { exitCode = code; }

  /// While it lives, diagnostics of `context` are printed as messages, errors with `code`.
  class Scope {
  public:
    Scope(Diagnostics &diagnostics, mlir::MLIRContext &context, ExitCode code);
    void setCode(ExitCode code) { this->code = code; }

  private:
    ExitCode code;
    mlir::ScopedDiagnosticHandler handler;
  };

  /// While it lives, diagnostics of `context` are kept in `list`, for `print`.
  class Held {
  public:
    Held(std::vector<mlir::Diagnostic> &list, mlir::MLIRContext &context);

  private:
    mlir::ScopedDiagnosticHandler handler;
  };
  /// Prints diagnostics as messages, errors with `code`.
  void print(llvm::ArrayRef<mlir::Diagnostic> list, ExitCode code);

  /// While it lives, warnings and remarks are left out.
  class ErrorsOnly {
  public:
    explicit ErrorsOnly(Diagnostics &diagnostics) : restore(diagnostics.errorsOnly, true) {}

  private:
    llvm::SaveAndRestore<bool> restore;
  };

private:
  void print(const mlir::Diagnostic &diagnostic, ExitCode code);
  /// Prints a line, once the line that shows progress, if there is one, is wiped out.
  void printLine(llvm::StringRef kind, const llvm::Twine &message);

  llvm::raw_ostream &os;
  bool remarks;
  bool errorsOnly = false;
  ExitCode exitCode = ExitCode::Ok;
};

} // namespace dovetail

#endif // DOVETAIL_DRIVER_DIAGNOSTICS_H
