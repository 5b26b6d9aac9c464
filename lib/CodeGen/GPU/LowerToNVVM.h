//===- LowerToNVVM.h - From block kernels to the NVVM dialect -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the lowering of block kernels for CUDA devices.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_GPU_LOWERTONVVM_H
#define DOVETAIL_LIB_CODEGEN_GPU_LOWERTONVVM_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace dovetail {

/// Lowers the functions of `kernels` to the LLVM and NVVM dialects. Mathematical functions become calls of libdevice.
llvm::LogicalResult lowerKernelsToNVVM(mlir::gpu::GPUModuleOp kernels);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_GPU_LOWERTONVVM_H
