//===- Lowering.h - What lowering shares between targets -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the steps from generated kernels towards the LLVM dialect that are the same for all targets.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_KERNEL_LOWERING_H
#define DOVETAIL_LIB_CODEGEN_KERNEL_LOWERING_H

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/IR/PatternMatch.h"

namespace dovetail {

/// Replaces arithmetic of the float types `emulated` by that of f32, rounded after each operation, and functions that
/// have a good approximation, and structured loops, in all kernels in `kernels`.
llvm::LogicalResult lowerKernelBodies(mlir::Operation *kernels, llvm::ArrayRef<llvm::StringRef> emulated = {"bf16"});

/// A pattern for exponentials of f32.
void populateExpPatterns(mlir::RewritePatternSet &patterns);

/// Patterns for `plan.load` and `plan.store`.
void populateKernelMemoryPatterns(const mlir::LLVMTypeConverter &types, mlir::RewritePatternSet &patterns);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_KERNEL_LOWERING_H
