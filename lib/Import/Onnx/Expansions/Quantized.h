//===- Quantized.h - Quantised operands and results -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares functions that quantise and dequantise.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_ONNX_EXPANSIONS_QUANTIZED_H
#define DOVETAIL_LIB_IMPORT_ONNX_EXPANSIONS_QUANTIZED_H

#include "../Expansion.h"

namespace dovetail::importer {

/// The elements of an operand times its scale, in f32. The zero point, like all that follow, may be absent.
std::string dequantize(Expansion &node, llvm::StringRef operand, llvm::StringRef scale, llvm::StringRef zeroPoint);
/// `value` in steps of the operand `scale`, as elements of `type`.
std::string quantize(Expansion &node, const std::string &value, llvm::StringRef scale, llvm::StringRef zeroPoint,
                     mlir::Type type);
/// Whole numbers next to `value`, which is in steps already, less the zero point, as elements of `type`.
std::string roundSteps(Expansion &node, const std::string &value, llvm::StringRef zeroPoint, mlir::Type type);
/// Checks that operands, those that are there, are one number each.
llvm::LogicalResult requireScalars(Expansion &node, llvm::ArrayRef<llvm::StringRef> operands);
/// An operand of one number, without dimensions.
std::string getScalar(Expansion &node, llvm::StringRef operand);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_ONNX_EXPANSIONS_QUANTIZED_H
