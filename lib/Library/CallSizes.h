//===- CallSizes.h - Sizes that libraries have -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares which sizes of operations libraries have in common.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_LIBRARY_CALLSIZES_H
#define DOVETAIL_LIB_LIBRARY_CALLSIZES_H

#include "dovetail/Dialect/Dovetail/Ops/Ops.h"

namespace dovetail {

/// True if `op` is a convolution, transposed or not, of as many spatial dimensions as libraries have, with windows that
/// the plan can state.
bool isModestConvolution(mlir::Operation *op);
/// True if `op` is a convolution each tap of which is a product of matrices. Its windows have one element and no pads,
/// or are transposed and lie side by side.
bool isProductOfTaps(mlir::Operation *op);
/// `isModestConvolution` of a pooling.
bool isModestPool(PoolOp op);
/// True if `op` is a matrix product of as many dimensions as libraries have.
bool isModestProduct(mlir::Operation *op);

} // namespace dovetail

#endif // DOVETAIL_LIB_LIBRARY_CALLSIZES_H
