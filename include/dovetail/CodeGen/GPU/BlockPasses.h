//===- BlockPasses.h - Passes of targets of thread blocks -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares addBlockPasses.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CODEGEN_GPU_BLOCKPASSES_H
#define DOVETAIL_CODEGEN_GPU_BLOCKPASSES_H

#include "dovetail/CodeGen/DeviceDescription.h"
#include "mlir/Pass/PassManager.h"

namespace dovetail {

/// Adds the passes from a plan to kernels for blocks of threads of `device`.
void addBlockPasses(mlir::OpPassManager &passes, const DeviceDescription &device);

} // namespace dovetail

#endif // DOVETAIL_CODEGEN_GPU_BLOCKPASSES_H
