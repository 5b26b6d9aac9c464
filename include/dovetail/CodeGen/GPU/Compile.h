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

#include "dovetail/CodeGen/Target.h"

namespace dovetail {

/// The nested module that plan-generate-block-kernels creates.
inline constexpr llvm::StringLiteral blockKernelsModule = "block_kernels";

/// Machine code for one architecture.
struct Cubin {
  int arch; ///< Such as 90.
  std::vector<char> code;
  std::vector<KernelUse> kernels;
};

/// Code of the kernels of a module. All empty when the module has no kernels.
struct CudaCode {
  /// Text for the oldest of the architectures asked for, which drivers can compile for all newer ones.
  std::string ptx;
  /// One for each architecture asked for; none where there is no ptxas.
  std::vector<Cubin> cubins;
};

/// Compiles what plan-generate-block-kernels left in `module` for `options.archs`, of which there must be one at least.
/// `ptxas` is the program; empty: PTX only. The nested module is consumed. Emits an error, at the module's location,
/// when code generation or ptxas fails.
llvm::FailureOr<CudaCode> compileCudaKernels(mlir::ModuleOp module, const CodeGenOptions &options,
                                             const std::string &ptxas);

/// Architectures that code can be generated for, ascending.
llvm::ArrayRef<int> getCudaArchs();

/// The program ptxas: `$DOVETAIL_PTXAS`, on the PATH, in `$CUDA_HOME/bin`, or where it was when Dovetail was built.
/// Empty if there is none.
std::string findPtxas();

} // namespace dovetail

#endif // DOVETAIL_CODEGEN_GPU_COMPILE_H
