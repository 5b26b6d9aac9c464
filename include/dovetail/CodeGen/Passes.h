//===- Passes.h - Passes that generate code -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the passes of codegen.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CODEGEN_PASSES_H
#define DOVETAIL_CODEGEN_PASSES_H

#include "dovetail/CodeGen/DeviceDescription.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/Pass.h"

namespace dovetail {

#define GEN_PASS_DECL
#include "dovetail/CodeGen/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dovetail/CodeGen/Passes.h.inc"

} // namespace dovetail

#endif // DOVETAIL_CODEGEN_PASSES_H
