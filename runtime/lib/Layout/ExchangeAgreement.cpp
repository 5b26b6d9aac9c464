//===- ExchangeAgreement.cpp - Whether ranks agree on an exchange ---------===//
//
// Part of the Dovetail project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares what all ranks send with what all receive, dimension by dimension.
//
//===----------------------------------------------------------------------===//

#include "dovetail/Layout/Exchange.h"

#include <algorithm>

using namespace dovetail::layout;

/// Compares the two ends of a dimension: for a destination at `taker` over the axes of `to` and `own` over those of
/// `from`, what `receives` takes from which coordinate is what `sends` gives there. That the boxes of two ranks agree
/// follows: both make them of these parts in the same way, and axes that split no dimension are treated alike.
std::optional<std::pair<int, int>> ExchangePlanner::findDisagreement(int dim) const {
  const DimSharding &held = from.dims[dim], &needed = to.dims[dim];
  // Of each coordinate of `to`, those of `from` that find it when they look for where to send to.
  std::vector<std::vector<int>> givers(std::max<size_t>(needed.pieces.size(), 1));
  for (int giver = 0, count = std::max(static_cast<int>(held.pieces.size()), 1); giver < count; ++giver)
    if (Interval piece = held.pieceAt(giver, shape[dim]); !piece.empty())
      for (int taker : findTakers(dim, piece, nullptr))
        givers[taker].push_back(giver);

  std::vector<std::vector<int>> ownCoordinates(givers.size());
  for (auto [taker, own] : coordinatePairs(mesh, needed.axes, held.axes))
    ownCoordinates[taker].push_back(own);
  // Which of several that hold an element is nearest depends on where a rank is. Of one that depends on no more than
  // whether the rank has some of what it needs itself: of those that have and of those that have not, the first and the
  // last are like all others.
  if (fromIndex[dim].disjoint)
    for (size_t taker = 0; taker < givers.size(); ++taker) {
      std::vector<int> &owns = ownCoordinates[taker];
      std::vector<int> kept;
      for (bool holds : {true, false}) {
        auto isAlike = [&](int own) {
          return std::binary_search(givers[taker].begin(), givers[taker].end(), own) == holds;
        };
        if (auto first = std::find_if(owns.begin(), owns.end(), isAlike); first != owns.end())
          kept.insert(kept.end(), {*first, *std::find_if(owns.rbegin(), owns.rend(), isAlike)});
      }
      owns = std::move(kept);
    }
  for (int taker = 0; taker < static_cast<int>(givers.size()); ++taker) {
    Interval piece = needed.pieceAt(taker, shape[dim]);
    if (piece.empty())
      continue;
    for (int own : ownCoordinates[taker]) {
      std::vector<Segment> sent;
      for (int giver : givers[taker])
        for (Interval part : share(dim, giver, own, piece, nullptr))
          sent.push_back({part, giver});
      std::sort(sent.begin(), sent.end(),
                [](const Segment &a, const Segment &b) { return a.interval.lo < b.interval.lo; });
      std::vector<Segment> received = findSegments(dim, own, piece, nullptr);
      auto [a, b] = std::mismatch(
          sent.begin(), sent.end(), received.begin(), received.end(),
          [](const Segment &a, const Segment &b) { return a.interval == b.interval && a.coordinate == b.coordinate; });
      if (a == sent.end() && b == received.end())
        continue;
      std::vector<int> dest(mesh.numAxes());
      setCoordinate(mesh, held.axes, own, dest);
      setCoordinate(mesh, needed.axes, taker, dest);
      std::vector<int> source = dest;
      setCoordinate(mesh, held.axes, a != sent.end() ? a->coordinate : b->coordinate, source);
      return std::pair(mesh.rankOf(source), mesh.rankOf(dest));
    }
  }
  return std::nullopt;
}

std::optional<std::pair<int, int>> ExchangePlanner::findDisagreement() const {
  for (int dim = 0; dim < static_cast<int>(shape.size()); ++dim)
    if (std::optional<std::pair<int, int>> ranks = findDisagreement(dim))
      return ranks;
  return std::nullopt;
}
