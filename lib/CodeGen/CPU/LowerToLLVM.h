//===- LowerToLLVM.h - From loops to the LLVM dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the lowering of generated kernels.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_CPU_LOWERTOLLVM_H
#define DOVETAIL_LIB_CODEGEN_CPU_LOWERTOLLVM_H

#include "FloatConversions.h"

#include "mlir/IR/BuiltinOps.h"

namespace dovetail {

/// Lowers the functions of plan-generate-cpu-kernels to the LLVM dialect.
llvm::LogicalResult lowerKernelsToLLVM(mlir::ModuleOp kernels, const FloatInstructions &instructions);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_LOWERTOLLVM_H
