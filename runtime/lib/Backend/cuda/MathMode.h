//===- MathMode.h - Precision of products ----------------------*- C++ -*- ===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines what library calls may do with the factors of products of float32.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_BACKEND_CUDA_MATHMODE_H
#define DOVETAIL_RUNTIME_BACKEND_CUDA_MATHMODE_H

#include "dovetail/runtime/Plan.h"

namespace dovetail::runtime::cuda {

/// F32: nothing. TF32: round them to 10 bits of mantissa. BF16: round them to bfloat16, where the library can (cuDNN
/// cannot, and rounds to TF32, which is more precise).
enum class MathMode { F32, TF32, BF16 };

/// As the plan says.
MathMode mathModeOf(const Plan &plan);

} // namespace dovetail::runtime::cuda

#endif // DOVETAIL_RUNTIME_BACKEND_CUDA_MATHMODE_H
