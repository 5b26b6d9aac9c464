//===- Convolution.h - Convolutions as Conv's attributes say ----*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how operators with the attributes of Conv convolve.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_OPERATORS_CONVOLUTION_H
#define DOVETAIL_LIB_IMPORT_ONNX_OPERATORS_CONVOLUTION_H

#include "../OnnxNode.h"

namespace dovetail::importer {

/// The convolution of `input`, which has the shape of operand 0, with `weights`, as the attributes of Conv say.
mlir::Value convolve(OnnxNode &node, mlir::Value input, mlir::Value weights);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_OPERATORS_CONVOLUTION_H
