//===- Compile.h - From block kernels to PTX and cubins -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the kernels of a module become code for CUDA devices.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CODEGEN_GPU_COMPILE_H
#define DOVETAIL_CODEGEN_GPU_COMPILE_H

#include "dovetail/Artifact/ProgramCode.h"
#include "dovetail/CodeGen/Options.h"
#include "mlir/IR/BuiltinOps.h"

namespace dovetail {

/// The nested module that plan-generate-block-kernels creates.
inline constexpr llvm::StringLiteral blockKernelsModule = "block_kernels";

/// Compiles what plan-generate-block-kernels left in `module` for `options.archs`, of which there must be one at least:
/// PTX for the oldest, which drivers compile for all newer ones, and a cubin for each. `ptxas` is the program; empty:
/// PTX only. The nested module is consumed. Emits an error, at the module's location, when code generation or ptxas
/// fails.
llvm::FailureOr<ProgramCode> compileCudaKernels(mlir::ModuleOp module, const CodeGenOptions &options,
                                                const std::string &ptxas);

/// Architectures that code can be generated for, ascending.
llvm::ArrayRef<std::string> getCudaArchs();

/// The program ptxas: `$DOVETAIL_PTXAS`, where it was when Dovetail was built, on the PATH, or in `$CUDA_HOME/bin`.
/// Empty if there is none.
std::string findPtxas();

} // namespace dovetail

#endif // DOVETAIL_CODEGEN_GPU_COMPILE_H
