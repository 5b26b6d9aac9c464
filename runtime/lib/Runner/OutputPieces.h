//===- OutputPieces.h - Who delivers what of an output ---------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_RUNNER_OUTPUTPIECES_H
#define DOVETAIL_RUNTIME_RUNNER_OUTPUTPIECES_H

#include "dovetail/runtime/Plan.h"

namespace dovetail::runtime {

/// The boxes of an output that ranks deliver to whoever collects it: each element comes from one rank. They are so
/// small that one fits into a message.
class OutputPieces {
public:
  OutputPieces(const Plan &plan, const PortInfo &output);

  /// The same, but only of what lies in `box`.
  OutputPieces within(const layout::Box &box) const;

  const std::vector<layout::Box> &of(int rank) const { return boxes[rank]; }
  /// The largest number of boxes that a rank but the first delivers.
  size_t rounds() const;
  /// Null when the rank has delivered all.
  const layout::Box *piece(int rank, size_t round) const {
    return round < boxes[rank].size() ? &boxes[rank][round] : nullptr;
  }

private:
  std::vector<std::vector<layout::Box>> boxes; ///< By rank.
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_RUNNER_OUTPUTPIECES_H
