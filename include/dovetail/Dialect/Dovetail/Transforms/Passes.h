//===- Passes.h - Passes from one form of operations to another -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the passes of the dialect itself.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_TRANSFORMS_PASSES_H
#define DOVETAIL_DIALECT_DOVETAIL_TRANSFORMS_PASSES_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"
#include "mlir/Pass/Pass.h"

namespace dovetail {

#define GEN_PASS_DECL
#include "dovetail/Dialect/Dovetail/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "dovetail/Dialect/Dovetail/Transforms/Passes.h.inc"

} // namespace dovetail

#endif // DOVETAIL_DIALECT_DOVETAIL_TRANSFORMS_PASSES_H
