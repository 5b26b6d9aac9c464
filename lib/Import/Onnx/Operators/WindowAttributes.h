//===- WindowAttributes.h - Attributes of windows ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how the attributes of operators with windows are read.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_OPERATORS_WINDOWATTRIBUTES_H
#define DOVETAIL_LIB_IMPORT_ONNX_OPERATORS_WINDOWATTRIBUTES_H

#include "../../Build/Windows.h"
#include "../OnnxNode.h"

namespace dovetail::importer {

/// Reads kernel_shape, strides, dilations and pads, and checks that they have one entry for each spatial dimension of
/// `input`. If `kernelShape`, the shape of the weights, is given, kernel_shape must agree with it. Does not check
/// auto_pad.
llvm::FailureOr<Windows> readWindows(OnnxNode &node, mlir::Value input, llvm::ArrayRef<int64_t> kernelShape = {});

/// Replaces the pads by those that auto_pad asks for, if it asks for any.
llvm::LogicalResult applyAutoPad(OnnxNode &node, Windows &windows, mlir::Value input);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_OPERATORS_WINDOWATTRIBUTES_H
