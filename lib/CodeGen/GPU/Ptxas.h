//===- Ptxas.h - NVIDIA's assembler -----------------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how PTX becomes machine code.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_GPU_PTXAS_H
#define DOVETAIL_LIB_CODEGEN_GPU_PTXAS_H

#include "dovetail/CodeGen/GPU/Compile.h"

namespace dovetail {

/// Runs the program `ptxas` on `ptx` for all of `archs` at the same time, and adds what comes out to `code`, in their
/// order. Emits an error, at `location`, with what it says when it fails.
llvm::LogicalResult assemble(mlir::Location location, llvm::StringRef ptx, llvm::ArrayRef<std::string> archs,
                             const std::string &ptxas, ProgramCode &code);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_PTXAS_H
