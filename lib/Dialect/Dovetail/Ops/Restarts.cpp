//===- Restarts.cpp - Where ranks begin a loop anew -----------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines getRestarts.
//
//===----------------------------------------------------------------------===//

#include "Restarts.h"

using namespace mlir;
using namespace dovetail;

std::optional<SmallVector<int64_t>> dovetail::getRestarts(DimShardingAttr loop, int64_t extent) {
  if (!loop.coversOnce(extent))
    return std::nullopt;
  SmallVector<int64_t> restarts;
  for (unsigned i = 0; i < loop.getNumPieces(); ++i)
    if (int64_t lo = loop.getPiece(i).lo; lo > 0 && lo < extent)
      restarts.push_back(lo);
  llvm::sort(restarts);
  restarts.erase(llvm::unique(restarts), restarts.end());
  return restarts;
}
