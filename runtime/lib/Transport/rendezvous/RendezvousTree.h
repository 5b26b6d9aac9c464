//===- RendezvousTree.h - Who has a connection with whom -------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines the tree of ranks along which processes hear of each other, so that each has few connections however many
// ranks there are.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUSTREE_H
#define DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUSTREE_H

#include <vector>

namespace dovetail::runtime {

/// A rank and those below it: [rank, end).
struct Subtree {
  int rank, end;

  int size() const { return end - rank; }
  bool contains(int other) const { return rank <= other && other < end; }
};

/// No rank has more ranks directly below it.
inline constexpr int mostChildren = 4;

/// Where a rank is in the tree.
struct TreePlace {
  Subtree own;
  int parent;                    ///< -1: it is rank 0, which has all others below it.
  std::vector<Subtree> children; ///< In the order of their ranks; with `own.rank` they are `own`.
};

/// Where `rank` of `size` ranks is: the ranks below each are divided evenly among its children, in their order, so that
/// ranks with numbers that are close, as those of one machine mostly are, are close in the tree.
TreePlace findPlace(int rank, int size);

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_LIB_TRANSPORT_RENDEZVOUS_RENDEZVOUSTREE_H
