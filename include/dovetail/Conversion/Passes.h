//===- Passes.h - Passes that lower the graph -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the passes of lower.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_CONVERSION_PASSES_H
#define DOVETAIL_CONVERSION_PASSES_H

#include "dovetail/Dialect/Plan/IR/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace dovetail {

#define GEN_PASS_DECL
#include "dovetail/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dovetail/Conversion/Passes.h.inc"

} // namespace dovetail

#endif // DOVETAIL_CONVERSION_PASSES_H
