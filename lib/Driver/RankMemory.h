//===- RankMemory.h - Memory of ranks of a lowered program ------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declares what is asked of the memory of ranks.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LIB_DRIVER_RANKMEMORY_H
#define DOVETAIL_LIB_DRIVER_RANKMEMORY_H

#include "dovetail/runtime/Session.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/LogicalResult.h"

#include <limits>
#include <string>
#include <vector>

namespace dovetail {

/// The memory that a rank of a program takes, and has.
struct RankMemory {
  int rank = 0;
  double bytes = 0, limit = std::numeric_limits<double>::infinity();
  /// Bytes for each byte of weights, with what libraries pack.
  double weightFactor = 1;

  bool fits() const { return bytes <= limit; }
  /// Of what it has, the part that it takes.
  double getShare() const { return bytes / limit; }
};

/// The rank of a lowered program that takes most of what it has; of many ranks, each `step`th is looked at.
llvm::FailureOr<RankMemory> getMost(const runtime::Plan &plan, llvm::ArrayRef<double> limits, int step = 1);
/// Of each rank of a lowered program, the largest share that it may have of divided tensors. All its memory grows with
/// that share, but for tensors that it has whole.
llvm::FailureOr<std::vector<double>> getMostShares(const runtime::Plan &plan, llvm::ArrayRef<double> limits);
/// The tensors that take most room on a rank: `'w' (f32[4096, 4096], 64 MB)`.
std::string listLargest(const runtime::Plan &plan, int rank);

} // namespace dovetail

#endif // DOVETAIL_LIB_DRIVER_RANKMEMORY_H
