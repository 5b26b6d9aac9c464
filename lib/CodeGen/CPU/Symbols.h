//===- Symbols.h - What compiled kernels may refer to -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares checkSymbols.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_CPU_SYMBOLS_H
#define DOVETAIL_LIB_CODEGEN_CPU_SYMBOLS_H

#include "mlir/IR/BuiltinOps.h"

namespace dovetail {

/// Checks that the ELF object `bytes` refers to nothing outside of itself but functions of libm and libmvec, and
/// memcpy, memmove and memset. Otherwise emits an error for each symbol, at the location of a kernel of `module` that
/// needs it.
llvm::LogicalResult checkSymbols(mlir::ModuleOp module, llvm::ArrayRef<char> bytes);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_SYMBOLS_H
