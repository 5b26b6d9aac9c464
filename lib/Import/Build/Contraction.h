//===- Contraction.h - Sums of products of several tensors ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares how what an equation says is built.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_IMPORT_BUILD_CONTRACTION_H
#define DOVETAIL_LIB_IMPORT_BUILD_CONTRACTION_H

#include "Equation.h"
#include "GraphBuilder.h"

namespace dovetail::importer {

/// The result of `equation` for `operands`; null after an error. Two operands at a time are contracted, in the order
/// that takes fewest multiplications.
mlir::Value buildContraction(GraphBuilder &builder, const Equation &equation, llvm::ArrayRef<mlir::Value> operands);

} // namespace dovetail::importer

#endif // DOVETAIL_LIB_IMPORT_BUILD_CONTRACTION_H
