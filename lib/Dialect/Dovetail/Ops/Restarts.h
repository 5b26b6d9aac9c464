//===- Restarts.h - Where ranks begin a loop anew ---------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares getRestarts, for operations that divide their terms.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_RESTARTS_H
#define DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_RESTARTS_H

#include "dovetail/Dialect/Dovetail/IR/Dovetail.h"

namespace dovetail {

/// Where ranks that split a loop of `extent` as `loop` says begin, but for its ends; none if they do not cover it
/// exactly once.
std::optional<llvm::SmallVector<int64_t>> getRestarts(DimShardingAttr loop, int64_t extent);

} // namespace dovetail

#endif // DOVETAIL_LIB_DIALECT_DOVETAIL_OPS_RESTARTS_H
