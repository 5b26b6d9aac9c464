//===- Import.h - From ONNX models to the dovetail dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares importOnnx, the first phase of the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_IMPORT_IMPORT_H
#define DOVETAIL_IMPORT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBufferRef.h"

#include <string>
#include <vector>

namespace dovetail {

/// What the user fixes about a model whose inputs have dynamic shapes.
struct ImportOptions {
  /// Extents of named dimensions: `--dim N=1`.
  llvm::StringMap<int64_t> dims;
  /// Largest extents of dimensions that vary from run to run, at least 1: `--bound N=512` of a named dimension,
  /// `--bound tokens:1=512` of dimension 1 of an input.
  llvm::StringMap<int64_t> bounds;
  /// Shapes of inputs: `--shape image=1,3,736,1280`; `--shape scale=` says that it is a scalar. They also give the
  /// extents of the named dimensions in them. Extents are at least 0.
  llvm::StringMap<llvm::SmallVector<int64_t>> shapes;
  /// Whether files of external data may be missing: constants in them then have a type and no data. For who wants to
  /// know about a program and not to run it.
  bool mayMissData = false;
};

/// Why a model was not imported.
enum class ImportError {
  /// The file, or one that it refers to, cannot be read.
  File,
  /// The model breaks the rules of ONNX.
  InvalidModel,
  /// The model uses what this compiler does not have.
  Unsupported,
  /// The options do not fit the model, or leave a shape dynamic.
  Usage
};

/// The imported module, or the reason why there is none.
struct ImportResult {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// Meaningful if `module` is null.
  ImportError error = ImportError::InvalidModel;
  /// The files of external data that were read. They must stay as they are while the module is used.
  std::vector<std::string> externalFiles = {};
  /// Those that are not there (`ImportOptions::mayMissData`).
  std::vector<std::string> missingFiles = {};

  explicit operator bool() { return static_cast<bool>(module); }
};

/// Imports the ONNX model in the file `path`, text if its name ends in
/// `.onnxtxt` and protobuf otherwise.
///
/// The module has one function `@main` of static shapes, whose arguments and
/// results carry the model's names as `dovetail.name`. Its attributes
/// `dovetail.model`, `dovetail.producer`, `dovetail.ir_version` and
/// `dovetail.opsets` describe the model. Constants of few elements are
/// `DenseElementsAttr`; the others are `DenseResourceElementsAttr` of
/// little-endian elements, one byte for each i1. Their memory (the parsed model,
/// or mapped files of external data) is owned by the context's resources, so
/// the module may outlive everything but `context`.
///
/// Every failure is reported as a diagnostic. Loads the dialects that it needs;
/// otherwise as thread-safe as `context`.
ImportResult importOnnx(llvm::StringRef path, const ImportOptions &options, mlir::MLIRContext &context);

/// The same for the contents of a file, whose name, as messages have it, is the buffer's identifier. External data is
/// looked for beside that name.
ImportResult importOnnx(llvm::MemoryBufferRef model, const ImportOptions &options, mlir::MLIRContext &context);

} // namespace dovetail

#endif // DOVETAIL_IMPORT_IMPORT_H
