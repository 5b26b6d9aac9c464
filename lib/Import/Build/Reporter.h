//===- Reporter.h - Reporting what is wrong with a model -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines Reporter, which emits diagnostics and remembers their kind.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_REPORTER_H
#define DOVETAIL_LIB_IMPORT_BUILD_REPORTER_H

#include "SourceName.h"

#include "dovetail/Import/Import.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

#include <optional>

namespace dovetail::importer {

/// Emits diagnostics about one model file, and knows what other files it has. The kind of the first error is that of
/// the import.
class Reporter {
public:
  Reporter(mlir::MLIRContext &context, llvm::StringRef path)
      : context(context), path(path), fileLoc(mlir::FileLineColLoc::get(&context, path, 0, 0)) {}

  mlir::MLIRContext *getContext() const { return &context; }
  llvm::StringRef getPath() const { return path; }
  mlir::Location getFileLoc() const { return fileLoc; }
  /// The location of something with a name inside the file.
  mlir::Location getLoc(llvm::StringRef name) const {
    return mlir::NameLoc::get(mlir::StringAttr::get(&context, name), fileLoc);
  }
  /// The location of a node that users call `source`.
  mlir::Location getLoc(llvm::StringRef name, const SourceName &source) const {
    mlir::Location place = fileLoc;
    if (source.line > 0)
      place = mlir::FileLineColLoc::get(&context, source.file, source.line, 0);
    if (!source.name.empty())
      place = mlir::NameLoc::get(mlir::StringAttr::get(&context, source.name), place);
    return mlir::NameLoc::get(mlir::StringAttr::get(&context, name), place);
  }

  mlir::InFlightDiagnostic error(ImportError kind, mlir::Location loc) {
    if (!firstError)
      firstError = kind;
    return mlir::emitError(loc);
  }
  mlir::InFlightDiagnostic error(ImportError kind) { return error(kind, fileLoc); }
  mlir::InFlightDiagnostic invalid() { return error(ImportError::InvalidModel); }
  std::optional<ImportError> getFirstError() const { return firstError; }

  /// Notes that the model has data in `file`.
  void addExternalFile(llvm::StringRef file) { externalFiles.push_back(file.str()); }
  const std::vector<std::string> &getExternalFiles() const { return externalFiles; }
  /// Notes that it has data in `file`, which is not there, and that this may be.
  void addMissingFile(llvm::StringRef file) { missingFiles.push_back(file.str()); }
  const std::vector<std::string> &getMissingFiles() const { return missingFiles; }

private:
  mlir::MLIRContext &context;
  std::string path;
  mlir::Location fileLoc;
  std::optional<ImportError> firstError;
  std::vector<std::string> externalFiles, missingFiles;
};

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_REPORTER_H
