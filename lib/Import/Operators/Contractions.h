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

#ifndef DOVETAIL_LIB_IMPORT_OPERATORS_CONTRACTIONS_H
#define DOVETAIL_LIB_IMPORT_OPERATORS_CONTRACTIONS_H

#include "../OnnxNode.h"

namespace dovetail::importer {

/// The convolution of `input`, which has the shape of operand 0, with `weights`, as the attributes of Conv say.
mlir::Value convolve(OnnxNode &node, mlir::Value input, mlir::Value weights);

/// The matrix product of `lhs` and `rhs` by the rules of MatMul, which allow vectors.
mlir::Value multiplyMatrices(OnnxNode &node, mlir::Value lhs, mlir::Value rhs);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_OPERATORS_CONTRACTIONS_H
