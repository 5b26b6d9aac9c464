//===- OutputSlabs.h - Outputs in slabs -----------*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Defines how an output is divided among ranks so that each has large parts of a row-major array of it, whatever the
// sharding is.
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_RUNTIME_RUNNER_OUTPUTSLABS_H
#define DOVETAIL_RUNTIME_RUNNER_OUTPUTSLABS_H

#include "OutputPieces.h"

#include "dovetail/Layout/Exchange.h"

namespace dovetail::runtime {

/// Slabs lie in one piece each in a row-major array of the output, in order, and have 1 to 4 MiB unless the output is
/// smaller. Each rank has a sequence of them, of which it fills one in a round.
class OutputSlabs {
public:
  /// `pieces` say who has what, and must outlive this.
  OutputSlabs(const PortInfo &output, const OutputPieces &pieces, int ranks);

  /// Whether what ranks have lies in pieces that have less than `bytes` on average, and are more for some rank than its
  /// slabs.
  bool areBetter(int64_t bytes) const;
  int64_t rounds() const { return (numSlabs + ranks - 1) / ranks; }
  /// Empty if the rank has none in that round.
  layout::Box slab(int rank, int64_t round) const;
  /// What ranks send each other in a round, and what each has of its own slab.
  std::vector<layout::Transfer> sends(int rank, int64_t round) const;
  std::vector<layout::Transfer> receives(int rank, int64_t round) const;
  std::vector<layout::Box> local(int rank, int64_t round) const { return common(rank, rank, round); }
  /// Of the largest.
  int64_t slabBytes() const;

private:
  /// What `source` has of the slab of `dest` in a round.
  std::vector<layout::Box> common(int source, int dest, int64_t round) const;
  int64_t firstOf(int rank) const { return numSlabs * rank / ranks; }

  const OutputPieces &pieces;
  std::vector<int64_t> shape;
  int64_t allBytes = 0, rowBytes = 0; ///< Of the output, and of a coordinate of `dim`.
  int ranks;
  int dim = 0;            ///< The one that is divided. Of those before it a slab has one coordinate, of others all.
  int64_t partsOfDim = 0; ///< Slabs that differ in this dimension alone.
  int64_t numSlabs = 0;
};

} // namespace dovetail::runtime

#endif // DOVETAIL_RUNTIME_RUNNER_OUTPUTSLABS_H
