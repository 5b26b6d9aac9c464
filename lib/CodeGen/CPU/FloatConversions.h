//===- FloatConversions.h - Conversions that CPUs have no instruction for -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares expandFloatConversions.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_CPU_FLOATCONVERSIONS_H
#define DOVETAIL_LIB_CODEGEN_CPU_FLOATCONVERSIONS_H

#include "mlir/IR/Operation.h"

namespace dovetail {

/// Which conversions of floats are instructions of a CPU.
struct FloatInstructions {
  /// Between f16 and f32 (F16C). Without them LLVM's arithmetic of f16 is calls, too.
  bool f16 = false;
  /// From f64 to f16 (AVX-512 FP16).
  bool f64ToF16 = false;
};

/// Replaces, in all kernels in `kernels`, conversions to and from 16-bit floats that are not among `instructions` by
/// arithmetic of integers and f32 that rounds once, to nearest even.
llvm::LogicalResult expandFloatConversions(mlir::Operation *kernels, const FloatInstructions &instructions);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_FLOATCONVERSIONS_H
