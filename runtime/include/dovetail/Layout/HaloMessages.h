//===- HaloMessages.h - What halos leave alone ------------------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines which elements a rank may write while it exchanges halos. The compiler decides with it, and the runtime
// checks what a plan says.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_HALOMESSAGES_H
#define DOVETAIL_LAYOUT_HALOMESSAGES_H

#include "dovetail/Layout/Exchange.h"

namespace dovetail::layout {

/// An exchange by messages within one buffer, which reduces nothing: it reads what a rank sends, writes what it
/// receives, and touches nothing else of the buffer. Costs what an `ExchangePlanner` does, and as it does for each
/// rank.
class HaloMessages {
public:
  /// `verifyExchange` must accept the shardings.
  HaloMessages(const Mesh &mesh, std::span<const int64_t> shape, const Sharding &from, const Sharding &to);

  std::vector<Transfer> sends(int rank) const { return planner.sends(rank); }
  /// Whether all of `box` is of what `rank` has, and nothing of it is sent.
  bool leaves(int rank, const Box &box) const;

private:
  Mesh mesh;
  std::vector<int64_t> shape;
  Sharding from;
  ExchangePlanner planner;
};

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_HALOMESSAGES_H
