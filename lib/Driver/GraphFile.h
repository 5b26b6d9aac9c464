//===- GraphFile.h - Models that are graphs of the dialect ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares importGraph, which reads a graph in MLIR's text in place of a model of ONNX.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DRIVER_GRAPHFILE_H
#define DOVETAIL_LIB_DRIVER_GRAPHFILE_H

#include "dovetail/Import/Import.h"

namespace dovetail {

/// Whether `path` names a graph in MLIR's text: it ends in `.mlir`.
bool isGraphFile(llvm::StringRef path);

/// Reads the graph in the file `path`: a function `@main` of operations of the dialect. Its arguments and results are
/// called as their attribute `dovetail.name` says, or else `input0`, `output0` and so on. Failures are diagnostics.
ImportResult importGraph(llvm::StringRef path, mlir::MLIRContext &context);

} // namespace dovetail

#endif // DOVETAIL_LIB_DRIVER_GRAPHFILE_H
