//===- BoundedOps.h - What makes dimensions whose extents depend on data -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares the operations of BoundedOps.td, and how results of a program say that dimensions are bounded.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_DIALECT_DOVETAIL_OPS_BOUNDEDOPS_H
#define DOVETAIL_DIALECT_DOVETAIL_OPS_BOUNDEDOPS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {
/// The attribute of an argument or a result of the main function, and of the port of the plan that it becomes, whose
/// dimensions are bounded: for each of them the number of the count, among the arguments that are counts and then the
/// results that are, or -1.
inline constexpr llvm::StringLiteral kCountsAttrName = "dovetail.counts";
/// The attribute of an argument or result, or port, that is a count, a scalar of i64. These come after those that users
/// know of. Arguments are lengths, which a run finds in its inputs.
inline constexpr llvm::StringLiteral kCountAttrName = "dovetail.count";
} // namespace dovetail

#define GET_OP_CLASSES
#include "dovetail/Dialect/Dovetail/Ops/BoundedOps.h.inc"

#endif // DOVETAIL_DIALECT_DOVETAIL_OPS_BOUNDEDOPS_H
