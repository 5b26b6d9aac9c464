//===- CheckChoices.h - What choices make is there where it is read -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the check that nobody reads what a choice may not have made.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CONVERSION_CHECKCHOICES_H
#define DOVETAIL_LIB_CONVERSION_CHECKCHOICES_H

#include "mlir/IR/Block.h"
#include "llvm/Support/LogicalResult.h"

namespace dovetail {

/// Checks that what is made between `plan.begin_choice` and `plan.end_choice` is read outside of them only by kernels
/// that choose by the same condition, of which no index depends on it. Errors name the reader, and what it reads.
llvm::LogicalResult checkChoices(mlir::Block &block);

} // namespace dovetail

#endif // DOVETAIL_LIB_CONVERSION_CHECKCHOICES_H
