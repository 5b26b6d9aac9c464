//===- PackedWeights.h - Weights that stay as they are stored ---*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Names the attributes by which the graph says that weights stay in memory as they are stored, and are widened where
// they are used.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_PLAN_IR_PACKEDWEIGHTS_H
#define DOVETAIL_DIALECT_PLAN_IR_PACKEDWEIGHTS_H

#include "llvm/ADT/StringRef.h"

namespace dovetail::plan {

/// A unit attribute of what depends on constants alone but is no part of the prologue: it is computed in each run.
inline constexpr llvm::StringLiteral kEachRunAttrName = "plan.each_run";

/// A unit attribute of an operation that becomes a kernel, whether a library does it or not, together with those of its
/// operands that are computed in each run.
inline constexpr llvm::StringLiteral kGeneratedAttrName = "plan.generated";

} // namespace dovetail::plan

#endif // DOVETAIL_DIALECT_PLAN_IR_PACKEDWEIGHTS_H
