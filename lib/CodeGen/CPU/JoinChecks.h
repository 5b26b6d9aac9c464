//===- JoinChecks.h - One report for a loop -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares joinChecks.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_CODEGEN_CPU_JOINCHECKS_H
#define DOVETAIL_LIB_CODEGEN_CPU_JOINCHECKS_H

#include "mlir/IR/Operation.h"

namespace dovetail {

/// Has innermost loops in `root` report indices behind them: the one that is largest without a sign, of those that are
/// out of range. A report in a loop is a store that depends on data, with which it does not become vectors.
void joinChecks(mlir::Operation *root);

} // namespace dovetail

#endif // DOVETAIL_LIB_CODEGEN_CPU_JOINCHECKS_H
