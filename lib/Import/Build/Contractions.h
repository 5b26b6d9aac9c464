//===- Contractions.h - Convolutions and matrix products -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what the imports of floating-point and of quantised contractions share.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_CONTRACTIONS_H
#define DOVETAIL_LIB_IMPORT_BUILD_CONTRACTIONS_H

#include "Windows.h"

namespace dovetail::importer {

/// The convolution of `input`, [N, C, spatial...], with `weights` in `groups`. Operands fit `windows`.
mlir::Value convolve(GraphBuilder &builder, mlir::Value input, mlir::Value weights, Windows windows, int64_t groups);

/// The matrix product of operands of rank 2 or more.
mlir::Value multiplyLastDims(GraphBuilder &builder, mlir::Value lhs, mlir::Value rhs);

/// The matrix product of `lhs` and `rhs` by the rules of MatMul, which allow vectors.
mlir::Value multiplyMatrices(GraphBuilder &builder, mlir::Value lhs, mlir::Value rhs);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_CONTRACTIONS_H
