//===- Cuts.h - Ways to cut a dimension into consecutive pieces -*- C++ -*-===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DOVETAIL_LAYOUT_CUTS_H
#define DOVETAIL_LAYOUT_CUTS_H

#include "dovetail/Layout/Interval.h"

#include <span>

namespace dovetail::layout {

// Cuts of a dimension of extent n into P pieces are P+1 non-decreasing
// positions `0 = c[0] <= c[1] <= ... <= c[P] = n`; piece p is
// `[c[p], c[p+1])` and may be empty.

/// Cuts whose sizes differ by at most one, in units of `align`; the first
/// pieces are the larger ones and the last non-empty piece may be short of a
/// unit. A negative `n` counts as 0, `parts` and `align` below 1 as 1.
std::vector<int64_t> balancedCuts(int64_t n, int64_t parts, int64_t align = 1);

/// Piece `part` of the `parts` into which `balancedCuts` divides `range`, which is not negative.
Interval balancedPiece(Interval range, int64_t parts, int64_t part);

/// Cuts of which the longest time, size over speed, is least: a piece for each of `speeds`, one at least and all of
/// them positive. Of equal speeds, as `balancedCuts`. A negative `n` counts as 0.
std::vector<int64_t> weightedCuts(int64_t n, std::span<const double> speeds);

/// Cuts as `torch.chunk` makes them: pieces of `ceil(n / parts)`, then one
/// short piece, then empty ones. Bounds of the arguments as for `balancedCuts`.
std::vector<int64_t> chunkCuts(int64_t n, int64_t parts);

/// Cuts between consecutive pieces of the given sizes (none negative).
std::vector<int64_t> cutsFromSizes(std::span<const int64_t> sizes);

/// The pieces between consecutive cuts. An empty piece keeps its position.
std::vector<Interval> piecesFromCuts(std::span<const int64_t> cuts);

} // namespace dovetail::layout

#endif // DOVETAIL_LAYOUT_CUTS_H
