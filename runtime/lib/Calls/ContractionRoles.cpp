//===- ContractionRoles.cpp - Loops of sums of products -------------------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Implements ContractionRoles.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Calls/ContractionRoles.h"

#include <numeric>

using namespace dovetail;
using namespace dovetail::calls;
using layout::IndexExpr;

int64_t dovetail::calls::countSharing(AccessDims access, int loop, int64_t extent) {
  int64_t shared = 0;
  for (const layout::AccessDim &dim : access)
    for (const IndexExpr::Term &term : dim.index.getTerms()) {
      if (!term.dependsOn(loop))
        continue;
      // floor(loop / d) is the same for d of them; of several quotients, as many as divide each of them.
      bool divides = term.kind == IndexExpr::Kind::Quotient && term.getOperand().asLoop() == loop;
      shared = std::gcd(shared, divides ? term.divisor : 1);
    }
  return shared == 0 ? extent : std::min(shared, extent);
}

ContractionRoles::ContractionRoles(AccessDims first, AccessDims second, std::span<const int64_t> loops,
                                   size_t resultRank)
    : extents(loops.begin(), loops.end()), roles(loops.size(), LoopRole::Depth) {
  for (size_t loop = 0; loop < extents.size(); ++loop) {
    sharing[0].push_back(countSharing(first, static_cast<int>(loop), extents[loop]));
    sharing[1].push_back(countSharing(second, static_cast<int>(loop), extents[loop]));
    if (loop >= resultRank)
      continue;
    bool isOfFirst = differs(0, loop), isOfSecond = differs(1, loop);
    roles[loop] = isOfFirst == isOfSecond ? LoopRole::Batch : isOfFirst ? LoopRole::Row : LoopRole::Column;
  }
}

int64_t ContractionRoles::getGroupColumns(size_t loop) const {
  return roles[loop] == LoopRole::Batch && differs(0, loop) && differs(1, loop) ? sharing[0][loop] : 1;
}
