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

/// Runs the program `ptxas` on `ptx` for architecture `arch`. Emits an error, at `location`, with what it says when it
/// fails.
llvm::FailureOr<Cubin> assemble(mlir::Location location, llvm::StringRef ptx, int arch, const std::string &ptxas);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_PTXAS_H
